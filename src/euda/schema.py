"""One schema for what comes from outside: the annotations of settings, checked by pydantic, refused in one sentence.

A settings class is a frozen dataclass whose annotations say what is allowed, `capacity: Annotated[int, Ge(1)]`. It
checks itself when it is made, so configuration files, study files, the command line and Python meet the same rules.
Pydantic was chosen because its errors are data (place, rule, input), from which the sentences here are made; it is
imported when the first settings are made, which most commands never do.
"""

from __future__ import annotations

import ast
import dataclasses
import functools
import inspect
import textwrap
import types
import typing
from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeVar

from annotated_types import Ge, Gt, Interval, Le, Lt, MinLen

from euda.errors import EudaError, unknown

if typing.TYPE_CHECKING:
    from pydantic import TypeAdapter

Count = Annotated[int, Ge(1)]
Steps = Annotated[int, Ge(0)]
Positive = Annotated[float, Gt(0)]
NotNegative = Annotated[float, Ge(0)]
Share = Annotated[float, Interval(ge=0, le=1)]
Seed = Annotated[int, Interval(ge=0, le=2**32 - 1)]


@dataclasses.dataclass(frozen=True)
class TopLevel:
    """Marks a setting whose flag is `--name` instead of `--group.name`."""


@dataclasses.dataclass(frozen=True)
class RowOf:
    """Marks a setting that names a row of a table; help lists the rows that are there, those from outside too."""

    table: str
    """As in `runs.plugins.TABLES`."""


@dataclasses.dataclass(frozen=True)
class Since:
    """Marks a setting that came after runs had been stored. With the value `before` a run is what it was without."""

    before: Any


@dataclasses.dataclass(frozen=True)
class Settings:
    """The base of everything that can be set. The string under a field is its help text on the command line."""

    def __post_init__(self) -> None:
        for name, hint in hints(type(self)).items():
            object.__setattr__(self, name, checked(name, hint, getattr(self, name)))

    @classmethod
    def help(cls, field: str) -> str:
        """The string under a field."""
        return _helps(cls).get(field, "")


S = TypeVar("S", bound=Settings)


def established(settings: Settings) -> dict[str, Any]:
    """Nested entries, without those settings that came later (`Since`) and are as everything was before them."""
    entries = {}
    for name, hint in hints(type(settings)).items():
        value = getattr(settings, name)
        marks = [mark for mark in getattr(hint, "__metadata__", ()) if isinstance(mark, Since)]
        if not any(mark.before == value for mark in marks):
            entries[name] = established(value) if isinstance(value, Settings) else value
    return entries


@functools.cache
def hints(kind: type[Settings]) -> dict[str, Any]:
    """The annotation of every field of a settings class, ranges included."""
    found = typing.get_type_hints(kind, include_extras=True)
    return {field.name: found[field.name] for field in dataclasses.fields(kind)}


@functools.cache
def _helps(kind: type[Settings]) -> dict[str, str]:
    """The strings under the fields of a settings class and of those it was derived from."""
    found: dict[str, str] = {}
    for cls in reversed(kind.__mro__[:-1]):
        try:
            (node,) = ast.parse(textwrap.dedent(inspect.getsource(cls))).body
        except (OSError, TypeError, SyntaxError):  # a class without a file says nothing
            continue
        for field, text in zip(getattr(node, "body", []), getattr(node, "body", [])[1:], strict=False):
            match field, text:
                case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(words))):
                    found[name] = words
    return found


def top_level(kind: type[Settings]) -> dict[str, Any]:
    """The annotations of the fields whose flags have no prefix."""
    return {
        name: hint
        for name, hint in hints(kind).items()
        if any(isinstance(mark, TopLevel) for mark in getattr(hint, "__metadata__", ()))
    }


def checked(name: str, hint: Any, value: Any, is_text: bool = False) -> Any:
    """A value as an annotation wants it, or one sentence that names it; `is_text`: as it was typed."""
    from pydantic import ValidationError

    if nested := _settings_in(hint):
        return _instance(name, nested, value)
    if isinstance(value, list):  # JSON and TOML have no tuples
        value = _tuples(value)
    elif isinstance(value, str) and _is_list(hint):  # one text may stand for a list of one
        value = (value,)
    elif is_text and isinstance(value, str):
        value = {str(choice): choice for choice in choices(hint)}.get(value, value)
        value = _whole(value) if int in kinds(hint) else value
    try:
        return _adapter(hint).validate_python(value, strict=not is_text)
    except ValidationError as error:
        wrong = error.errors(include_url=False)[0]["input"]
        wrong = list(wrong) if isinstance(wrong, tuple) else wrong
        valid = choices(hint)
        if valid and all(isinstance(choice, str) for choice in valid):
            raise unknown(name, wrong, valid) from None
        raise EudaError(f"{name} must be {words(hint)}, not {wrong!r}") from None


