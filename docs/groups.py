"""Write docs/groups.md and its pictures: the group of every task and of some robots, as found and as tried.

    .venv/bin/python docs/groups.py            # all of it, some minutes
    .venv/bin/python docs/groups.py star3      # the pictures of these alone

The robots are those of tests/symmetric_robots.py, written so that their groups are known.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import mujoco
from PIL import Image

from euda import TASKS, ModelEnv, make
from euda.media.group_picture import group_picture
from euda.symmetry.examination import examine
from euda.symmetry.examined import ElementVerdict, Examined
from euda.tasks.base_env import LimbEnv

DOCS = Path(__file__).resolve().parent
sys.path.insert(0, str(DOCS.parent / "tests"))

from symmetric_robots import rower, star  # noqa: E402  # pyright: ignore[reportMissingImports]

SIZE, COLOURS, STATES = (960, 540), 128, 60
ROBOTS: dict[str, tuple[Callable[[], mujoco.MjModel], str]] = {
    "star3": (lambda: star(3), "three legs: the symmetries of a triangle"),
    "star4-turned": (lambda: star(4, turned=30.0), "four legs, drawn 30° askew in the frame of their disc"),
    "star5": (lambda: star(5), "five legs"),
    "star6": (lambda: star(6), "six legs"),
    "star3-chiral": (lambda: star(3, chiral=True), "three legs bent to one side: turns, and no mirror"),
    "star4-ball": (lambda: star(4, joint="ball"), "four legs on ball joints"),
    "star4-payload": (lambda: star(4, payload=0.01), "four legs and a load of 1 % of the mass beside the centre"),
    "rower": (rower, "closed loops, ball joints, sensors in skew frames"),
}
HEAD = """# Groups in pictures

The finite group of every task and of some robots, as `euda symmetry` finds it in the model and tries it in the
simulator. Behind each image stands the same, turned by a yaw; of large groups the first eight elements are shown. Every
limb keeps its colour on the way to its image, so an image must look like the robot seen in a mirror (or turned),
colours included. Draw your own robot:

```sh
euda picture robot.xml --group --out group.png
```

This page and its pictures are written by `docs/groups.py`.
"""


def main(names: list[str]) -> None:
    """Draw, try, write."""
    envs = {name: (lambda name=name: make(name), "") for name in TASKS}
    robots = {name: (lambda of=of: ModelEnv(of(), allow_loops=True), words) for name, (of, words) in ROBOTS.items()}
    for name, (env, _) in (envs | robots).items():
        if not names or name in names:
            _draw(env(), name)
    if not names:
        parts = [HEAD, "## Tasks\n", _tasks(), *(_section(name, "") for name in TASKS)]
        parts += ["## Robots written for the purpose\n", _robots()]
        parts += [_section(name, words) for name, (_, words) in ROBOTS.items()]
        (DOCS / "groups.md").write_text("\n".join(parts), encoding="utf-8")


def _draw(env: LimbEnv, name: str) -> None:
    picture = Image.fromarray(group_picture(env, *SIZE))
    picture.quantize(COLOURS, dither=Image.Dither.NONE).save(DOCS / "pictures" / f"group-{name}.png", optimize=True)


def _section(name: str, words: str) -> str:
    return f"### {name}\n\n{words + chr(10) * 2 if words else ''}![Images of {name}](pictures/group-{name}.png)\n"


def _tasks() -> str:
    lines = [
        f"Tried in {STATES} states and others made on purpose, with both cones. Errors are those of a step, as a share"
        " of its change.\n",
        "| task | element | elliptic | worst | pyramidal | worst | reward |",
        "|---|---|---|---|---|---|---|",
    ]
    for task in TASKS:
        both = [examine(make(task, cone=cone), states=STATES) for cone in ("elliptic", "default")]
        for elliptic, pyramidal in zip(both[0].verdicts[1:], both[1].verdicts[1:], strict=True):
            verdicts = " | ".join(f"{_verdict(one)} | {_short(one.max)}" for one in (elliptic, pyramidal))
            lines.append(f"| {task} | {elliptic.element.name} | {verdicts} | {_reward(elliptic)} |")
    return "\n".join(lines) + "\n"


def _robots() -> str:
    lines = ["| robot | order | verdicts | worst error |", "|---|---|---|---|"]
    for name, (of, _) in ROBOTS.items():
        found: Examined = examine(ModelEnv(of(), allow_loops=True), states=STATES)
        verdicts = ", ".join(sorted({_verdict(one) for one in found.verdicts[1:]}))
        worst = max(one.max for one in found.verdicts)
        lines.append(f"| {name} | {found.group.order} | {verdicts} | {_short(worst)} |")
    return "\n".join(lines) + "\n"


def _short(error: float) -> str:
    return f"{error:.0e}" if error else "0"


def _verdict(one: ElementVerdict) -> str:
    return "trivial" if one.element.is_trivial else one.verdict


def _reward(one: ElementVerdict) -> str:
    return "kept" if one.is_of_the_task else "not kept"


if __name__ == "__main__":
    main(sys.argv[1:])
