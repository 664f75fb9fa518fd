"""The command that shows a robot in the browser: view."""

from __future__ import annotations

import contextlib
import functools
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from euda.errors import EudaError
from euda.runs.robot_flags import is_model
from euda.tasks import table
from euda.terminal import printing, process
from euda.terminal.flags import Argument
from euda.terminal.run_commands import load_run

if TYPE_CHECKING:
    from euda.media.twins import Twins


def view(
    what: Annotated[str, Argument("RUN|TASK|MODEL.xml")],
    out: Path | None = None,
    yaws: int = 2,
    mirror: bool = True,
    seconds: float = 8.0,
    apart: float = 0.0,
    seed: int = 0,
    port: int = 8124,
    browser: bool = True,
    robot: str | None = None,
    env: str | None = None,
    reward: str | None = None,
) -> int:
    """Show a policy, a task or a model in the browser.

    Its turned and mirrored twins are shown as ghosts (docs/view.md).

    Args:
        what: Folder of a run, name of a task, or path of an MJCF file; the last two move without any control.
        out: Instead of a window: an .html file that opens by double click, offline, with a timeline.
        yaws: How many turned twins, evenly spread; 0: none.
        mirror: Whether the mirrored twin is shown, where the robot has one.
        seconds: With --out, the length of the recording.
        apart: With --out, how far the twins stand beside each other, in sizes of the robot; 0 lays them over it.
        seed: Of the first episode.
        port: Of the server, which this machine alone can reach; 0 takes any that is free.
        browser: Open a browser; --no-browser prints the address only.
        robot: Where the run's MJCF file is now, if it was moved.
        env: The module:Id of a run with one: code is imported only if you name it again.
        reward: The module:function of a run with one: likewise.
    """
    if out is not None:
        from euda.media import output

        output.check(out, ".html", "a view is written as an .html")
    title, twins = _twins(what, yaws, mirror, robot, env, reward)
    if out is not None:
        return _write(twins, out, title, seconds, seed, apart)
    return _show(twins, title, seed, port, browser)


def _twins(
    what: str, yaws: int, mirror: bool, robot: str | None, env: str | None, reward: str | None
) -> tuple[str, Twins]:
    """What is shown, and its title."""
    process.prepare()
    from euda.media import twins
    from euda.tasks.task_env import ModelEnv, make

    if is_model(what) and not Path(what).is_dir():
        return Path(what).name, twins.of_environment(functools.partial(ModelEnv, what), yaws, mirror)
    if what in table.TASKS:
        return what, twins.of_environment(functools.partial(make, what), yaws, mirror)
    if not Path(what).is_dir():
        named = ", ".join(table.TASKS)
        raise EudaError(f"view what? {what!r} is no folder of a run, no MJCF file and no task: tasks are {named}")
    run = load_run(Path(what), robot, env, reward)
    title = f"{run.config.task}, {run.config.label}, seed {run.config.seed}"
    return title, twins.of_run(run, yaws, mirror)


def _write(twins: Twins, out: Path, title: str, seconds: float, seed: int, apart: float) -> int:
    from euda.media import view as views
    from euda.runs import atomic_files

    page = views.record(twins, seconds, title, seed, apart).encode()
    atomic_files.write_atomically(out, page)
    printing.line(f"wrote {out} ({len(page) / 1e6:.1f} MB){_summary(twins)}")
    return 0


def _show(twins: Twins, title: str, seed: int, port: int, browser: bool) -> int:
    from euda.media import view as views

    server = views.serve(port)
    try:
        url = f"http://{views.HOST}:{server.get_port()}/"
        live = views.Live(server, twins, seed)
        if browser:
            views.open_browser(url)
        printing.line(f"{title}: {url} (Ctrl-C ends it)")
        with contextlib.suppress(KeyboardInterrupt):
            live.run()
    finally:
        views.stop(server)
    return 0


def _summary(twins: Twins) -> str:
    if len(twins.all) < 2:
        return ""
    names = ", ".join(f"{twin.world.name} {twin.total:.1f}" for twin in twins.all)
    returns = f"; returns: {names}" if twins.has_reward else ""
    return f"{returns}; in the end apart by at most {100 * twins.apart():.2g} cm"
