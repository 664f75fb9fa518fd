"""The command line: one function per command, parsed by tyro from its signature.

Every error a user can cause ends as one sentence on standard error and exit code 2.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import importlib.metadata
import io
import json
import os
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any

import tyro

from euda.errors import EudaError
from euda.study import commands, study_commands
from euda.study.robots import AimFlags, RobotFlags

Positional = tyro.conf.Positional
Subject = Annotated[Positional[str | None], tyro.conf.arg(metavar="TASK|ROBOT.xml")]
Aim = Annotated[AimFlags, tyro.conf.arg(name="")]
_AIM = AimFlags()


def tasks(json_: Annotated[bool, tyro.conf.arg(name="json")] = False) -> int:
    """List the tasks: limbs, degrees of freedom, sizes of actions and features, episode length, cone.

    Args:
        json_: Print a JSON list instead of a table.
    """
    from euda.body import tasks as table

    rows = [table.summary(name) for name in table.TASKS]
    if json_:
        print(json.dumps([dataclasses.asdict(row) for row in rows], indent=2))
        return 0
    header = (
        "task",
        "n",
        "d1",
        "1-DoF",
        "2-DoF",
        "3-DoF",
        "actions",
        "limb",
        "limb-paper",
        "joint",
        "steps",
        "s/step",
        "cone",
    )
    lines = [
        (
            r.name,
            r.n,
            r.d1,
            r.n1,
            r.n2,
            r.n3,
            r.actions,
            *r.features.values(),
            r.episode_steps,
            f"{r.control_timestep:g}",
            r.cone,
        )
        for r in rows
    ]
    _table(header, lines)
    return 0


def layout(
    subject: Subject = None,
    features: str = "limb",
    env: str | None = None,
    robot: Aim = _AIM,
    json_: Annotated[bool, tyro.conf.arg(name="json")] = False,
) -> int:
    """Print what each entry of an observation is and how it turns.

    Args:
        subject: Name of a task (see `euda tasks`), or path of an MJCF file.
        features: limb, limb-paper or joint.
        env: Instead of a task: a registered Gymnasium environment that runs on MuJoCo, Id or module:Id.
        robot: A robot of your own.
        json_: Print JSON instead of a table.
    """
    fields = _environment(subject, env, features, None, robot).layout
    print(json.dumps(fields.to_json(), indent=2) if json_ else fields)
    return 0


def certify(
    subject: Subject = None,
    features: str = "limb",
    cone: str | None = None,
    yaws: int = 4,
    states: int = 60,
    seed: int = 0,
    tolerance: float = 0.0,
    env: str | None = None,
    robot: Aim = _AIM,
    reward: str | None = None,
    json_: Annotated[bool, tyro.conf.arg(name="json")] = False,
) -> int:
    """Prove in the simulator what a yaw does to a task or a model. Exit code 0: exact, or within --tolerance; 1: not.

    Args:
        subject: Name of a task, or path of an MJCF file.
        features: limb, limb-paper or joint.
        cone: default (as the model has it) or elliptic; by default the task's own.
        yaws: Random yaws per state.
        states: States to compare, with and without contacts.
        seed: Seed of states, actions and yaws.
        tolerance: Largest relative error to accept.
        env: Instead of a task: a registered Gymnasium environment that runs on MuJoCo, Id or module:Id.
        robot: A robot of your own.
        reward: Your own robot: run (speed along the direction), reach (the target), stand, or your module:function.
        json_: Print JSON instead of a table.
    """
    from euda.body.certificate import certify as prove

    make = functools.partial(_environment, subject, env, features, cone, robot, reward)
    certificate = prove(make, states=states, yaws=yaws, seed=seed)
    if json_:
        print(json.dumps(certificate.to_json(), indent=2))
    else:
        _print_certificate(certificate)
        if env is not None:
            print(f"not compared: the reward of {certificate.task}, and what else it does in a step but simulate")
    return 0 if certificate.verdict == "exact" or certificate.worst <= tolerance else 1


def _environment(subject: str | None, env: str | None, features: str, cone: str | None, robot: AimFlags,
                 reward: str | None = None) -> Any:  # fmt: skip
    """A task by its name, the robot in a file, or the simulation in a Gymnasium environment."""
    from euda.body.environment import TaskEnv
    from euda.study import robots

    flags = RobotFlags(**dataclasses.asdict(robot), reward=reward)
    if subject is not None and env is not None:
        raise EudaError(f"name {subject!r} or --env {env}, not both")
    if env is not None:
        return robots.simulation_of(env, flags, features, cone)
    if subject is None:
        raise EudaError("of what? Name a task (see euda tasks), an MJCF file, or an environment with --env")
    if not robots.is_model(subject):
        if flags.given:
            given = ", ".join(flags.given)
            raise EudaError(f"{given} belongs to robots of your own (MJCF files), not to task {subject!r}")
        return TaskEnv(subject, features, cone)
    return robots.preview(subject, flags, features, cone)


def _print_certificate(certificate: Any) -> None:
    c = certificate
    print(
        f"{c.task}, {c.features} features, {c.cone} cone: {c.states} states"
        f" ({c.states_with_contacts} with frictional contacts), {c.yaws} yaws each"
    )
    parts = {"dynamics": ("", c.dynamics), **{f"  {name}": (errors.kind, errors) for name, errors in c.fields.items()}}
    if c.reward is not None:
        parts["reward"] = ("", c.reward)
    rows = [(name, kind, e.verdict, f"{e.median:.1e}", f"{e.max:.1e}") for name, (kind, e) in parts.items()]
    _table(("", "kind", "verdict", "median error", "worst error"), rows)
    for cause in c.causes:
        print(f"because: {cause}")
    print(f"verdict: {c.verdict}" + ("" if c.verdict == "exact" else f", worst relative error {c.worst:.2g}"))


def picture(
    subject: Subject = None,
    *,
    out: Path,
    copies: int = 6,
    width: int = 1280,
    height: int = 720,
    env: str | None = None,
    robot: Aim = _AIM,
) -> int:
    """Draw a robot with its turned copies: what augmentation does.

    Args:
        subject: Name of a task, or path of an MJCF file.
        out: The PNG file to write.
        copies: How many robots to draw, the original included.
        width: Pixels.
        height: Pixels.
        env: Instead of a task: a registered Gymnasium environment that runs on MuJoCo, Id or module:Id.
        robot: A robot of your own.
    """
    from euda.body.picture import picture as draw
    from euda.body.picture import save_png

    found = _environment(subject, env, "limb", None, robot)
    save_png(out, lambda: draw(found, copies, width, height))
    print(f"wrote {out}")
    return 0


def runs(folder: Positional[Path] = Path("runs"), json_: Annotated[bool, tyro.conf.arg(name="json")] = False) -> int:
    """List the runs in a folder: task, method, seed, progress, returns, speed, state.

    Args:
        folder: Where to look, at any depth.
        json_: Print a JSON list instead of a table.
    """
    rows = commands.run_rows(folder)
    if json_:
        print(json.dumps(rows, indent=2))
        return 0
    header = ("run", "task", "method", "seed", "step", "steps", "return", "best", "speed", "state")
    text = {float: "{:.1f}".format, type(None): lambda value: "-"}
    _table(header, [[text.get(type(row.get(name)), str)(row.get(name)) for name in header] for row in rows])
    return 0


def study() -> int:
    """Plan, run and follow studies: show, run, status, export (see `euda study --help`)."""
    raise AssertionError("the commands of a group are parsed apart")


COMMANDS: dict[str, Callable[..., int]] = {
    "tasks": tasks,
    "layout": layout,
    "certify": certify,
    "picture": picture,
    "demo": commands.demo,
    "train": commands.train,
    "evaluate": commands.evaluate,
    "video": commands.video,
    "runs": runs,
    "study": study,
    "report": study_commands.report,
}
GROUPS = {"study": study_commands.COMMANDS}


def _table(header: Sequence[Any], rows: Sequence[Sequence[Any]]) -> None:
    """Plain aligned columns: first left, the rest right, readable in a terminal and in a file."""
    cells = [[str(cell) for cell in row] for row in (header, *rows)]
    widths = [max(len(row[i]) for row in cells) for i in range(len(header))]
    for row in cells:
        print(
            "  ".join(
                [row[0].ljust(widths[0]), *(cell.rjust(w) for cell, w in zip(row[1:], widths[1:], strict=True))]
            ).rstrip()
        )


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns its exit code."""
    try:
        return _parse_and_run(arguments)
    except EudaError as error:
        print(f"euda: {error}", file=sys.stderr)
        return 2
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # nobody reads on: no second error at exit
        return 0
    except KeyboardInterrupt:
        print("euda: interrupted", file=sys.stderr)
        return 130


