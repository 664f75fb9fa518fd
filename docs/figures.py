"""Draw the figures of docs/idea.md into docs/pictures, from the simulator: `.venv/bin/python docs/figures.py`."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import mujoco
import numpy as np
from matplotlib.figure import Figure

from euda import TASKS, TaskEnv, make
from euda.body.layout import Kind, Layout
from euda.body.turn import Turn

PICTURES = Path(__file__).resolve().parent / "pictures"
ORANGE, BLUE, GREEN, GREY = "#d9730d", "#2f6fb3", "#3a8f5c", "#8a8f98"
_YAW = np.pi / 3


def moving(task: str, features: str = "limb", steps: int = 12) -> tuple[np.ndarray, Layout]:
    """An observation of a robot in motion, and its layout."""
    env = make(task, features)
    observation, _ = env.reset(seed=4)
    actions = np.random.default_rng(4).uniform(-1, 1, (steps, *(env.action_space.shape or ())))
    for action in actions:
        observation, *_ = env.step(action)
    return observation, env.layout


def limbs() -> Figure:
    """A cheetah seen from the side, drawn from the numbers of its observation alone."""
    env = make("cheetah_run")
    observation, layout = moving("cheetah_run", steps=40)
    figure, axes = plt.subplots(figsize=(8, 4.4), layout="constrained")
    vectors = {name: field[:, [0, 2]] for name, field in _vectors(observation, layout).items()}
    places, names = vectors["position"], layout.field("position").of
    for place, limb in zip(places, env.morphology.limbs, strict=True):
        if limb.parent is not None:
            axes.plot(*zip(place, places[limb.parent], strict=True), color=GREY, lw=6, alpha=0.3, zorder=1)
    axes.scatter(*places.T, s=60, color=ORANGE, zorder=4, label="position: a limb's centre of mass, from the root's")
    _arrows(axes, places, 0.12 * vectors["velocity"], BLUE, "velocity: of that point, in the world")
    _arrows(axes, np.repeat(places[:1], 3, 0), 0.2 * vectors["root_rotation"], GREEN, "root_rotation: the root's axes")
    _arrows(axes, places[:1] + np.array([0.1, 0.3]), 0.3 * vectors["direction"], GREY, "direction: where to run")
    for name, (x, z) in zip(names, places, strict=True):
        axes.annotate(name, (x, z), (x, z + 0.05), ha="center", va="bottom", fontsize=9)
    floor = -float(observation[layout.slice("height")][0])
    axes.axhline(floor, color="black", lw=1, label="height: the floor is so far below the root's frame")
    axes.set(xlabel="x in the world (m)", ylabel="z in the world (m)", aspect="equal")
    axes.set_xlim(places[:, 0].min() - 0.3, places[:, 0].max() + 0.3)
    axes.set_ylim(floor - 0.1, places[:, 1].max() + 0.45)
    axes.spines[["top", "right"]].set_visible(False)
    figure.legend(frameon=False, fontsize=9, loc="outside lower center", ncols=2)
    return figure


def yaw() -> Figure:
    """The same observation and one turned by 60°, from above; and what every yaw does to every entry."""
    figure, panels = plt.subplots(1, 3, figsize=(11, 4.4), layout="constrained", width_ratios=(1.25, 1, 1))
    observation, layout = moving("hopper3d_hop")
    turned = layout.rotate(observation, _YAW)
    for colour, name, x in ((ORANGE, "as observed", observation), (BLUE, "turned 60°", turned)):
        vectors = _vectors(x, layout)
        places = vectors["position"][:, :2]
        _arrows(panels[0], places, 0.12 * vectors["velocity"][:, :2], colour, None)
        _arrows(panels[0], places[:1], 0.3 * vectors["direction"][:, :2], colour, None, width=0.015, alpha=0.3)
        panels[0].plot(*places.T, "o-", color=colour, lw=3, alpha=0.8, label=name)
    panels[0].set(title="from above: limbs, velocities, direction", xlabel="x (m)", ylabel="y (m)", aspect="equal")
    panels[0].set(xlim=(-0.25, 0.4), ylim=(-0.25, 0.4))
    panels[0].legend(frameon=False, fontsize=9, loc="upper left")
    for panel, features in zip(panels[1:], ("limb", "joint"), strict=True):
        _strip(panel, *moving("hopper3d_hop", features), features)
    return figure


def _strip(axes: Any, observation: np.ndarray, layout: Layout, features: str) -> None:
    """Change of every entry over all yaws: white is none."""
    yaws = np.linspace(0, 2 * np.pi, 181)
    rows = layout.rotate(np.tile(observation, (len(yaws), 1)).astype(np.float64), yaws)
    change = (rows - rows[0]).T
    change /= np.maximum(1e-12, np.abs(change).max(axis=1, keepdims=True))
    moves = np.abs(rows - rows[0]).max(axis=0) > 1e-9
    change[~moves] = 0
    axes.imshow(change, aspect="auto", cmap="PuOr", vmin=-1, vmax=1, extent=(0, 360, layout.dim, 0))
    for field in layout:
        axes.axhline(layout.slices[field.name].stop, color="black", lw=0.4)
    labelled = [field for field in layout if field.dim >= layout.dim / 30]
    centres = [(layout.slices[f.name].start + layout.slices[f.name].stop) / 2 for f in labelled]
    axes.set_yticks(centres, [field.name for field in labelled], fontsize=7)
    axes.set_xticks([0, 90, 180, 270, 360])
    axes.set(title=f"{features}: {int(turning(layout).sum())} of {layout.dim} entries turn", xlabel="yaw (°)")


def turning(layout: Layout) -> np.ndarray:
    """Which entries a yaw can change [dim]."""
    still = {Kind.VECTOR: (True, True, False), Kind.PLANAR: (True, True), Kind.HEADING: (True,),
             Kind.QUATERNION: (True,) * 4, Kind.SCALAR: (False,)}  # fmt: skip
    return np.array([entry for field in layout for _ in range(field.count) for entry in still[field.kind]])


def counts() -> Figure:
    """How many entries of each task's observation a yaw changes."""
    figure, axes = plt.subplots(figsize=(8, 4.2), layout="constrained")
    rows = np.arange(len(TASKS))[::-1]
    for offset, features, colour in ((0.2, "limb", ORANGE), (-0.2, "joint", BLUE)):
        layouts = [make(task, features).layout for task in TASKS]
        sizes, turned = [layout.dim for layout in layouts], [int(turning(layout).sum()) for layout in layouts]
        axes.barh(rows + offset, sizes, 0.36, color=colour, alpha=0.25)
        axes.barh(rows + offset, turned, 0.36, color=colour, label=f"{features}: a yaw changes these (pale: others)")
        for row, size, count in zip(rows, sizes, turned, strict=True):
            axes.annotate(f"{count} of {size}", (size + 2, row + offset), va="center", fontsize=8)
    axes.set_yticks(rows, list(TASKS))
    axes.set(xlabel="entries of the observation")
    axes.spines[["top", "right"]].set_visible(False)
    figure.legend(frameon=False, fontsize=9, loc="outside lower center", ncols=2)
    return figure


