"""The SEGNN's update on one core, beside the perceptron's and beside the full network of e3nn-jax, in the same run.

    taskset -c 0 python benchmarks/segnn.py

Every case is the same DDPG with other networks: a batch of 256 transitions of reacher_hard, the actor and the
targets at every second update. The cases take turns, a few updates each, round after round, so that a busy
machine slows all of them alike: compare ratios. Rates come from CPU time, which leaves out what other processes
took; wall time is written down too. The full network is `tests/segnn_oracle.py`, jitted: e3nn-jax's spherical
harmonics and tensor products, all components, all paths.

Hours per million steps beside the published 70 are hours of updates and actions alone; the published ones are a
V100's, with other code and with evaluations.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))
os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import jax
import numpy as np
from recording import machine as describe
from recording import write
from segnn_oracle import Oracle  # pyright: ignore[reportMissingImports] - in tests

from euda.agents.agent import Agent
from euda.agents.ddpg import DDPG
from euda.agents.network_settings import SEGNNConfig
from euda.agents.networks import Network, Networks, mlp_networks, size
from euda.agents.segnn.graph import TwoPoints
from euda.agents.segnn.network import segnn_networks
from euda.agents.settings import DDPGConfig
from euda.replay.buffer import ReplayBuffer
from euda.tasks.task_env import make

ROOT = Path(__file__).resolve().parent.parent
BATCH, PUBLISHED_HOURS = 256, 70.0
PER_TURN = {"naive": 4}
"""Updates of one turn; 10 unless said otherwise. Even, so that actor updates are counted in full."""
COMPILE = """
import sys, time
from euda.runs import machine
machine.use_one_thread()
machine.cache_compilations(sys.argv[1])
import numpy as np
from euda.agents.agent import Agent
from euda.runs.evaluation import make_algorithm, make_environment
from euda.runs.methods import find
from euda.runs.config import RunConfig
from euda.replay.buffer import Transition
config = RunConfig("reacher_hard", network="segnn")
environment = make_environment(config)
agent = Agent.initialise(make_algorithm(config, environment.layout, 2), 0)
zeros = lambda *shape: np.zeros(shape, np.float32)
dim = environment.layout.dim
batch = Transition(zeros(256, dim), zeros(256, 2), zeros(256), zeros(256), zeros(256, dim))
begin = time.process_time()
for _ in range(2):
    agent, metrics = agent.update(batch, 5000)
