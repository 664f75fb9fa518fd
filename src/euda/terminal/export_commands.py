"""The command that takes a policy out of a run: export."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from euda.terminal import printing, process
from euda.terminal.flags import Argument
from euda.terminal.run_commands import load_run


def export(
    folder: Annotated[Path, Argument("RUN")],
    to: str,
    out: Path | None = None,
    robot: str | None = None,
    env: str | None = None,
    reward: str | None = None,
) -> int:
    """Write a run's policy as a file that runs without euda (docs/export.md).

    Args:
        folder: Folder of a run.
        to: onnx (extra `onnx`), numpy (an .npz and a short .py that runs it) or torch (a file of torch.export).
        out: The file to write; by default policy.onnx, policy.npz or policy.pt2 in the run's folder.
        robot: Where the run's MJCF file is now, if it was moved.
        env: The module:Id of a run with one: code is imported only if you name it again.
        reward: The module:function of a run with one: likewise.
    """
    process.prepare()
    from euda.exports import export as exports

    written = exports.export(load_run(folder, robot, env, reward), to, out)
    printing.line(f"wrote {', '.join(f'{path} ({path.stat().st_size / 1000:.0f} kB)' for path in written)}")
    return 0
