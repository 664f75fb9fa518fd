"""Environment steps per second of the whole training loop, beside other programs and the machine's bound.

    python benchmarks/training.py [--peers build/peers/bin/python] [--tasks cheetah_run …] [--rounds 12]
                                  [--before CHECKOUT [--name FILE]]

Each program is a process pinned to one core and is run in turns, a window of 250 steps each, so that what else
happens on the machine slows all alike; a program that is not installed is listed as missing (`make bench-peers`
installs them). Speeds are medians over windows, of wall time and of CPU time (on a free core these agree; on a
busy one compare the second). The bound is the time that the matrix products of a step's updates need at the speed
NumPy's product of two 256 × 256 matrices reaches in the same turn; for the base `swift` those of its own sizes. Then
two runs on two cores, at the same time and one after the other, and what evaluation and checkpoints cost.

With `--before`, another checkout of this repository runs in turns with this one and nothing else does: the ratio
of every pair of windows says whether a change made training slower.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

import recording
import update
import workers
from processes import Worker

TASKS = ("cheetah_run", "hopper3d_hop", "humanoid_run")
WINDOW, WARM_UP = 250, 750
SCRIPT = "workers.py"
_HERE = Path(__file__).resolve().parent


def start(program: str, task: str, core: int, peers: str) -> Worker | str:
    """The worker after its warm-up, or why there is none."""
    python = sys.executable if program.startswith("euda") else peers
    if not Path(python).exists():
        return "not installed: make bench-peers"
    try:
        worker = Worker(SCRIPT, (program, task, core), python)
        worker.ask(f"run {WARM_UP}")
    except RuntimeError as error:
        return f"does not run: {error}"
    return worker


def beside_peers(task: str, core: int, rounds: int, peers: str) -> list[dict[str, Any]]:
    """One row per program."""
    started = {program: start(program, task, core, peers) for program in workers.PROGRAMS}
    running = {program: worker for program, worker in started.items() if isinstance(worker, Worker)}
    windows: dict[str, list[dict[str, Any]]] = {program: [] for program in running}
    gemm, rates = update.gemm_case(), []
    for _ in range(rounds):
        rates.append(gemm())
        for program, worker in running.items():
            windows[program].append(worker.ask(f"run {WINDOW}"))
    for worker in running.values():
        worker.close()
    rate = statistics.median(rates)
    bounds = {program: rate / flop(task, program if program in workers.EUDA else "euda") for program in running}
    rows = [{"program": program, "task": task, **speeds(windows[program], bounds[program])} for program in running]
    return rows + [{"program": p, "task": task, "missing": why} for p, why in started.items() if isinstance(why, str)]


def beside_before(task: str, core: int, rounds: int, before: Path) -> dict[str, Any]:
    """Run this checkout and another one in turns: medians of both, and of the ratio within a turn."""
    roots = {"before": before, "now": _HERE.parent}
    asked = ("euda rotate", task, core)
    running = {name: Worker(SCRIPT, asked, sys.executable, root) for name, root in roots.items()}
    windows: dict[str, list[dict[str, Any]]] = {name: [] for name in running}
    for worker in running.values():
        worker.ask(f"run {WARM_UP}")
    for turn in range(rounds):
        for name, worker in list(running.items())[:: -1 if turn % 2 else 1]:  # neither is always the first
            windows[name].append(worker.ask(f"run {WINDOW}"))
    for worker in running.values():
        worker.close()
    speeds = {name: [WINDOW / window["cpu"] for window in taken] for name, taken in windows.items()}
    ratios = [now / old for now, old in zip(speeds["now"], speeds["before"], strict=True)]
    return {
        "task": task,
        **{f"{name}_steps_per_cpu_second": round(statistics.median(speeds[name]), 1) for name in speeds},
        "now_over_before": round(statistics.median(ratios), 4),
        "quartiles": [round(quartile, 4) for quartile in statistics.quantiles(ratios, n=4)[::2]],
        "windows": {name: [round(window["cpu"], 4) for window in taken] for name, taken in windows.items()},
    }


def commit_of(checkout: Path) -> str:
    command = ["git", "-C", str(checkout), "rev-parse", "--short", "HEAD"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def versions(python: str) -> dict[str, str]:
    """Of the packages that matter, in the environment of an interpreter."""
    names = ("jax", "jaxlib", "numpy", "mujoco", "torch", "stable_baselines3", "sbx-rl", "flax", "optax")
    found = f"{{d.name: d.version for d in m.distributions() if d.name in {names}}}"
    script = f"import importlib.metadata as m, json; print(json.dumps({found}))"
    if not Path(python).exists():
        return {}
    return json.loads(subprocess.run([python, "-c", script], capture_output=True, text=True, check=True).stdout)


def flop(task: str, program: str) -> float:
    """Of the matrix products of the updates of one environment step; other programs have the sizes of `euda`."""
    from euda.runs.evaluation import make_algorithm

    environment, config = workers.make_environment(task), workers.config_of(program, task)
    actions = environment.action_space.shape[0]
    actor: Any = make_algorithm(config, environment.layout, actions).actor
    sizes = update.Sizes(config.replay.batch_size, config.architecture.hidden_size, config.learning.actor_every)
    each = update.gemm_flop(environment.layout.dim, actions, config.learning.critics, actor.outputs, sizes=sizes)
    return each * config.replay.updates_per_step


def speeds(windows: list[dict[str, Any]], bound: float) -> dict[str, Any]:
    """Steps per second."""
    by_cpu, by_wall = ([WINDOW / window[clock] for window in windows] for clock in ("cpu", "wall"))
    middle = statistics.median(by_cpu)
    return {
        "steps_per_cpu_second": round(middle, 1),
        "steps_per_second": round(statistics.median(by_wall), 1),
        "lowest": round(min(by_wall), 1),
        "highest": round(max(by_wall), 1),
        "bound": round(bound, 1),
        "share_of_bound": round(middle / bound, 3),
        "windows": [{clock: round(window[clock], 4) for clock in ("cpu", "wall")} for window in windows],
    }


def two_runs(task: str, cores: tuple[int, int], rounds: int) -> dict[str, Any]:
    """Two pinned runs at once against one alone."""
    pair = [start("euda rotate", task, core, "") for core in cores]
    first, second = (worker for worker in pair if isinstance(worker, Worker))
    alone, together = [], []
    for _ in range(rounds):
        alone.append(statistics.mean(WINDOW / worker.ask(f"run {WINDOW}")["wall"] for worker in (first, second)))
        for worker in (first, second):
            worker.send(f"run {WINDOW}")
        together.append(sum(WINDOW / worker.answer()["wall"] for worker in (first, second)))
    for worker in (first, second):
        worker.close()
    ratio = statistics.median(t / a for t, a in zip(together, alone, strict=True))
    figures = {"one": statistics.median(alone), "two": statistics.median(together), "ratio": ratio}
    return {"task": task, **{name: round(value, 2) for name, value in figures.items()}}


def around(task: str, core: int, rounds: int) -> dict[str, Any]:
    """What an evaluation (ten episodes) and a checkpoint add to the 10 000 steps between two of them."""
    worker = start("euda rotate", task, core, "")
    assert isinstance(worker, Worker)
    shares: dict[str, list[float]] = {"evaluate": [], "checkpoint": []}
    for _ in range(rounds):
        steps = worker.ask(f"run {WINDOW}")["cpu"] * 10_000 / WINDOW
        for name, values in shares.items():
            taken = worker.ask(name)
            values.append((taken["cpu"] if name == "evaluate" else taken["wall"]) / steps)
    worker.close()
    return {"task": task, **{name: round(statistics.median(values), 4) for name, values in shares.items()}}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peers", default=str(_HERE.parent / "build" / "peers" / "bin" / "python"))
    parser.add_argument("--tasks", nargs="+", default=list(TASKS))
    parser.add_argument("--rounds", type=int, default=12, help="windows of 250 steps per program")
    parser.add_argument("--before", type=Path, help="another checkout of this repository to run in turns with")
    parser.add_argument("--name", default="training-before", help="of the file that --before writes")
    options = parser.parse_args()
    cores = sorted(os.sched_getaffinity(0))
    if options.before is not None:
        rows = [beside_before(task, cores[0], options.rounds, options.before.resolve()) for task in options.tasks]
        for row in rows:
            print({name: value for name, value in row.items() if name != "windows"})
        commits = {"before": commit_of(options.before), "now": commit_of(_HERE)}
        figures = {"machine": recording.machine(), **commits, "window": WINDOW, "warm_up": WARM_UP}
        recording.write(options.name, {**figures, "versions": versions(sys.executable), "tasks": rows})
        return
    os.sched_setaffinity(0, {cores[0]})  # the bound is measured by this process
    figures: dict[str, Any] = {"machine": recording.machine(), "window": WINDOW, "warm_up": WARM_UP}
    figures["versions"] = {"euda": versions(sys.executable), "peers": versions(options.peers)}
    figures["programs"] = [
        row for task in options.tasks for row in beside_peers(task, cores[0], options.rounds, options.peers)
    ]
    figures["evaluation_and_checkpoints"] = [around(task, cores[0], 3) for task in options.tasks]
    if len(cores) > 1:
        figures["two_runs"] = [
            two_runs(task, (cores[0], cores[1]), max(4, options.rounds // 2)) for task in options.tasks
        ]
    for part in ("programs", "evaluation_and_checkpoints", "two_runs"):
        for row in figures.get(part, []):
            print({name: value for name, value in row.items() if name != "windows"})
    figures["load_average_at_the_end"] = os.getloadavg()
    recording.write("training", figures)


if __name__ == "__main__":
    main()
