"""Study or runs → a folder with figures, the numbers, and one HTML page."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import importlib.metadata
import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from euda.errors import EudaError
from euda.reports import certificates, matplotlib_figures, page, results_table, scenes
from euda.reports.labels import Source
from euda.reports.results_table import Table
from euda.reports.summary import Summary, summarise
from euda.runs import atomic_files, run_folder
from euda.studies import plan
from euda.studies.plan import Planned
from euda.studies.status import Progress, Reader
from euda.studies.study_folder import Study

PAGE, NUMBERS = "report.html", "summary.json"
_VIDEO = 8_000_000  # bytes that a page takes in for one video; more in all than _VIDEOS are left out and named
_VIDEOS = 40_000_000
Say = Callable[[str], None]


@dataclasses.dataclass(frozen=True)
class Subject:
    """What a report is about: a study, or the runs in some folders."""

    title: str
    runs: tuple[Path, ...]
    """The folders of runs; that of a study's runs alone."""
    study: Study | None
    axes: tuple[str, ...]
    reach: float | None

    def table(self) -> Table:
        """Its evaluations now."""
        return results_table.of_study(self.study) if self.study else results_table.of_folders(self.runs)

    def progress(self, sources: Sequence[Source]) -> list[Progress]:
        """Its runs now."""
        reader, failures = Reader(), self.study.failures() if self.study else {}
        return [reader.progress(Planned(source.curve, source.config), source.folder, failures) for source in sources]

    def folders(self) -> list[Path]:
        """Of every run it has or plans."""
        if self.study is not None:
            return [self.study.folder_of(planned) for planned in self.study.plan.runs]
        return [path for folder in self.runs for path in run_folder.find(folder)]


@dataclasses.dataclass(frozen=True)
class Report:
    """Everything that a page shows."""

    title: str
    table: Table
    summary: Summary
    progress: list[Progress]
    axes: tuple[str, ...]
    certificates: list[certificates.Shown]
    videos: list[tuple[str, Path]]
    provenance: list[tuple[Source, list[dict[str, Any]]]]
    notes: list[str]
    version: str
    latest: str
    """When the newest session of its runs began; the same data give the same page."""
    has_default_goal: bool = True
    """Whether the return of "steps to reach" is that of each task's data."""
    stamp: str = ""
    """Changes when there is something new; only for a page that is served."""
    scenes: tuple[scenes.Scene, ...] = ()
    """Policies that move, on pages beside this one."""


def find(
    subjects: Path | Sequence[Path], runs: Path, axes: tuple[str, ...] = (), reach: float | None = None
) -> Subject:
    """The study of a TOML file, or the runs in folders."""
    subjects = [subjects] if isinstance(subjects, Path) else subjects
    if all(subject.is_dir() for subject in subjects):
        names = [subject.resolve().name for subject in subjects]
        title = f"Runs in {names[0]}" if len(names) == 1 else f"{len(names)} runs compared"
        return Subject(title, tuple(subjects), None, axes or ("steps",), reach)
    if len(subjects) > 1:
        wrong = next(subject for subject in subjects if not subject.is_dir())
        raise EudaError(f"a report compares folders of runs, or is about one study: {str(wrong)!r} is not a folder")
    if subjects[0].suffix != ".toml":
        raise EudaError(f"a report is about a study (a .toml file) or folders of runs, not {str(subjects[0])!r}")
    found = plan.load(subjects[0])
    reach = found.reach if reach is None else reach
    return Subject(found.title, (runs,), Study(found, runs), axes or found.axes, reach)


