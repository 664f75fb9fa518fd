"""Draw the README's animation: the same robot trained without symmetry and with it, side by side, at the same steps.

    .venv/bin/python docs/animation.py --without docs/learning/limb --with docs/learning/canonical --seconds 6

Each side takes one run, or one for each stage of training (policies after 20 000, 50 000 and 100 000 steps, say);
stages follow each other. What is written on a frame comes from the runs.
"""

from __future__ import annotations

import argparse
import itertools
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import mujoco
import numpy as np
from PIL import Image, ImageDraw, ImageFont

from euda.body import rendering
from euda.body.robot import Robot
from euda.media import framing, output
from euda.runs import evaluation, run_folder
from euda.runs.run_folder import Run

PICTURES = Path(__file__).resolve().parent / "pictures"
WIDTH, HEIGHT, FPS = 300, 200, 15
LARGEST = 1_500_000
"""Bytes: a README should open at once."""
_BACKGROUND, _INK = (255, 255, 255), (60, 60, 60)
_BANNER = 22  # pixels above each side


def frames(run: Run, seconds: float, seed: int = 0, width: int = WIDTH, height: int = HEIGHT) -> Iterator[np.ndarray]:
    """An episode of a run's policy [height, width, 3], at `FPS`; one that ends early stays where it is."""
    environment = evaluation.make_environment(run.config)
    policy, _ = evaluation.load_policy(run, environment)
    observation, _ = environment.reset(seed=seed)
    robot, is_over, shown = environment.robot, False, 0
    renderer, camera = rendering.Renderer(robot.model, width, height), _camera(robot)
    try:
        for step in range(round(seconds / environment.control_timestep)):
            if step * environment.control_timestep * FPS >= shown:
                shown += 1
                camera.lookat[:2] = robot.data.subtree_com[robot.morphology.mount, :2]
                yield renderer.draw(robot.data, camera)
            if not is_over:
                observation, _, is_terminal, is_truncated, _ = environment.step(policy(observation))
                is_over = is_terminal or is_truncated
    finally:
        renderer.close()


def _camera(robot: Robot) -> mujoco.MjvCamera:
    """One that goes with the robot, near enough to see its legs."""
    corners = framing.corners(robot.model, robot.data, framing.geoms_of(robot.model, robot.morphology.mount))
    camera = mujoco.MjvCamera()
    camera.distance, camera.azimuth, camera.elevation = 1.9 * float(np.ptp(corners, axis=0).max()), 120.0, -18.0
    camera.lookat[:] = corners.mean(axis=0)
    return camera


def caption(run: Run, side: str) -> str:
    """What a side shows: how it was trained, for how long, and how well it does."""
    status = run_folder.status(run)
    gained = "" if status.last_return is None else f", return {status.last_return:.0f}"
    steps = f"{run.config.steps:,}".replace(",", " ")
    return f"{side}: {steps} steps{gained}"


def beside(left: np.ndarray, right: np.ndarray, texts: Sequence[str]) -> Image.Image:
    """Two frames with a line of text above each."""
    height, width = left.shape[:2]
    picture = Image.new("RGB", (2 * width + 4, height + _BANNER), _BACKGROUND)
    pen, font = ImageDraw.Draw(picture), ImageFont.load_default(13)
    for number, (frame, text) in enumerate(zip((left, right), texts, strict=True)):
        picture.paste(Image.fromarray(frame), (number * (width + 4), _BANNER))
        pen.text((number * (width + 4) + 6, 3), text, fill=_INK, font=font)
    return picture


def animate(without: Sequence[Run], with_: Sequence[Run], out: Path, seconds: float = 4.0) -> int:
    """Write the animation, stage after stage; its bytes."""
    output.check(out, ".webp", "an animation is a .webp")
    pictures = [
        beside(left, right, (caption(first, "without symmetry"), caption(second, "with symmetry")))
        for first, second in zip(without, with_, strict=True)
        for left, right in zip(frames(first, seconds), frames(second, seconds), strict=True)
    ]
    options = {"save_all": True, "append_images": pictures[1:], "duration": round(1000 / FPS), "loop": 0}
    for quality in itertools.count(70, -15):
        pictures[0].save(out, quality=quality, method=4, **options)
        if out.stat().st_size <= LARGEST or quality <= 25:
            return out.stat().st_size
    raise AssertionError


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--without", nargs="+", type=Path, required=True, help="runs without symmetry, by stage")
    parser.add_argument("--with", nargs="+", type=Path, required=True, dest="with_", help="runs with it, as many")
    parser.add_argument("--out", type=Path, default=PICTURES / "learning.webp")
    parser.add_argument("--seconds", type=float, default=4.0, help="of each stage")
    given = parser.parse_args()
    if len(given.without) != len(given.with_):
        parser.error(f"as many runs on both sides, not {len(given.without)} and {len(given.with_)}")
    without, with_ = ([run_folder.load(folder) for folder in side] for side in (given.without, given.with_))
    size = animate(without, with_, given.out, given.seconds)
    sys.stdout.write(f"wrote {given.out} ({size / 1e6:.2f} MB)\n")


if __name__ == "__main__":
    main()
