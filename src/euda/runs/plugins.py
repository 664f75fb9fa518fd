"""Rows from outside: modules of the user's own, and installed packages that have an entry point of the group `euda`.

Importing such a module adds rows to the tables below. Only what the user of this process names, or has installed for
this purpose, is imported: never what a stored run or a study file names. A run stores which modules its rows came
from, so that it can say what to import when they are missing.
"""

from __future__ import annotations

import contextlib
import importlib.metadata
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from euda import trusted_code
from euda.agents.input_settings import FRAMES, NORMALISERS
from euda.agents.network_settings import NETWORKS
from euda.agents.settings import AGENTS, HEADS, NOISES
from euda.body.features import FEATURES
from euda.errors import EudaError
from euda.replay.settings import AUGMENTATIONS
from euda.runs.bases import BASES
from euda.runs.methods import METHODS
from euda.schema import RowOf
from euda.tasks.rewards import REWARDS
from euda.tasks.table import TASKS

GROUP = "euda"
TABLES: dict[str, Mapping[str, Any]] = {
    "task": TASKS, "reward": REWARDS, "features": FEATURES, "augment": AUGMENTATIONS, "agent": AGENTS,
    "network": NETWORKS, "frame": FRAMES, "normaliser": NORMALISERS, "head": HEADS, "noise": NOISES,
    "method": METHODS, "base": BASES,
}  # fmt: skip
"""Everything that a module from outside may add rows to, by the name that a run has for one of them."""
_MODULE = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*")
_imported: dict[str, None] = {}
"""Modules that the user of this process named and that were imported, in that order."""
_origins: dict[tuple[str, str], str] = {}
"""The module that added a row, by table and name."""


def load(modules: Iterable[str]) -> None:
    """Import what is installed for euda, then the modules that the user names."""
    for entry in importlib.metadata.entry_points(group=GROUP):
        try:
            with _rows_of(entry.module):
                entry.load()
        except (Exception, SystemExit) as error:  # anything may happen in a package of theirs
            said = " ".join(str(error).split())
            raise EudaError(f"the installed extension {entry.name!r} fails: {type(error).__name__}: {said}") from error
    for module in modules:
        trusted_code.name(module)
        with _rows_of(module):
            trusted_code.module(module, "--import")
        _imported[module] = None


def named() -> list[str]:
    """The modules imported for the user of this process, for processes that work for this one."""
    return list(_imported)


def with_rows(words: str, hint: Any) -> str:
    """Help that lists the rows of the table that an annotation names (`schema.RowOf`), if it names one."""
    for mark in getattr(hint, "__metadata__", ()):
        if isinstance(mark, RowOf):
            return f"{words.removesuffix('.')}: {', '.join(TABLES[mark.table])}."
    return words


def modules_of(rows: Mapping[str, str]) -> tuple[str, ...]:
    """The modules from outside that rows come from, each given as table and name."""
    found = (_origins.get((table, name)) or _maker_module(TABLES[table].get(name)) for table, name in rows.items())
    return tuple(sorted({module for module in found if module is not None}))


def require(modules: Iterable[str]) -> None:
    """Refuse a stored run whose rows come from modules that nobody has imported in this process."""
    for module in modules:
        if not _MODULE.fullmatch(module):
            raise EudaError(f"imports must be names of modules, not {module!r}")
    if missing := [module for module in modules if module not in sys.modules]:
        words = " ".join(f"--import {module}" for module in missing)
        raise EudaError(f"it uses code of {', '.join(missing)}, which is imported only if you name it: add {words}")


@contextlib.contextmanager
def _rows_of(module: str) -> Iterator[None]:
    """Remember the rows that are added or replaced here as those of a module."""
    before = {(table, name): row for table, rows in TABLES.items() for name, row in rows.items()}
    yield
    for table, rows in TABLES.items():
        for name, row in rows.items():
            if before.get((table, name)) is not row:
                _origins[table, name] = module


def _maker_module(row: Any) -> str | None:
    """Where a row's maker or settings are written, if that is neither here nor in a script."""
    makers = (getattr(row, "make", row), getattr(row, "settings", None))
    for maker in makers:
        module = maker.partition(":")[0] if isinstance(maker, str) else getattr(maker, "__module__", None)
        if module is not None and module.partition(".")[0] not in ("euda", "builtins", "__main__"):
            return module
    return None
