"""A film of a run's policy, without a screen."""

from __future__ import annotations

import contextlib
import os
import warnings
from collections.abc import Iterator
from pathlib import Path

import imageio_ffmpeg
import numpy as np

from euda.errors import EudaError, InstabilityError
from euda.study import evaluation, storage
from euda.study.environments import Environment
from euda.study.evaluation import Policy
from euda.study.run import Run

_FASTEST = 30  # frames per second: more take long to draw and are hardly seen


def film(
    run: Run, path: Path, episodes: int = 1, seed: int | None = None, width: int = 640, height: int = 480
) -> list[float]:
    """Write episodes of the run's newest policy as an MP4 file; their returns."""
    if path.suffix.lower() != ".mp4":
        raise EudaError(f"a video is an .mp4 file, not {path.name!r}")
    if episodes < 1 or width < 16 or height < 16 or width % 2 or height % 2:
        raise EudaError(
            f"a video needs at least one episode and even sizes, not {episodes} episodes of {width} x {height}"
        )
    environment = evaluation.make_environment(run.config, "rgb_array", width=width, height=height)
    policy, step = evaluation.load_policy(run, environment)
    chosen = evaluation.seeds(run.config.evaluation.seed if seed is None else seed, step, episodes)
    returns: list[float] = []
    with contextlib.closing(environment), storage.readable_errors(path):
        stride = max(1, round(1 / environment.control_timestep / _FASTEST))
        fps = round(1 / environment.control_timestep / stride)
        _encode(path, _frames(environment, policy, chosen, stride, returns), fps, (width, height))
    return returns


def _frames(
    environment: Environment, policy: Policy, seeds: list[int], stride: int, returns: list[float]
) -> Iterator[np.ndarray]:
    """Every `stride`-th frame of one episode per seed; appends each episode's return."""
    unstable = 0
    for seed in seeds:
        observation, _ = environment.reset(seed=seed)
        total = 0.0
        for step in range(environment.episode_steps):
            if step % stride == 0:
                frame = environment.render()
                if frame is not None:
                    yield frame
            try:
                observation, reward, is_terminal, is_truncated, _ = environment.step(policy(observation))
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
    temporary = path.with_name(f".{path.stem}{storage.TEMPORARY}.mp4")
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        writer = imageio_ffmpeg.write_frames(str(temporary), size, fps=fps, quality=7, macro_block_size=2)
        with contextlib.closing(writer):
            with warnings.catch_warnings():  # JAX warns of forks; the child becomes ffmpeg at once
                warnings.filterwarnings("ignore", "os.fork", RuntimeWarning)
                writer.send(None)
            for frame in frames:
                writer.send(np.ascontiguousarray(frame))
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