def _parse_and_run(arguments: Sequence[str] | None) -> int:
    """Let tyro parse, but say its complaints in one sentence."""
    arguments = sys.argv[1:] if arguments is None else arguments
    if list(arguments) == ["--version"]:
        print(f"euda {importlib.metadata.version('euda')}")
        return 0
    name, group = "euda", COMMANDS
    if arguments[:1] and arguments[0] in GROUPS:
        name, group, arguments = f"euda {arguments[0]}", GROUPS[arguments[0]], arguments[1:]
    complaint = io.StringIO()
    try:
        with contextlib.redirect_stderr(complaint):
            run = tyro.extras.subcommand_cli_from_dict(
                {word: _later(command) for word, command in group.items()},
                prog=name,
                description=_DESCRIPTION,
                args=arguments,
            )
    except SystemExit as exit_:
        if exit_.code in (0, None):
            return 0
        raise EudaError(_one_sentence(complaint.getvalue())) from None
    return run()


_DESCRIPTION = "Reinforcement learning that exploits Euclidean symmetry in state-based continuous control."


def _later(command: Callable[..., int]) -> Callable[..., Callable[[], int]]:
    """The command with the same signature, returning what is to be run once parsing is over."""

    @functools.wraps(command)
    def parsed(*args: Any, **kwargs: Any) -> Callable[[], int]:
        return functools.partial(command, *args, **kwargs)

    return parsed


def _one_sentence(box: str) -> str:
    """The text of tyro's boxed complaint without the box and the pointers to help."""
    lines = [line.strip("│╭╮╰╯─ ").strip() for line in box.splitlines()]
    kept = [
        line
        for line in lines[1:]
        if line and not line.startswith(("For full helptext", "euda ")) and " --help" not in line
    ]
    sentence = re.sub(
        r"Error parsing \S*?(?:\.(\w+))?: ", r"\1 ", " ".join(kept)
    )  # of tyro's own name for a group of flags
    return sentence.strip() or "these arguments cannot be understood: see euda --help"


if __name__ == "__main__":
    sys.exit(main())
