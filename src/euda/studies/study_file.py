"""What a study file may say: the tables of its TOML as settings, so that the schema checks types and ranges."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from annotated_types import MinLen

from euda import schema
from euda.errors import EudaError
from euda.schema import Count, Seed, Settings, Share

Axis = Literal["steps", "hours"]
Names = Annotated[tuple[str, ...], MinLen(1)]
Table = dict[str, Any]


@dataclasses.dataclass(frozen=True)
class Common(Settings):
    """What a study says of all its runs, and a method of its own instead."""

    tasks: Names | None = None
    seeds: Annotated[tuple[Seed, ...], MinLen(1)] | None = None
    steps: Count | None = None
    base: str | None = None
    bases: Names | None = None
    overrides: Table = dataclasses.field(default_factory=dict)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.base is not None and self.bases is not None:
            raise EudaError("give base or bases, not both")
        for what, values in (("task", self.tasks), ("seed", self.seeds), ("base", self.bases)):
            refuse_twice(what, values or ())


@dataclasses.dataclass(frozen=True)
class StudyFile(Common):
    """The whole file."""

    title: str | None = None
    axes: Annotated[tuple[Axis, ...], MinLen(1)] = ("steps",)
    reach: float | None = None
    claims: tuple[tuple[str, str], ...] | None = None
    methods: dict[str, Table] = dataclasses.field(default_factory=dict)
    robots: dict[str, Table] = dataclasses.field(default_factory=dict)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.methods:
            raise EudaError("a study needs at least one table [methods.NAME]")
        refuse_twice("claim", self.claims or ())


@dataclasses.dataclass(frozen=True)
class MethodTable(Common):
    """A table [methods.NAME]."""

    method: str | None = None
    share: Share | None = None
    shares: Annotated[tuple[Share, ...], MinLen(1)] | dict[str, Share] | None = None
    """Several curves, or one share for each task."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.share is not None and self.shares is not None:
            raise EudaError("give share or shares, not both")
        if isinstance(self.shares, tuple):
            refuse_twice("share", self.shares)


def read(table: Mapping[str, Any]) -> StudyFile:
    """The file of a parsed TOML."""
    return schema.make(StudyFile, table, "")


def method(table: Mapping[str, Any], study: StudyFile) -> MethodTable:
    """A table [methods.NAME], with what the study says where it says nothing itself."""
    found = schema.make(MethodTable, table, "")
    missing = [name for name in ("tasks", "seeds", "steps") if getattr(found, name) is None]
    if found.base is None and found.bases is None:
        missing += ["base", "bases"]
    return dataclasses.replace(found, **{name: getattr(study, name) for name in missing})


def refuse_twice(what: str, values: tuple[Any, ...]) -> None:
    """Refuse a list in which something is repeated."""
    for value in values:
        if values.count(value) > 1:
            raise EudaError(f"{what} {value!r} is listed twice")
