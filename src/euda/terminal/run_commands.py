"""The commands about runs that are there: evaluate, video, runs. What is heavy is imported when a command runs."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from euda.errors import EudaError
from euda.runs import robot_config
from euda.schema import Count
from euda.terminal import printing, process, turned_commands
from euda.terminal.flags import Argument

if TYPE_CHECKING:
    from euda.runs.run_folder import Run


def evaluate(
    folder: Annotated[Path, Argument("RUN")],
    episodes: int = 10,
    seed: int | None = None,
    yaws: Count | None = None,
    mirror: bool = False,
    figure: Path | None = None,
    robot: str | None = None,
    env: str | None = None,
    reward: str | None = None,
    json_: bool = False,
) -> int:
    """Evaluate the newest policy of a run without exploration noise.

    Args:
        folder: Folder of a run.
        episodes: How many episodes.
        seed: Evaluate other episodes than those of the training's evaluation.
        yaws: Evaluate in this many turned worlds: the same starts, targets and directions, turned.
        mirror: Also evaluate with left and right exchanged.
        figure: Draw the return by yaw into this PNG, SVG or PDF file.
        robot: Where the run's MJCF file is now, if it was moved.
        env: The module:Id of a run with one: code is imported only if you name it again.
        reward: The module:function of a run with one: code is imported only if you name it again.
        json_: Print JSON.
    """
    process.prepare()
    run = load_run(folder, robot, env, reward)
    if yaws is not None or mirror:
        return turned_commands.evaluate(run, yaws or 1, episodes, seed, mirror, figure, json_)
    if figure is not None:
        raise EudaError("--figure draws the return by yaw: add --yaws 8")
    from euda.runs.evaluation import evaluate as judge

    step, returns = judge(run, episodes, seed)
    mean = sum(returns) / len(returns)
    if json_:
        printing.line(json.dumps({"step": step, "return_mean": mean, "returns": returns}))
    else:
        printing.line(
            f"return {mean:.1f} at step {step}, mean of {episodes} episodes ({min(returns):.1f} to {max(returns):.1f})"
        )
    return 0


def video(
    folder: Annotated[Path, Argument("RUN")],
    out: Path,
    episodes: int = 1,
    seed: int | None = None,
    steps: Count | None = None,
    width: int = 640,
    height: int = 480,
    robot: str | None = None,
    env: str | None = None,
    reward: str | None = None,
) -> int:
    """Record a video of the newest policy of a run; no screen needed.

    Args:
        folder: Folder of a run.
        out: The MP4 file to write.
        episodes: How many episodes, one after the other.
        seed: Evaluate other episodes than those of the training's evaluation.
        steps: Only the first so many steps of each episode.
        width: Pixels.
        height: Pixels.
        robot: Where the run's MJCF file is now, if it was moved.
        env: The module:Id of a run with one: code is imported only if you name it again.
        reward: The module:function of a run with one: code is imported only if you name it again.
    """
    process.prepare()
    from euda.media.video import film

    returns = film(load_run(folder, robot, env, reward), out, episodes, seed, width, height, steps)
    printing.line(f"wrote {out}, return {', '.join(f'{value:.1f}' for value in returns)}")
    return 0


def load_run(folder: Path, robot: str | None, env: str | None, reward: str | None) -> Run:
    """A run, with what the user says again about a robot of their own."""
    from euda.runs import run_folder

    found = run_folder.load(folder)
    named = robot_config.named_again(found.config.robot, found.config.task, robot, env, reward)
    return dataclasses.replace(found, config=dataclasses.replace(found.config, robot=named))


def runs(folder: Annotated[Path, Argument("RUNS")] = Path("runs"), json_: bool = False) -> int:
    """List the runs in a folder: progress, returns, speed, state.

    Args:
        folder: Where to look, at any depth.
        json_: Print a JSON list instead of a table.
    """
    from euda.terminal import tables

    rows = run_rows(folder)
    if json_:
        printing.line(json.dumps(rows, indent=2))
        return 0
    header = ("run", "task", "method", "seed", "step", "steps", "return", "best", "speed", "state")
    text = {float: "{:.1f}".format, type(None): lambda value: "-"}
    tables.show(header, [[text.get(type(row.get(name)), str)(row.get(name)) for name in header] for row in rows])
    return 0


def run_rows(folder: Path) -> list[dict[str, Any]]:
    """What `euda runs` shows: one row for each run below a folder."""
    from euda.runs import run_folder

    rows: list[dict[str, Any]] = []
    for path in run_folder.find(folder):
        try:
            found = run_folder.load(path)
        except EudaError as error:
            rows.append({"run": str(path), "state": f"unreadable: {error}"})
            continue
        status, config = run_folder.status(found), found.config
        speed = status.step / status.seconds if status.seconds else None
        rows.append(
            {"run": str(path), "task": config.task, "method": config.label, "seed": config.seed, "step": status.step,
             "steps": config.steps, "return": status.last_return, "best": status.best_return, "speed": speed,
             "state": status.state, "identity": config.identity}
        )  # fmt: skip
    return rows