def twins(steps: int = 40) -> Figure:
    """How far a world and its turned twin drift apart under the same actions, with both friction cones."""
    figure, axes = plt.subplots(figsize=(8, 4), layout="constrained")
    lines = (("quadruped_run", "default", ORANGE, "-"), ("quadruped_run", "elliptic", ORANGE, ":"),
             ("hopper3d_hop", "elliptic", BLUE, ":"), ("humanoid_run", "default", GREEN, "-"),
             ("humanoid_run", "elliptic", GREEN, ":"))  # fmt: skip
    for task, cone, colour, style in lines:
        errors = drift(task, cone, steps)
        name = f"{task}, {'pyramidal' if cone == 'default' else cone} cone"
        axes.semilogy(range(1, steps + 1), np.maximum(errors, 1e-17), style, color=colour, label=name)
    axes.axhline(1e-9, color=GREY, lw=1)
    axes.annotate("the certificate's limit after one step", (steps, 2e-9), ha="right", fontsize=9, color=GREY)
    axes.set(xlabel="control steps with the same actions", ylabel="largest relative difference", xlim=(0, steps))
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, fontsize=9, loc="center left", bbox_to_anchor=(1.0, 0.5))
    return figure


def drift(task: str, cone: str, steps: int, seed: int = 3) -> np.ndarray:
    """Largest difference [steps] between the turned observation and that of the turned world, of the largest entry."""
    original, turned = TaskEnv(task, cone=cone), TaskEnv(task, cone=cone)
    original.reset(seed=seed)
    turned.reset(seed=seed)
    robot, data, turn = turned.robot, turned.data, Turn(_YAW)
    turn.model(robot)
    turn.state(robot, data.qpos, data.qvel, data.qacc_warmstart)
    turn.direction(robot)
    mujoco.mj_step1(turned.model, data)
    errors = []
    for action in np.random.default_rng(seed).uniform(-1, 1, (steps, original.model.nu)):
        original.step(action)
        turned.step(action)
        expected = original.layout.rotate(original.observer.observe_exactly(), _YAW)
        errors.append(np.abs(turned.observer.observe_exactly() - expected).max() / np.abs(expected).max())
    return np.array(errors)


def _vectors(observation: np.ndarray, layout: Layout) -> dict[str, np.ndarray]:
    """The vector fields of an observation, [count, 3] each."""
    return {f.name: observation[layout.slice(f.name)].reshape(-1, 3) for f in layout if f.kind is Kind.VECTOR}


def _arrows(axes: Any, tails: np.ndarray, tips: np.ndarray, colour: str, label: str | None, width: float = 0.005,
            alpha: float = 1.0) -> None:  # fmt: skip
    axes.quiver(*tails.T, *tips.T, color=colour, angles="xy", scale_units="xy", scale=1, width=width, alpha=alpha,
                label=label, zorder=3)  # fmt: skip


FIGURES: dict[str, Callable[[], Figure]] = {
    "idea-limbs": limbs,
    "idea-yaw": yaw,
    "idea-entries": counts,
    "idea-twins": twins,
}


def main(folder: Path = PICTURES) -> None:
    """Write every figure."""
    for name, draw in FIGURES.items():
        figure = draw()
        figure.savefig(folder / f"{name}.png", dpi=110, metadata={"Software": None})
        plt.close(figure)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else PICTURES)