float(metrics["critic_loss"])
print(time.process_time() - begin)
"""


def networks() -> dict[str, Networks]:
    """Makers of actor and critic by case."""
    graph = TwoPoints(make("reacher_hard", "limb").layout, "finger")
    paper = SEGNNConfig()
    naive = Networks(
        actor=lambda features, outputs: Oracle(outputs, 0, paper, graph),
        critic=lambda features, actions, outputs: Oracle(outputs, actions, paper, graph),
    )
    return {
        "mlp": mlp_networks(),
        "paper": segnn_networks(graph, paper),
        "axial": segnn_networks(graph, SEGNNConfig(parity="axial")),
        "naive": naive,
    }


def filled_buffer(steps: int = 5000) -> ReplayBuffer:
    """Episodes of the reacher under random actions."""
    draw, environment = np.random.default_rng(0), make("reacher_hard", "limb")
    buffer = ReplayBuffer(environment.layout.dim, 2, steps + 100)
    for episode in range(steps // 1000):
        buffer.start(environment.reset(seed=episode)[0])
        for _ in range(1000):
            action = draw.uniform(-1, 1, 2).astype(np.float32)
            observation, reward, *_ = environment.step(action)
            buffer.step(action, float(reward), 1.0, observation)
    return buffer


def case(name: str, rule: DDPG, buffer: ReplayBuffer) -> Iterator[tuple[float, float, float]]:
    """CPU seconds of one update, wall seconds of one update, CPU seconds of one action; for ever."""
    agent, draw, step = Agent.initialise(rule, 0), np.random.default_rng(0), 10_000
    observation, repeat = np.zeros(rule.features, np.float32), PER_TURN.get(name, 10)
    agent.act(observation)
    while True:
        begin, wall = time.process_time(), time.perf_counter()
        for _ in range(repeat):
            step += 1
            agent, _ = agent.update(buffer.sample(draw, BATCH), step)
        jax.block_until_ready(agent.state)
        cpu, wall = time.process_time() - begin, time.perf_counter() - wall
        begin = time.process_time()
        for _ in range(repeat):
            agent.explore(observation, draw, step)
        yield cpu / repeat, wall / repeat, (time.process_time() - begin) / repeat


def measure(cases: dict[str, Networks], rounds: int) -> dict[str, dict[str, Any]]:
    """One row for each case; ratios are taken within each round first."""
    buffer, config, features = filled_buffer(), DDPGConfig(learning_rate=5e-5), make("reacher_hard", "limb").layout.dim
    rules = {name: DDPG.make(features, 2, config, maker) for name, maker in cases.items()}
    turns = {name: case(name, rule, buffer) for name, rule in rules.items()}
    first = {}
    for name, turn in turns.items():
        begin = time.perf_counter()
        next(turn)
        first[name] = time.perf_counter() - begin
        print(f"{name}: compiled and run once in {first[name]:.1f} s")
    seconds = {name: np.zeros((rounds, 3)) for name in turns}
    for i in range(rounds):
        for name, turn in turns.items():
            seconds[name][i] = next(turn)
    return {name: row(rules[name], seconds, name) | {"first_turn_s": round(first[name], 1)} for name in turns}


def networks_of(rule: DDPG) -> dict[str, Network]:
    """Actor and critic of a rule."""
    return {"actor": rule.actor, "critic": rule.critics.network}


def row(rule: DDPG, seconds: dict[str, np.ndarray], name: str) -> dict[str, Any]:
    """Medians over the rounds."""
    cpu, wall, act = np.median(seconds[name], 0)
    hours = (cpu + act) * 1e6 / 3600
    ratio = lambda other: round(float(np.median(seconds[name][:, 0] / seconds[other][:, 0])), 3)  # noqa: E731
    return {
        "parameters": {name: size(net.initialise(jax.random.key(0))) for name, net in networks_of(rule).items()},
        "update_ms": round(1e3 * float(cpu), 3),
        "update_ms_quartiles": [round(1e3 * q, 3) for q in np.quantile(seconds[name][:, 0], (0.25, 0.75))],
        "update_wall_ms": round(1e3 * wall, 3),
        "act_ms": round(1e3 * act, 3),
        "time_over_mlp": ratio("mlp"),
        **({"times_faster_than_naive": round(1 / ratio("naive"), 2)} if "naive" in seconds else {}),
        "hours_per_million_steps": round(hours, 2),
        "published_hours_over_ours": round(PUBLISHED_HOURS / hours, 1),
    }


def compilation() -> dict[str, float]:
    """CPU seconds of the first two updates in a fresh process, without and with what an earlier one compiled."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-c", COMPILE, folder]
        kept = {name: value for name, value in os.environ.items() if name != "JAX_COMPILATION_CACHE_DIR"}
        environment = {**kept, "PYTHONPATH": str(ROOT / "src")}
        runs = [subprocess.run(command, env=environment, capture_output=True, text=True, check=True) for _ in range(2)]
    cold, cached = (float(run.stdout) for run in runs)
    return {"cold_s": round(cold, 2), "cached_s": round(cached, 2)}


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=40, help="turns of every case")
    parser.add_argument("--cases", nargs="+", default=["mlp", "paper", "axial", "naive"])
    parser.add_argument("--no-write", action="store_true", help="print only")
    arguments = parser.parse_args()
    machine_before = {**describe(), "jax": jax.__version__, "cores_used": len(os.sched_getaffinity(0))}
    rows = measure({name: maker for name, maker in networks().items() if name in arguments.cases}, arguments.rounds)
    for name, values in rows.items():
        print(name, values)
    if not arguments.no_write:
        figures = {"machine": machine_before, "batch": BATCH, "published_hours_per_million_steps": PUBLISHED_HOURS}
        write("segnn", figures | {"cases": rows, "compilation_paper": compilation()})


if __name__ == "__main__":
    main()
