"""Runs → scenes for a report: pages beside it in which a policy and its turned and mirrored twins move."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence

from euda.errors import EudaError
from euda.media import twins, view
from euda.reports.labels import Source
from euda.runs.run_folder import Run

FOLDER = "scenes"
MOST, SECONDS = 8, 6.0
"""Pages beside one report, about 1 MB each, and what each shows."""
Say = Callable[[str], None]


@dataclasses.dataclass(frozen=True)
class Scene:
    """A page beside the report."""

    title: str
    file: str
    """Its address, seen from the report."""
    page: bytes
    summary: str
    """What there is to see: returns, how far apart, and how large the page is."""


def of_runs(sources: Sequence[Source], say: Say) -> tuple[list[Scene], list[str]]:
    """A scene of the first run of every method on every task, and a sentence for each that there is none of."""
    view.check_extra()
    first: dict[tuple[str, str], Source] = {}
    for source in sources:
        first.setdefault((source.task, source.curve), source)
    scenes, missing = [], []
    for source in first.values():
        if len(scenes) == MOST:
            missing.append(f"{source.title}: a report has at most {MOST} scenes")
            continue
        say(f"recording {source.title}")
        try:
            scenes.append(_scene(source, len(scenes)))
        except EudaError as error:  # it has no policy yet, or needs code that is not ours to run
            missing.append(f"{source.title} has no scene: {error}")
    return scenes, missing


def _scene(source: Source, number: int) -> Scene:
    found = twins.of_run(Run(source.folder, source.config))
    page = view.record(found, SECONDS, source.title).encode()
    returns = ", ".join(f"{twin.world.name} {twin.total:.0f}" for twin in found.all)
    apart = f"; apart by at most {100 * found.apart():.2g} cm in the end" if len(found.all) > 1 else ""
    summary = f"return of {SECONDS:g} seconds: {returns}{apart} ({len(page) / 1e6:.1f} MB)"
    return Scene(source.title, f"{FOLDER}/{number}.html", page, summary)
