"""What can be typed after a command: its parameters, and what the rows of agents, networks and augmentations add.

A command is a function. Its parameters are flags, those marked `Argument` stand without one; the fields of a parameter
that is a settings class are flags of their own; `Overrides` stands for everything that a run can be told. Flags of a
group are only listed by --help; `--help GROUP` and --help-all explain them.
"""

from __future__ import annotations

import dataclasses
import inspect
import re
import typing
from collections.abc import Callable, Iterator, Sequence
from typing import Annotated, Any, TypeVar

from euda import schema
from euda.errors import EudaError
from euda.runs import bases, plugins, settings
from euda.runs.config import RunConfig
from euda.runs.resolution import PARTS
from euda.schema import RowOf, Settings, TopLevel

Command = Callable[..., int]
M = TypeVar("M")
MISSING = inspect.Parameter.empty
"""The default of what must be given."""
RUN = "run"
"""The group of what every run can be told, whatever its agent."""


@dataclasses.dataclass(frozen=True)
class Argument:
    """Marks a parameter that stands without a flag; `metavar` is what help calls it."""

    metavar: str


@dataclasses.dataclass(frozen=True)
class Group:
    """Marks a parameter whose flags are a group; `name` is what `--help NAME` calls it."""

    name: str


class Overrides(dict[str, Any]):
    """What the user overrides, as a study file would write it."""


@dataclasses.dataclass(frozen=True)
class Flag:
    """One thing that can be typed."""

    path: tuple[str, ...]
    """Where its value goes: a parameter, or a group of settings and a field."""
    name: str
    """As it is typed, without the dashes: `mlp.hidden-size`."""
    hint: Any
    default: Any
    words: str
    """Help."""
    metavar: str | None = None
    """Of an argument that stands without a flag."""
    group: str = ""
    """What `--help GROUP` calls it; without one it is explained by --help."""

    @property
    def is_list(self) -> bool:
        """Whether it takes every word up to the next flag."""
        return any(typing.get_origin(kind) is tuple for kind in schema.kinds(self.hint))

    @property
    def is_switch(self) -> bool:
        """Whether it takes no word."""
        return schema.kinds(self.hint) == (bool,)

    def value(self, typed: Any) -> Any:
        """What the typed words mean."""
        shown = ".".join(self.path[1:]) or self.name.replace("-", "_")
        if self.is_list and len(typed) == 1 and str in schema.kinds(self.hint):
            typed = typed[0]
        try:
            return schema.checked(shown, self.hint, typed, is_text=True)
        except EudaError as error:
            if self.is_list and "." in typed[-1] and typed[-1].rpartition(".")[2].isalpha():  # a file
                raise EudaError(
                    f"{error} (--{self.name} takes every word up to the next flag: write other words before it)"
                ) from None
            raise


def flags_of(command: Command, words: Sequence[str] = ()) -> list[Flag]:
    """The flags of a command; defaults are those of the base that the words name.

    Of two with one name the first counts: what it takes may be meant for the other, as a direction of travel is.
    """
    found: dict[str, Flag] = {}
    for flag in _every_flag(command, words):
        explained = dataclasses.replace(flag, words=plugins.with_rows(flag.words, flag.hint))
        found.setdefault(flag.name, explained)
    return list(found.values())


def _every_flag(command: Command, words: Sequence[str]) -> Iterator[Flag]:
    helps = _helps(command)
    hints = typing.get_type_hints(command, include_extras=True)
    for name, parameter in inspect.signature(command).parameters.items():
        hint = hints[name]
        kind, group = schema.kinds(hint)[0], _mark(hint, Group)
        group = "" if group is None else group.name
        if kind is Overrides:
            yield from _override_flags(name, words)
        elif isinstance(kind, type) and issubclass(kind, Settings):
            for field, inner in schema.hints(kind).items():
                default = getattr(parameter.default, field)
                yield Flag((name, field), dashed(field), inner, default, kind.help(field), group=group)
        else:
            argument = _mark(hint, Argument)
            metavar = None if argument is None else argument.metavar
            yield Flag((name,), dashed(name), hint, parameter.default, helps.get(name, ""), metavar, group)


def _mark(hint: Any, kind: type[M]) -> M | None:
    """The mark of a class in an annotation."""
    return next((mark for mark in getattr(hint, "__metadata__", ()) if isinstance(mark, kind)), None)


def _override_flags(parameter: str, words: Sequence[str]) -> Iterator[Flag]:
    for part in PARTS:
        yield Flag((parameter, part), part, Annotated[str | None, RowOf(part)], None, PARTS[part])
    for name, hint in schema.top_level(RunConfig).items():
        is_switch = schema.kinds(hint) == (bool,)  # others are the task's own unless they are given
        default = getattr(RunConfig, name) if is_switch else None
        kind = hint if is_switch else hint | None
        yield Flag((parameter, name), dashed(name), kind, default, RunConfig.help(name), group=RUN)
    base = bases.BASES.get(_word_after("--base", words), bases.BASES[bases.DEFAULT])
    for group, kind in settings.groups().items():
        defaults = base.of(kind)
        for name, hint in schema.hints(kind).items():
            typed = dashed(name) if _mark(hint, TopLevel) else f"{dashed(group)}.{dashed(name)}"
            yield Flag((parameter, group, name), typed, hint, getattr(defaults, name), kind.help(name), group=group)


def _helps(command: Command) -> dict[str, str]:
    """The lines of a docstring's `Args:`, by parameter."""
    _, _, lines = inspect.cleandoc(command.__doc__ or "").partition("Args:\n")
    return dict(re.findall(r"^ +(\w+): (.*)$", lines, re.MULTILINE))


def dashed(name: str) -> str:
    """As it is typed."""
    return name.rstrip("_").replace("_", "-")


def _word_after(flag: str, words: Sequence[str]) -> str:
    both = " ".join(words).replace(f"{flag}=", f"{flag} ").split(" ")
    return both[both.index(flag) + 1] if flag in both[:-1] else ""
