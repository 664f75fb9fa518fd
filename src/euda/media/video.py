"""A film of a run's policy, without a screen."""

from __future__ import annotations

import contextlib
import itertools
import os
import warnings
from collections.abc import Iterator
from pathlib import Path

import imageio_ffmpeg
import numpy as np

from euda.body import rendering
from euda.errors import EudaError, InstabilityError
from euda.media import output
from euda.runs import atomic_files, evaluation
from euda.runs.environments import Environment
from euda.runs.evaluation import Policy
from euda.runs.run_folder import Run

_FASTEST = 30  # frames per second: more take long to draw and are hardly seen


def film(
    run: Run, path: Path, episodes: int = 1, seed: int | None = None, width: int = 640, height: int = 480,
    steps: int | None = None,
) -> list[float]:  # fmt: skip
    """Write episodes of the run's newest policy, or the first `steps` of each, as an MP4 file; their returns."""
    if episodes < 1 or width < 16 or height < 16 or width % 2 or height % 2:
        raise EudaError(
            f"a video needs at least one episode and even sizes, not {episodes} episodes of {width} x {height}"
        )
    rendering.check_size(width, height)
    output.check(path, ".mp4", "a video is an .mp4", makes_folder=True)
    environment = evaluation.make_environment(run.config, "rgb_array", width=width, height=height)
    environment.episode_steps = min(steps or environment.episode_steps, environment.episode_steps)
    policy, step = evaluation.load_policy(run, environment)
    chosen = evaluation.seeds(run.config.evaluation.seed if seed is None else seed, step, episodes)
    returns: list[float] = []
    with contextlib.closing(environment), atomic_files.readable_errors(path):
        stride = max(1, round(1 / environment.control_timestep / _FASTEST))
        fps = round(1 / environment.control_timestep / stride)
        _encode(
            path, _frames(environment, policy, run.config.action_repeat, chosen, stride, returns), fps, (width, height)
        )
    return returns


def _frames(
    environment: Environment, policy: Policy, repeat: int, seeds: list[int], stride: int, returns: list[float]
) -> Iterator[np.ndarray]:
    """Every `stride`-th frame of one episode per seed, each action held for `repeat`; appends each episode's return."""
    unstable = 0
    for seed in seeds:
        observation, _ = environment.reset(seed=seed)
        action, total = policy(observation), 0.0
        for step in range(environment.episode_steps):
            if step % repeat == 0:
                action = policy(observation)
            if step % stride == 0:
                frame = environment.render()
                if frame is not None:
                    yield frame
            try:
                observation, reward, is_terminal, is_truncated, _ = environment.step(action)
            except InstabilityError:
                unstable += 1
                break
            total += float(reward)
            if is_terminal or is_truncated:
                break
        returns.append(total)
    evaluation.warn_of_unstable(unstable, len(seeds))


def _encode(path: Path, frames: Iterator[np.ndarray], fps: int, size: tuple[int, int]) -> None:
    """H.264 that browsers play; the file takes its name when it is complete."""
    temporary = path.with_name(f".{path.stem}{atomic_files.TEMPORARY}.mp4")
    first = next(frames)  # before ffmpeg starts: it has much to say about frames that do not come
    try:
        writer = imageio_ffmpeg.write_frames(str(temporary), size, fps=fps, quality=7, macro_block_size=2)
        with contextlib.closing(writer):
            with warnings.catch_warnings():  # JAX warns of forks; the child becomes ffmpeg at once
                warnings.filterwarnings("ignore", "os.fork", RuntimeWarning)
                writer.send(None)
            for frame in itertools.chain([first], frames):
                writer.send(np.ascontiguousarray(frame))
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
