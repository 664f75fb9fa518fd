"""Study or runs → a folder with figures, the numbers, and one HTML page."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import importlib.metadata
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from euda.errors import EudaError
from euda.study import figures, page, plan, run, storage, table
from euda.study.progress import Progress, Reader
from euda.study.record import STUDIES, Study
from euda.study.summary import Summary, summarise
from euda.study.table import Source, Table

PAGE, NUMBERS = "report.html", "summary.json"
_STATES, _YAWS = 40, 2  # of a certificate made for a report
_VIDEO = 8_000_000  # bytes that a page takes in for one video; more in all than _VIDEOS are left out and named
_VIDEOS = 40_000_000
Say = Callable[[str], None]


@dataclasses.dataclass(frozen=True)
class Subject:
    """What a report is about: a study, or a folder of runs."""

    title: str
    runs: Path
    study: Study | None
    axes: tuple[str, ...]
    reach: float | None

    def table(self) -> Table:
        """Its evaluations now."""
        return table.of_study(self.study) if self.study else table.of_folder(self.runs)

    def progress(self, sources: tuple[Source, ...]) -> list[Progress]:
        """Its runs now."""
        reader, failures = Reader(), self.study.failures() if self.study else {}
        return [reader.progress(source.planned, source.folder, failures) for source in sources]


@dataclasses.dataclass(frozen=True)
class Report:
    """Everything that a page shows."""

    title: str
    table: Table
    summary: Summary
    progress: list[Progress]
    axes: tuple[str, ...]
    certificates: list[dict[str, Any]]
    videos: list[tuple[str, Path]]
    provenance: list[tuple[Source, list[dict[str, Any]]]]
    notes: list[str]
    version: str
    latest: str
    """When the newest session of its runs began; the same data give the same page."""
    stamp: str = ""
    """Changes when there is something new; only for a page that is served."""


def find(subject: Path, runs: Path, axes: tuple[str, ...] = (), reach: float | None = None) -> Subject:
    """The study of a TOML file, or the runs in a folder."""
    if subject.is_dir():
        return Subject(f"Runs in {subject.resolve().name}", subject, None, axes or ("steps",), reach)
    if subject.suffix != ".toml":
        raise EudaError(f"a report is about a study (a .toml file) or a folder of runs, not {str(subject)!r}")
    found = plan.load(subject)
    reach = found.reach if reach is None else reach
    return Subject(found.title, runs, Study(found, runs), axes or found.axes, reach)


def gather(subject: Subject, say: Say, with_certificates: bool = True) -> Report:
    """Read everything."""
    found = subject.table()
    videos, left_out = _videos(found.sources)
    provenance = _provenance(found.sources)
    notes = [*left_out, *_strangers(subject.study)]
    return Report(
        subject.title, found, summarise(found, subject.reach), subject.progress(found.sources), subject.axes,
        certificates(found.sources, subject.runs, say) if with_certificates else [], videos, provenance, notes,
        importlib.metadata.version("euda") if _is_installed() else "", _latest(provenance),
    )  # fmt: skip


def write(report: Report, out: Path) -> list[Path]:
    """Write figures, numbers and the page into a folder; the files written."""
    with storage.readable_errors(out):
        out.mkdir(parents=True, exist_ok=True)
    written: list[Path] = []

    def put(name: str, content: bytes) -> None:
        storage.write_atomically(out / name, content)
        written.append(out / name)

    put(PAGE, page.build(report).encode())
    drawn = {f"curves-{axis}": figures.learning_curves(report.table, axis) for axis in report.axes}
    if (chosen := figures.choices(report.table)) is not None:
        drawn["shares-chosen"] = chosen
    for name, figure in drawn.items():
        for kind in figures.FORMATS:
            put(f"{name}.{kind}", figures.render(figure, kind))
    put(NUMBERS, (json.dumps(report.summary.to_json(), indent=1, allow_nan=False) + "\n").encode())
    return written


def stamp(subject: Subject) -> str:
    """A text that changes whenever the metrics of a run do."""
    folders = [subject.study.folder_of(p) for p in subject.study.plan.runs] if subject.study else run.find(subject.runs)
    digest = hashlib.sha256()
    for folder in folders:
        with contextlib.suppress(OSError):
            state = (folder / "metrics.jsonl").stat()
            digest.update(f"{folder.name} {state.st_size} {state.st_mtime_ns}\n".encode())
    return digest.hexdigest()[:16]


def certificates(sources: tuple[Source, ...], runs: Path, say: Say) -> list[dict[str, Any]]:
    """The certificate of every task of the table, for its limbs and whatever features are turned; made once, kept."""
    wanted: dict[tuple[str, str, str], None] = {}
    for source in sources:
        config = source.planned.config
        if config.robot is not None:  # its file may be elsewhere, and its code is not ours to run
            continue
        wanted[config.task, "limb", config.cone] = None
        if config.augmentation.name.startswith("rotate"):
            wanted[config.task, config.features, config.cone] = None
    return [_certificate(*key, runs / STUDIES / "certificates", say) for key in wanted]


def _certificate(task: str, features: str, cone: str, folder: Path, say: Say) -> dict[str, Any]:
    path = folder / f"{task}-{features}-{cone}.json"
    if path.is_file():
        with contextlib.suppress(EudaError):
            return storage.read_json(path)
    from euda.body.certificate import certify
    from euda.body.environment import TaskEnv

    say(f"turning the world of {task} ({features} features)")
    found = certify(lambda: TaskEnv(task, features, cone), states=_STATES, yaws=_YAWS).to_json()
    with contextlib.suppress(EudaError, OSError):  # it can be made again
        folder.mkdir(parents=True, exist_ok=True)
        storage.write_json(path, found)
    return found


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
            kept.append((f"{source.planned.name}: {path.stem}", path))
    return kept, left_out


def _provenance(sources: tuple[Source, ...]) -> list[tuple[Source, list[dict[str, Any]]]]:
    listed = []
    for source in sources:
        sessions: list[dict[str, Any]] = []
        with contextlib.suppress(EudaError, KeyError, TypeError):
            sessions = run.Run(source.folder, source.planned.config).provenance()
        listed.append((source, sessions))
    return listed


def _latest(provenance: list[tuple[Source, list[dict[str, Any]]]]) -> str:
    """When the newest session began, readable."""
    times = (str(session.get("time", "")) for _, sessions in provenance for session in sessions)
    return max(times, default="").replace("T", " ").replace("Z", " UTC")


def _strangers(study: Study | None) -> list[str]:
    gone = study.strangers() if study else []
    return [f"{name} was begun by this study and is no longer in its file" for name in gone]


def _is_installed() -> bool:
    with contextlib.suppress(importlib.metadata.PackageNotFoundError):
        return bool(importlib.metadata.version("euda"))
    return False