@functools.cache  # as below: a study makes tens of thousands of settings of a few hundred annotations
def _settings_in(hint: Any) -> tuple[type, ...]:
    """The settings classes among the alternatives, with None if that is one too; empty if there are none."""
    nested = tuple(kind for kind in kinds(hint) if isinstance(kind, type) and issubclass(kind, Settings))
    return (*nested, *(kind for kind in kinds(hint) if kind is type(None))) if nested else ()


def _tuples(value: Any) -> Any:
    """Lists, and the lists in them, as tuples."""
    return tuple(map(_tuples, value)) if isinstance(value, list) else value


def _is_list(hint: Any) -> bool:
    """Whether a value may be a list of texts and not a text."""
    return tuple[float | str, ...] in kinds(hint)


def _instance(name: str, kinds: tuple[type, ...], value: Any) -> Any:
    """Settings inside settings have checked themselves."""
    if not isinstance(value, kinds):
        raise EudaError(f"{name} must be {' or '.join(kind.__name__ for kind in kinds)}, not {value!r}")
    return value


def make(kind: type[S], table: Any, place: str, start: S | None = None) -> S:
    """The settings that a table of JSON or TOML makes of `start`, by default of the defaults; `place` is its name."""
    if not isinstance(table, Mapping):
        raise EudaError(f"{place} must be a table, not {table!r}")
    fields = hints(kind)
    for key in table:
        if key not in fields:
            raise unknown(f"entry of {place}" if place else "entry", key, fields)
    before = f"{place}." if place else ""
    entries = {key: checked(before + key, fields[key], value) for key, value in table.items()}
    return dataclasses.replace(start, **entries) if start is not None else kind(**entries)


def words(hint: Any) -> str:
    """What a value must be: `a whole number of at least 1`."""
    return " or ".join(_noun(part) for part in _parts(hint) if part is not type(None))


def _noun(hint: Any) -> str:
    if valid := choices(hint):
        return " or ".join(map(str, valid))
    kind, *ranges = typing.get_args(hint) if typing.get_origin(hint) is Annotated else (hint,)
    if typing.get_origin(kind) is tuple:
        several = "one or more " if any(isinstance(rule, MinLen) for rule in ranges) else ""
        return f"a list of {several}{_plural(*typing.get_args(kind))}"
    if typing.get_origin(kind) is dict:
        return "a table"
    nouns = {int: "a whole number", float: "a finite number", bool: "true or false", str: "a text"}
    return nouns.get(kind, f"of type {getattr(kind, '__name__', kind)}") + "".join(map(_range, ranges))


def _plural(hint: Any, *others: Any) -> str:
    """What the entries of a list are; two hints without an ellipsis are those of a pair."""
    if others and others[0] is not Ellipsis:
        return _plural(hint)
    kind, *ranges = typing.get_args(hint) if typing.get_origin(hint) is Annotated else (hint,)
    if typing.get_origin(kind) is tuple:
        return f"pairs of {_plural(*typing.get_args(kind))}"
    nouns = {float: "numbers", int: "whole numbers", str: "texts"}
    words = [str(choice) for choice in choices(hint)] or [nouns[part] for part in _parts(kind)]
    return " or ".join(words) + "".join(map(_range, ranges))


def _range(rule: Any) -> str:
    match rule:
        case Ge(ge=low):
            return f" of at least {low}"
        case Gt(gt=low):
            return f" above {low}"
        case Le(le=high):
            return f" of at most {high}"
        case Lt(lt=high):
            return f" below {high}"
        case Interval(ge=low, le=high):
            return f" between {low} and {high}"
        case _:
            return ""


def _parts(hint: Any) -> tuple[Any, ...]:
    """The alternatives of a union, or the one that there is."""
    inner = typing.get_args(hint)[0] if typing.get_origin(hint) is Annotated else hint
    return typing.get_args(inner) if typing.get_origin(inner) in (types.UnionType, typing.Union) else (hint,)


@functools.cache
def kinds(hint: Any) -> tuple[Any, ...]:
    """The alternatives without their ranges."""
    return tuple(typing.get_args(part)[0] if typing.get_origin(part) is Annotated else part for part in _parts(hint))


def choices(hint: Any) -> list[Any]:
    """The words of a `Literal`."""
    return [word for part in kinds(hint) if typing.get_origin(part) is Literal for word in typing.get_args(part)]


def _whole(text: str) -> str:
    """`1e5` is a whole number too."""
    try:
        number = float(text)
    except ValueError:
        return text
    return str(int(number)) if number.is_integer() else text


@functools.cache
def _adapter(hint: Any) -> TypeAdapter[Any]:
    from pydantic import ConfigDict, TypeAdapter

    return TypeAdapter(hint, config=ConfigDict(strict=True, allow_inf_nan=False, arbitrary_types_allowed=True))
