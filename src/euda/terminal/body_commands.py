"""Commands about a body: tasks, layout, certify, picture."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from euda.errors import EudaError
from euda.runs.robot_flags import AimFlags, RobotFlags
from euda.schema import NotNegative, RowOf
from euda.terminal import printing, tables
from euda.terminal.flags import Argument

if TYPE_CHECKING:
    from euda.symmetry.certificate import Certificate

Subject = Annotated[str | None, Argument("TASK|ROBOT.xml")]
Features = Annotated[str, RowOf("features")]
Reward = Annotated[str | None, RowOf("reward")]
_AIM = AimFlags()


def tasks(json_: bool = False) -> int:
    """List the tasks and their sizes.

    Columns: limbs (n), degrees of freedom of the root (d1), limbs on joints with 1, 2 and 3 of them, actions, numbers
    in an observation of each feature set, steps of an episode, seconds per step, friction cone.

    Args:
        json_: Print a JSON list instead of a table.
    """
    from euda.body.features import FEATURES
    from euda.tasks import table
    from euda.tasks.task_sizes import summary

    rows = [summary(name) for name in table.TASKS]
    if json_:
        print(json.dumps([dataclasses.asdict(row) for row in rows], indent=2))
        return 0
    header = ("task", "n", "d1", "1-DoF", "2-DoF", "3-DoF", "actions", *FEATURES, "steps", "s/step", "cone")
    lines = [(r.name, r.n, r.d1, r.n1, r.n2, r.n3, r.actions, *r.features.values(), r.episode_steps,
              f"{r.control_timestep:g}", r.cone) for r in rows]  # fmt: skip
    tables.show(header, lines)
    return 0


def layout(
    subject: Subject = None,
    features: Features = "limb",
    env: str | None = None,
    robot: AimFlags = _AIM,
    json_: bool = False,
) -> int:
    """Print what each entry of an observation is and how it turns.

    Args:
        subject: Name of a task (see `euda tasks`), or path of an MJCF file.
        features: What is observed.
        env: Instead of a task: a registered Gymnasium environment that runs on MuJoCo, Id or module:Id.
        robot: A custom robot.
        json_: Print JSON instead of a table.
    """
    fields = find_environment(subject, env, features, None, robot).layout
    print(json.dumps(fields.to_json(), indent=2) if json_ else fields)
    return 0


def certify(
    subject: Subject = None,
    features: Features = "limb",
    cone: str | None = None,
    yaws: int = 4,
    states: int = 60,
    seed: int = 0,
    tolerance: NotNegative = 0.0,
    env: str | None = None,
    robot: AimFlags = _AIM,
    reward: Reward = None,
    json_: bool = False,
) -> int:
    """Test in the simulator whether a yaw changes a task or a model.

    Exit code 0: exact, or within --tolerance; 1: not.

    Args:
        subject: Name of a task, or path of an MJCF file.
        features: What is observed.
        cone: default (as the model has it) or elliptic; by default the task's own.
        yaws: Random yaws per state.
        states: Visited states to compare; others are constructed so that contacts and limits act.
        seed: Seed of states, actions and yaws.
        tolerance: Largest relative error to accept.
        env: Instead of a task: a registered Gymnasium environment that runs on MuJoCo, Id or module:Id.
        robot: A custom robot.
        reward: Custom robot: your module:function, or one of.
        json_: Print JSON instead of a table.
    """
    from euda.symmetry.certificate import certify as examine

    found = find_environment(subject, env, features, cone, robot, reward)
    certificate = examine(found, states=states, yaws=yaws, seed=seed)
    if json_:
        print(json.dumps(certificate.to_json(), indent=2))
    else:
        _print_certificate(certificate)
        if env is not None:
            printing.statement(
                f"not compared: the reward of {certificate.task}, and what else it does in a step but simulate"
            )
        if any(cause.startswith("pyramidal") for cause in certificate.causes):
            printing.statement(f"how: {_OWN_CONE if env is not None else '--cone elliptic, here and for euda train'}")
    return 0 if certificate.verdict.startswith("exact") or certificate.worst <= tolerance else 1


_OWN_CONE = 'an environment keeps its own cone: give it a model file with <option cone="elliptic"/> (often xml_file=)'


def find_environment(subject: str | None, env: str | None, features: str, cone: str | None, robot: AimFlags,
                 reward: str | None = None, payload: float = 0.0) -> Any:  # fmt: skip
    """A task by its name, the robot in a file, or the simulation in a Gymnasium environment."""
    from euda.runs import robot_config, robot_flags
    from euda.tasks.task_env import TaskEnv

    flags = RobotFlags(**dataclasses.asdict(robot), reward=reward)
    if subject is not None and env is not None:
        raise EudaError(f"name {subject!r} or --env {env}, not both")
    if payload and (env is not None or (subject is not None and robot_flags.is_model(subject))):
        raise EudaError(f"--payload {payload:g} is for tasks: put the load into the model of {subject or env!r}")
    if env is not None:
        return robot_config.simulation_of(env, flags, features, cone)
    if subject is None:
        raise flags.without_subject("of what?")
    if not robot_flags.is_model(subject):
        return TaskEnv(subject, features, cone, direction=flags.direction_of_task(subject), payload=payload)
    return robot_config.preview(subject, flags, features, cone)


def _print_certificate(certificate: Certificate) -> None:
    from euda.symmetry.judging.suspects import listed

    c = certificate
    printing.statement(
        f"{c.task}, {c.features} features, {c.cone} cone: {c.states} states"
        f" ({c.states_with_contacts} with frictional contacts) and {c.sought} made on purpose, {c.yaws} yaws each"
    )
    printing.statement(f"base: {c.case_explained}")
    parts = {"dynamics": ("", c.dynamics), **{f"  {name}": (errors.kind, errors) for name, errors in c.fields.items()}}
    if c.reward is not None:
        parts["reward"] = ("", c.reward)
    rows = [
        (name, kind, e.verdict, f"{e.median:.1e}", f"{e.max:.1e}", f"{e.share:.0%}")
        for name, (kind, e) in parts.items()
    ]
    tables.show(("", "kind", "verdict", "median error", "worst error", "wrong"), rows)
    of_change = "error of a step over its change of velocity"
    print(f"{of_change}: median {c.energy.median:.1e}, 90th percentile {c.energy.p90:.1e}")
    for what, share in (("contact pairs", c.coverage.contacts), ("limits", c.coverage.limits)):
        missed = f"; never: {listed(share.missed, 6)}" if share.missed else ""
        printing.statement(f"{what} that acted: {share}{missed}")
    for cause in c.causes:
        printing.statement(f"because: {cause}")
    printing.statement(f"verdict: {c.summary}")


def picture(
    subject: Subject = None,
    *,
    out: Path,
    copies: int = 6,
    group: bool = False,
    width: int = 1280,
    height: int = 720,
    env: str | None = None,
    robot: AimFlags = _AIM,
) -> int:
    """Draw a robot with its turned copies: what augmentation does.

    Args:
        subject: Name of a task, or path of an MJCF file.
        out: The PNG file to write.
        copies: How many robots to draw, the original included.
        group: Draw the images under the elements of the robot's finite group instead (mirrors, exchanged limbs).
        width: Pixels.
        height: Pixels.
        env: Instead of a task: a registered Gymnasium environment that runs on MuJoCo, Id or module:Id.
        robot: A custom robot.
    """
    from euda.media.group_picture import group_picture
    from euda.media.picture import picture as draw
    from euda.media.picture import save_png

    found = find_environment(subject, env, "limb", None, robot)
    save_png(out, lambda: group_picture(found, width, height) if group else draw(found, copies, width, height))
    print(f"wrote {out}")
    return 0
