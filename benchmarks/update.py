"""Updates per second on one core, beside the bound that the machine's matrix products set, measured in the same run.

    taskset -c 0 python benchmarks/update.py --out results/update.json

Everything is measured in turns (a few updates of each case, round after round), so that a busy machine slows
all cases alike: compare ratios. Rates come from CPU time, which on one free core is wall time (both are
written down) and on a shared one leaves out what other processes took. An update here is what a training step
does without the environment: sample a batch, augment and learn in one jitted call, refresh the policy, act once.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import jax
import numpy as np

from euda.agents.agent import Agent
from euda.agents.ddpg import DDPG
from euda.agents.sac import SAC
from euda.body.layout import Field, Kind, Layout
from euda.replay.augmentation import make_augmentation
from euda.replay.buffer import ReplayBuffer
from euda.replay.settings import AugmentationConfig

BATCH, HIDDEN = 256, 256
SIZES = {17: 6, 66: 6, 182: 21}  # features and actions of cheetah (joint), cheetah (limb), humanoid (limb)


def layout_of(features: int) -> Layout:
    """As many world vectors as fit, the rest scalars: like a limb layout."""
    vectors = max(1, features // 3 - 2)
    return Layout((Field("vectors", Kind.VECTOR, vectors), Field("scalars", Kind.SCALAR, features - 3 * vectors)))


def filled_buffer(features: int, actions: int, steps: int = 20_000) -> ReplayBuffer:
    """Episodes of 1000 steps of random numbers."""
    draw = np.random.default_rng(0)
    observations = draw.normal(size=(1001, features)).astype(np.float32)
    buffer = ReplayBuffer(features, actions, steps + 100)
    for _ in range(steps // 1000):
        buffer.start(observations[0])
        for i in range(1000):
            buffer.step(draw.uniform(-1, 1, actions), draw.uniform(), 1.0, observations[i + 1])
    return buffer


class Sizes(NamedTuple):
    """What the work of an update depends on beside features and actions."""

    batch: int = BATCH
    hidden: int = HIDDEN
    """Units of each of the two hidden layers."""
    actor_every: int = 2
    """The actor learns at every so many updates."""


def gemm_flop(
    features: int, actions: int, critics: int, outputs: int, target_actor: bool = True, sizes: Sizes | None = None
) -> float:
    """Multiplications and additions of the matrix products that one average update cannot do without.

    Target: actor and critics forward. Critic: forward, gradient of all weights and of the hidden layer.
    Actor, when it learns: forward and the same gradients, critics forward, and backward to the action only.
    """
    sizes = sizes or Sizes()
    h, d, m = sizes.hidden, features, actions
    actor, critic = d * h + h * h + h * outputs, (d + m) * h + h * h + h
    actor_back, critic_back = actor + h * h + h * outputs, critic + h * h + h
    every = (actor if target_actor else 0) + critics * (critic + critic + critic_back)
    second = actor + actor_back + critics * (critic + h + h * h + m * h)
    return 2 * sizes.batch * (every + second / sizes.actor_every)


def gemm_case() -> Callable[[], float]:
    """Floating point operations per second of a 256 x 256 x 256 product in NumPy, the best of three orientations."""
    a, b = (np.random.default_rng(i).normal(size=(BATCH, HIDDEN)).astype(np.float32) for i in range(2))
    pairs = ((a, b), (a, b.T), (a.T, b))

    def best() -> float:
        rates = []
        for left, right in pairs:
            begin = time.process_time()
            for _ in range(8):
                np.dot(left, right)
            rates.append(8 * 2 * BATCH * HIDDEN * HIDDEN / (time.process_time() - begin))
        return max(rates)

    return best


def update_case(rule: Any, augmentation: AugmentationConfig, buffer: ReplayBuffer) -> Iterator[tuple[float, float]]:
    """Seconds per update of CPU and of wall, for ever; each item is the mean over a few updates."""
    agent = Agent.initialise(rule, 0, make_augmentation(augmentation, layout_of(rule.features)))
    draw, step, repeat = np.random.default_rng(0), 0, 10
    observation = np.zeros(rule.features, np.float32)
    while True:
        begin, wall = time.process_time(), time.perf_counter()
        for _ in range(repeat):
            step += 1
            agent, _ = agent.update(buffer.sample(draw, BATCH), 10_000 + step)
            agent.explore(observation, draw, 10_000 + step)
        jax.block_until_ready(agent.state)
        yield (time.process_time() - begin) / repeat, (time.perf_counter() - wall) / repeat


def part_cases(features: int, buffer: ReplayBuffer) -> dict[str, Callable[[], Any]]:
    """The small parts of a step, on their own."""
    agent = Agent.initialise(DDPG.make(features, SIZES[features]), 0)
    draw, one, ten = np.random.default_rng(0), np.zeros(features, np.float32), np.zeros((10, features), np.float32)
    return {
        "sample": lambda: buffer.sample(draw, BATCH),
        "act": lambda: agent.act(one),
        "act_10": lambda: agent.act(ten),
        "explore": lambda: agent.explore(one, draw, 10_000),
        "new_policy": lambda: Agent(agent.program, agent.state, agent.key).policy,
    }


def microseconds(call: Callable[[], Any], repeat: int = 200) -> float:
    """Median over ten chunks."""
    chunks = []
    for _ in range(10):
        begin = time.process_time()
        for _ in range(repeat // 10):
            call()
        chunks.append((time.process_time() - begin) / (repeat // 10))
    return float(np.median(chunks) * 1e6)


def measure(rounds: int, sizes: list[int]) -> list[dict[str, Any]]:
    """All cases in turns; one row each."""
    rows, gemm = [], gemm_case()
    for features in sizes:
        actions, buffer = SIZES[features], filled_buffer(features, SIZES[features])
        cases, flops = (
            {},
            {"ddpg": gemm_flop(features, actions, 1, actions), "sac": gemm_flop(features, actions, 2, 2 * actions)},
        )
        for name, rule in (("ddpg", DDPG.make(features, actions)), ("sac", SAC.make(features, actions))):
            for augment in ("none", "rotate"):
                cases[name, augment] = update_case(rule, AugmentationConfig(augment), buffer)
        for case in cases.values():
            next(case)
            next(case)
        seconds = {key: [] for key in cases}
        rates = []
        for _ in range(rounds):
            rates.append(gemm())
            for key, case in cases.items():
                seconds[key].append(next(case))
        parts = {name: round(microseconds(call), 1) for name, call in part_cases(features, buffer).items()}
        bounds = {name: np.array(rates) / flop for name, flop in flops.items()}
        for (name, augment), values in seconds.items():
            rows.append(
                row(
                    features,
                    name,
                    augment,
                    np.array(values),
                    bounds[name],
                    np.array(seconds[name, "none"])[:, 0],
                    rates,
                )
                | {"microseconds": parts}
            )
    return rows


def row(
    features: int, agent: str, augment: str, seconds: Any, bound: Any, plain: Any, rates: list[float]
) -> dict[str, Any]:
    """Medians over the rounds; ratios are taken within each round first. `seconds` is [rounds, (CPU, wall)]."""
    seconds, wall = seconds.T
    return {
        "features": features,
        "agent": agent,
        "augmentation": augment,
        "updates_per_second": round(float(np.median(1 / seconds)), 1),
        "wall_updates_per_second": round(float(np.median(1 / wall)), 1),
        "bound_per_second": round(float(np.median(bound)), 1),
        "share_of_bound": round(float(np.median(1 / seconds / bound)), 3),
        "time_over_no_augmentation": round(float(np.median(seconds / plain)), 3),
        "gemm_gflops": round(float(np.median(rates)) / 1e9, 1),
    }


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, help="JSON file to write")
    parser.add_argument("--rounds", type=int, default=30, help="rounds of ten updates per case")
    parser.add_argument("--features", type=int, nargs="+", default=list(SIZES), choices=list(SIZES))
    arguments = parser.parse_args()
    rows = measure(arguments.rounds, arguments.features)
    for line in rows:
        print({key: value for key, value in line.items() if key != "microseconds"})
    for features in arguments.features:
        print(features, next(line["microseconds"] for line in rows if line["features"] == features))
    machine = {
        "cpu": platform.processor() or platform.machine(),
        "cores": sorted(os.sched_getaffinity(0)),
        "load": os.getloadavg(),
    }
    versions = {"python": platform.python_version(), "jax": jax.__version__, "numpy": np.__version__}
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    arguments.out.write_text(
        json.dumps({"machine": machine, "versions": versions, "batch": BATCH, "hidden": HIDDEN, "rows": rows}, indent=1)
    )


if __name__ == "__main__":
    main()