def gather(subject: Subject, say: Say, with_certificates: bool = True, with_scenes: bool = False) -> Report:
    """Read everything; scenes are recorded anew."""
    found = subject.table()
    videos, left_out = _videos(found.sources)
    shown, unseen = scenes.of_runs(found.sources, say) if with_scenes else ([], [])
    provenance = _provenance(found.sources)
    return Report(
        title=subject.title,
        table=found,
        summary=summarise(found, subject.reach, subject.study.plan.claims if subject.study else None),
        progress=subject.progress(found.sources),
        axes=subject.axes,
        certificates=certificates.of_runs(found.sources, say) if with_certificates else [],
        videos=videos,
        provenance=provenance,
        notes=[*left_out, *unseen, *_strangers(subject.study)],
        version=_version(),
        latest=_latest(provenance),
        has_default_goal=subject.reach is None,
        scenes=tuple(shown),
    )


def write(report: Report, out: Path, library: Path | None = None) -> list[Path]:
    """Write figures, numbers and the page into a folder; the files there.

    `library` is a file with plotly.js that several pages share; by default it is inside the page.
    """
    with atomic_files.readable_errors(out):
        (out / scenes.FOLDER if report.scenes else out).mkdir(parents=True, exist_ok=True)
    address = "" if library is None else Path(os.path.relpath(library, out)).as_posix()
    contents = {PAGE: page.build(report, address).encode()}
    drawn = {f"curves-{axis}": matplotlib_figures.learning_curves(report.table, axis) for axis in report.axes}
    if (chosen := matplotlib_figures.choices(report.table)) is not None:
        drawn["shares-chosen"] = chosen
    for name, figure in drawn.items():
        contents |= {f"{name}.{kind}": matplotlib_figures.render(figure, kind) for kind in matplotlib_figures.FORMATS}
    contents |= {scene.file: scene.page for scene in report.scenes}
    contents[NUMBERS] = (json.dumps(report.summary.to_json(), indent=1, allow_nan=False) + "\n").encode()
    paths = {out / name: content for name, content in contents.items()}
    for path, content in paths.items():
        if not path.is_file() or path.read_bytes() != content:  # what is the same keeps its date
            atomic_files.write_atomically(path, content)
    return list(paths)


def stamp(subject: Subject) -> str:
    """A text that changes whenever the metrics of a run do."""
    digest = hashlib.sha256()
    for folder in subject.folders():
        with contextlib.suppress(OSError):
            state = (folder / "metrics.jsonl").stat()
            digest.update(f"{folder} {state.st_size} {state.st_mtime_ns}\n".encode())
    return digest.hexdigest()[:16]


def _videos(sources: tuple[Source, ...]) -> tuple[list[tuple[str, Path]], list[str]]:
    """The videos in the folders of runs that a page has room for, and a sentence for each other one."""
    kept, left_out, total = [], [], 0
    for source in sources:
        for path in sorted(source.folder.rglob("*.mp4")) if source.folder.is_dir() else ():
            size = path.stat().st_size
            if size > _VIDEO or total + size > _VIDEOS:
                left_out.append(f"{source.name}/{path.name} is too large for this page ({size / 1e6:.0f} MB)")
                continue
            total += size
            kept.append((f"{source.title}: {path.stem}", path))
    return kept, left_out


def _provenance(sources: tuple[Source, ...]) -> list[tuple[Source, list[dict[str, Any]]]]:
    listed = []
    for source in sources:
        sessions: list[dict[str, Any]] = []
        with contextlib.suppress(EudaError, KeyError, TypeError):
            sessions = run_folder.Run(source.folder, source.config).provenance()
        listed.append((source, sessions))
    return listed


def _latest(provenance: list[tuple[Source, list[dict[str, Any]]]]) -> str:
    """When the newest session began, readable."""
    times = (str(session.get("time", "")) for _, sessions in provenance for session in sessions)
    return max(times, default="").replace("T", " ").replace("Z", " UTC")


def _strangers(study: Study | None) -> list[str]:
    gone = study.strangers() if study else []
    return [f"{name} was started by this study and is no longer in its file" for name in gone]


def _version() -> str:
    with contextlib.suppress(importlib.metadata.PackageNotFoundError):
        return importlib.metadata.version("euda")
    return ""
