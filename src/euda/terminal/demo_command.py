"""The command `euda demo`, which `make run` begins."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from euda import operating_system
from euda.runs import bases
from euda.schema import Count, RowOf, Seed
from euda.terminal import printing, process
from euda.terminal.flags import Overrides

_OVERRIDES = Overrides()


def demo(
    out: Path = Path("runs/demo"), base: Annotated[str, RowOf("base")] = bases.DEFAULT, seed: Seed = 0,
    steps: Count | None = None,
    workers: int | None = None, quiet: bool = False, overrides: Overrides = _OVERRIDES,
) -> int:  # fmt: skip
    """Train one robot without and with symmetry, and show both.

    It takes some minutes, shows both learning curves, and films both policies.

    Args:
        out: Folder of the two runs; interrupted runs are resumed.
        base: How both learn.
        seed: Of both runs.
        steps: Environment steps of each.
        workers: Runs at once; by default two where there are two cores.
        quiet: Show nothing but the end.
        overrides: Settings instead of the base's.
    """
    process.prepare()
    from euda.studies.status import Reader
    from euda.studies.study_folder import Study
    from euda.terminal import demo as demonstration
    from euda.terminal import demo_display, displays

    plan = demonstration.plan_of(seed, steps or demonstration.STEPS, base, overrides)
    study = Study(plan, out)
    at_once = min(2, len(operating_system.cores())) if workers is None else workers
    where = "side by side on two cores" if at_once > 1 else "one after the other on one core"
    config = plan.runs[0].config
    displays.make(quiet).doing(
        f"{config.task}, without symmetry ({config.method}) and with it ({plan.runs[1].config.method}),"
        f" {config.steps} steps each, {where}, in {out}; the first seconds load and compile"
    )
    with demo_display.Curves(study, config.episode_steps, quiet) as view:
        result = demonstration.run(study, at_once, view)
    if result.finished < len(plan.runs):
        for row in Reader().look(study):
            if row.reason:
                printing.complain(f"failed: {row.planned.name}: {row.reason}")
        if result.signal is not None:
            printing.line("stopped, everything is saved; the same command resumes")
        return 1 if result.signal is None else 128 + result.signal
    displays.make(quiet).doing("drawing the curves and filming both policies")
    printing.line(demonstration.show(study))
    return 0
