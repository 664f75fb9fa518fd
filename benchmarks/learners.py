"""Programs that learn, each in a process of its own: `python benchmarks/learners.py PROGRAM TASK SEED CORE`.

For each line `go N` it trains for N environment steps, judges the policy on the episodes that judge our own runs at
that step, without noise, and answers with one line of JSON: the step, CPU and wall seconds so far without those of the
judging, and the return of each episode. Everything else counts: imports, compiling, the environment.

Ours are the base `swift` (or `frugal`, where the name says so) with the methods of its table. SBX's agents have SBX's
own defaults and dm_control's own observations (our `joint` features are these, value for value): one update per step,
batches of 256. TD3 explores with noise of deviation 0.1, because without it would not explore. The SimBa policies get
running normalisation of observations, which belongs to SimBa and which SBX leaves to `VecNormalize`. SBX 0.28 has SimBa
policies for SAC, TQC and CrossQ, and none for TD3.
"""

from __future__ import annotations

import functools
import importlib
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

import numpy as np

EPISODES = 5


class Learner(Protocol):
    """What can be trained and asked."""

    def train(self, steps: int) -> None:
        """So many environment steps."""
        ...

    def act(self, observations: np.ndarray) -> np.ndarray:
        """The best actions known [B, m] for observations [B, dim]."""
        ...


class Euda:
    """A method of ours."""

    def __init__(self, task: str, seed: int, method: str, base: str = "swift") -> None:
        from euda.runs import run_folder, trainer
        from euda.runs.resolution import resolve

        config = resolve(task, method, base, seed=seed, overrides={"evaluation": {"episodes": 1}})
        self.features = config.features
        self._folder = tempfile.TemporaryDirectory()
        run = run_folder.Run(Path(self._folder.name), config)
        run.clear()
        self._trainer = trainer.Trainer(run, None)

    def train(self, steps: int) -> None:
        """As a session does."""
        for _ in range(steps):
            self._trainer.advance()
        self._trainer.averages.take()

    def act(self, observations: np.ndarray) -> np.ndarray:
        """The newest policy."""
        return self._trainer.agent.act(observations)


class Sbx:
    """An agent of SBX."""

    features = "joint"

    def __init__(self, task: str, seed: int, agent: str, policy: str = "MlpPolicy", noise: float = 0.0) -> None:
        from euda.tasks.task_env import make

        vectors = importlib.import_module("stable_baselines3.common.vec_env")
        noises = importlib.import_module("stable_baselines3.common.noise")
        environment = vectors.DummyVecEnv([lambda: make(task, self.features)])
        self._normalised = None
        if policy == "SimbaPolicy":
            environment = self._normalised = vectors.VecNormalize(environment, norm_reward=False)
        size = environment.action_space.shape[0]
        more = {"action_noise": noises.NormalActionNoise(np.zeros(size), np.full(size, noise))} if noise else {}
        make_agent = getattr(importlib.import_module("sbx"), agent)
        self._model = make_agent(policy, environment, seed=seed, device="cpu", **more)

    def train(self, steps: int) -> None:
        """The loop of Stable-Baselines3, which goes on where it was."""
        self._model.learn(steps, reset_num_timesteps=False)

    def act(self, observations: np.ndarray) -> np.ndarray:
        """Without noise."""
        seen = observations if self._normalised is None else self._normalised.normalize_obs(observations)
        return self._model.predict(seen, deterministic=True)[0]


Make = Callable[[str, int], Any]
PROGRAMS: dict[str, Make] = {
    **{f"euda {method}": functools.partial(Euda, method=method) for method in ("canonical", "rotate", "limb", "joint")},
    **{
        f"euda frugal {method}": functools.partial(Euda, method=method, base="frugal")
        for method in ("canonical", "joint")
    },
    "SBX SAC": functools.partial(Sbx, agent="SAC"),
    "SBX TD3": functools.partial(Sbx, agent="TD3", noise=0.1),
    "SBX CrossQ": functools.partial(Sbx, agent="CrossQ"),
    "SBX SAC SimBa": functools.partial(Sbx, agent="SAC", policy="SimbaPolicy"),
    "SBX CrossQ SimBa": functools.partial(Sbx, agent="CrossQ", policy="SimbaPolicy"),
    "SBX TQC SimBa": functools.partial(Sbx, agent="TQC", policy="SimbaPolicy"),
}
"""(task, seed) → a learner."""


def judge(environments: list[Any], learner: Learner, step: int) -> list[float]:
    """The return of each episode; the starts are those of `euda evaluate` at that step."""
    seeds = np.random.SeedSequence([0, step]).generate_state(len(environments)).tolist()
    observations = np.stack([env.reset(seed=seed)[0] for env, seed in zip(environments, seeds, strict=True)])
    returns = [0.0] * len(environments)
    for _ in range(environments[0].episode_steps):
        actions = learner.act(observations)
        for i, env in enumerate(environments):
            observations[i], reward, *_ = env.step(actions[i])
            returns[i] += float(reward)
    return returns


def main() -> None:
    program, task, seed, core = sys.argv[1:]
    os.sched_setaffinity(0, {int(core)})
    learner = PROGRAMS[program](task, int(seed))
    from euda.tasks.task_env import make

    environments, step = [make(task, learner.features) for _ in range(EPISODES)], 0
    judging = np.zeros(2)
    begun = time.perf_counter() - time.process_time()  # what came before main counts too
    answer({"ready": program})
    for line in sys.stdin:
        steps = int(line.split()[1])
        learner.train(steps)
        step += steps
        spent = time.process_time(), time.perf_counter() - begun
        returns = judge(environments, learner, step)
        now = time.process_time(), time.perf_counter() - begun
        cpu, wall = np.array(spent) - judging
        judging += np.array(now) - spent
        answer({"step": step, "cpu": round(float(cpu), 2), "wall": round(float(wall), 2), "returns": returns})


def answer(value: dict[str, Any]) -> None:
    print(json.dumps(value), flush=True)


if __name__ == "__main__":
    main()
