"""What a second core brings to one run that steps the simulation while its updates compute (`--overlap`).

    python benchmarks/overlap.py [--tasks quadruped_run humanoid_stand] [--updates 0.25 0.5 1] [--rounds 40] [--nice N]

Two runs in one process that may use two cores, the same but for `overlap`, take turns, a short window of steps each,
so that whatever else happens on the machine slows both alike. `wall` is the ratio of their times within a turn
(median and quartiles over turns): above 1 overlapping is faster. On a machine that is busy the second core is not
there most of the time; `--nice -15` (as root) gives the windows, a second in all for each row, precedence over
others; `quick` is the ratio of the quickest tenth of the windows of each.
`bound` is the most that two free cores could bring: the CPU time of a step over that of its longer half (the thread
that steps the simulation, or the one that computes updates).
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import recording

from euda.runs import machine, run_folder
from euda.runs.resolution import resolve

if TYPE_CHECKING:
    from euda.runs.trainer import Trainer

TASKS, UPDATES = ("quadruped_run", "humanoid_stand"), (0.25, 0.5, 1.0)
SEED_STEPS, WARM_UP = 1000, 1400


class Window(NamedTuple):
    """Seconds per step: on the wall, of the whole process, of the thread that steps the simulation."""

    wall: float
    cpu: float
    main: float


def set_priority(nice: int) -> None:
    """Of every thread of this process."""
    for thread in os.listdir("/proc/self/task"):
        os.setpriority(os.PRIO_PROCESS, int(thread), nice)


def trainer(task: str, updates: float, overlap: bool) -> Trainer:
    """A run past its first updates."""
    from euda.runs.trainer import Trainer  # after use_one_thread: it imports JAX

    settings = {
        "replay": {"updates_per_step": updates, "seed_steps": SEED_STEPS},
        "sac": {"exploration_steps": SEED_STEPS},  # then the actor is asked at every step
        "overlap": overlap,
    }
    config = resolve(task, "canonical", "swift", steps=100_000, overrides=settings)
    run = run_folder.Run(Path(tempfile.mkdtemp(prefix="euda-overlap-")), config)
    run.clear()
    made = Trainer(run, None)
    for _ in range(WARM_UP):
        made.advance()
    return made


def window(one: Trainer, steps: int) -> Window:
    """So many steps, with the updates that they begin."""
    before = time.perf_counter(), time.process_time(), time.thread_time()
    for _ in range(steps):
        one.advance()
    one.is_finite()  # waits for the last update
    after = time.perf_counter(), time.process_time(), time.thread_time()
    return Window(*((b - a) / steps for a, b in zip(before, after, strict=True)))


def compare(task: str, updates: float, rounds: int, nice: int = 0) -> dict[str, Any]:
    """One row of figures."""
    steps = round(16 / min(updates, 1.0))
    runs = {name: trainer(task, updates, name == "overlapped") for name in ("plain", "overlapped")}
    windows: dict[str, list[Window]] = {name: [] for name in runs}
    if nice:
        set_priority(nice)
    for turn in range(rounds):
        for name in list(runs)[:: -1 if turn % 2 else 1]:  # neither is always the first
            windows[name].append(window(runs[name], steps))
    if nice:
        set_priority(0)
    ratios = [a.wall / b.wall for a, b in zip(windows["plain"], windows["overlapped"], strict=True)]
    quick = {name: statistics.quantiles([one.wall for one in taken], n=10)[0] for name, taken in windows.items()}
    cpu, main = (statistics.median(getattr(one, part) for one in windows["plain"]) for part in ("cpu", "main"))
    return {
        "task": task,
        "updates_per_step": updates,
        "wall": round(statistics.median(ratios), 3),
        "quartiles": [round(value, 3) for value in statistics.quantiles(ratios, n=4)[::2]],
        "quick": round(quick["plain"] / quick["overlapped"], 3),
        "bound": round(cpu / max(main, cpu - main), 3),
        "cpu_ms_per_step": {"simulation": round(1e3 * main, 3), "updates": round(1e3 * (cpu - main), 3)},
        "windows_ms": {
            name: [[round(1e3 * part, 3) for part in one] for one in taken] for name, taken in windows.items()
        },
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", nargs="+", default=list(TASKS))
    parser.add_argument("--updates", nargs="+", type=float, default=list(UPDATES))
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--nice", type=int, default=0, help="of the windows")
    options = parser.parse_args()
    machine.use_one_thread()
    figures: dict[str, Any] = {"machine": recording.machine(), "cores": sorted(os.sched_getaffinity(0))}
    figures |= {"nice": options.nice, "rows": []}
    for task in options.tasks:
        for updates in options.updates:
            row = compare(task, updates, options.rounds, options.nice)
            figures["rows"].append(row)
            print({name: value for name, value in row.items() if name != "windows_ms"}, flush=True)
    figures["load_average_at_the_end"] = os.getloadavg()
    recording.write("overlap", figures)


if __name__ == "__main__":
    main()
