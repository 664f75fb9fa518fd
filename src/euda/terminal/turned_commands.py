"""What `euda evaluate` does with --yaws and --mirror: the same policy in turned worlds, as table, JSON and figure."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from euda.terminal import tables

if TYPE_CHECKING:
    from euda.runs.run_folder import Run
    from euda.runs.turned_evaluation import TurnedReturns


def evaluate(
    run: Run, yaws: int, episodes: int, seed: int | None, mirror: bool, figure: Path | None, as_json: bool
) -> int:
    """Judge, tell and draw."""
    from euda.reports import polar
    from euda.runs import turned_evaluation

    if figure is not None:
        polar.check(figure)
    step, rows = turned_evaluation.evaluate(run, yaws, episodes, seed, mirror=mirror)
    if as_json:
        print(json.dumps({"step": step, "yaws": [row.to_json() for row in rows]}))
    else:
        shown = [(f"{row.degrees:.4g}°", row.mirror or "", *_numbers(row)) for row in rows]
        names = ("yaw", "mirror", "return", "lowest", "highest")
        kept = [i for i, name in enumerate(names) if mirror or name != "mirror"]
        tables.show([names[i] for i in kept], [[line[i] for i in kept] for line in shown])
        print(_summary(step, episodes, rows))
    if figure is not None:
        curves = {name or "as it is": [[row for row in rows if row.mirror == name]] for name in _mirrors(rows)}
        polar.write(polar.draw(curves, f"{run.config.task}, {run.config.label}, step {step}"), figure)
        if not as_json:
            print(f"wrote {figure}")
    return 0


def _mirrors(rows: Sequence[TurnedReturns]) -> list[str | None]:
    return list(dict.fromkeys(row.mirror for row in rows))


def _numbers(row: TurnedReturns) -> tuple[str, str, str]:
    return f"{row.mean:.1f}", f"{min(row.returns):.1f}", f"{max(row.returns):.1f}"


def _summary(step: int, episodes: int, rows: Sequence[TurnedReturns]) -> str:
    """The return as trained, and the worst of all worlds."""
    worst = min(rows, key=lambda row: row.mean)
    where = f"turned by {worst.degrees:.4g}°" + (", mirrored" if worst.mirror else "")
    return (
        f"return {rows[0].mean:.1f} as it is, at worst {worst.mean:.1f} ({where}),"
        f" at step {step}, mean of {episodes} episodes each"
    )
