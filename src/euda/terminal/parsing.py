"""Words → the arguments of a command, or help: tyro splits words and draws help, the schema says what words may be.

Tyro gets nothing but texts, so every sentence about a value is one of `euda.schema`, and what tyro does not know it
hands back.
"""

from __future__ import annotations

import contextlib
import dataclasses
import difflib
import inspect
import io
import shutil
import textwrap
from collections.abc import Callable, Sequence
from typing import Annotated, Any

import tyro

from euda import schema
from euda.errors import EudaError, unknown
from euda.runs import settings
from euda.schema import Settings
from euda.terminal.flags import MISSING, Command, Flag, Overrides, dashed, flags_of

HELP, HELP_ALL = ("--help", "-h"), "--help-all"


def parse(name: str, command: Command, words: Sequence[str]) -> Callable[[], int] | None:
    """What is to be run, or None if help was asked for and printed; `name` is what the user typed: `euda train`."""
    flags = flags_of(command, words)
    if asked := [place for place, word in enumerate(words) if word in (*HELP, HELP_ALL)]:
        after = words[asked[0] + 1 : asked[0] + 2]
        group = after[0] if after and not after[0].startswith("-") else ""
        print_help(name, command, flags, group, is_whole=HELP_ALL in words)
        return None
    typed, rest = _split(name, flags, words)
    if rest:
        raise EudaError(_unexpected(name, flags, rest[0]))
    given = {flag: text for flag, text in typed.items() if text not in (None, ()) and text != flag.default}
    for flag in flags:
        if flag.default is MISSING and flag not in given:
            raise EudaError(f"{flag.metavar or f'--{flag.name}'} is missing: see {name} --help")
    arguments = _arguments(command, {flag: flag.value(text) for flag, text in given.items()})
    return lambda: command(**arguments)


def _texts(flags: Sequence[Flag], explained: Callable[[Flag], bool] = lambda flag: True) -> Any:
    """A class of texts with a field for each flag; in tyro's help each group of settings has a box of its own."""
    tree: dict[str, Any] = {}
    for flag in flags:
        *group, last = flag.name.replace("-", "_").split(".")
        branch = tree.setdefault(group[0], {}) if group else tree
        branch[last] = flag
    return _class("words", tree, explained)


def _class(name: str, tree: dict[str, Any], explained: Callable[[Flag], bool]) -> Any:
    fields: list[Any] = []
    for key, node in tree.items():
        if isinstance(node, Flag):
            fields.append((f"{key}_", *_field(node, explained(node))))
        else:
            kind = _class(key, node, explained)
            about = Annotated[kind, tyro.conf.arg(name=dashed(key))]
            fields.append((f"{key}_", about, dataclasses.field(default_factory=kind)))
    return dataclasses.make_dataclass(name, fields)


def _field(flag: Flag, is_explained: bool) -> tuple[Any, Any]:
    """Type and default of one flag for tyro: a switch, a list of texts, or a text."""
    hint = "" if flag.default in (None, (), MISSING) else f"(default: {_shown(flag.default)})"
    about = tyro.conf.arg(
        name=flag.name.rpartition(".")[2],
        metavar=None if flag.is_switch else flag.metavar or _metavar(flag),
        help=flag.words,
        help_behavior_hint=hint,
    )
    kind: Any = bool if flag.is_switch else tuple[str, ...] if flag.is_list else str | None
    if flag.metavar:
        kind = tyro.conf.Positional[kind]
    if not is_explained:
        kind = tyro.conf.Suppress[kind]
    return Annotated[kind, about], flag.default if flag.is_switch else () if flag.is_list else None


def _metavar(flag: Flag) -> str:
    kinds = [kind for kind in schema.kinds(flag.hint) if kind is not type(None)]
    names = {int: "INT", float: "NUMBER"}
    choices = schema.choices(flag.hint)
    return "|".join(map(str, choices)) if choices else names.get(kinds[0], flag.name.rpartition(".")[2].upper())


def _shown(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _split(name: str, flags: Sequence[Flag], words: Sequence[str]) -> tuple[dict[Flag, Any], list[str]]:
    """The texts of each flag, and the words that belong to none."""
    try:
        with contextlib.redirect_stderr(io.StringIO()):
            found, rest = tyro.cli(
                _texts(flags), args=words, prog=name, return_unknown_args=True, console_outputs=False, add_help=False
            )
    except SystemExit:
        raise EudaError(_without_value(name, flags, words)) from None
    return {flag: _get(found, flag) for flag in flags}, rest


def _get(found: Any, flag: Flag) -> Any:
    for key in flag.name.replace("-", "_").split("."):
        found = getattr(found, f"{key}_")
    return found


def _arguments(command: Command, values: dict[Flag, Any]) -> dict[str, Any]:
    """The values as the command's arguments."""
    arguments: dict[str, Any] = {}
    for name, parameter in inspect.signature(command).parameters.items():
        own = {flag.path[1:]: value for flag, value in values.items() if flag.path[0] == name}
        if () in own:
            arguments[name] = own[()]
        elif isinstance(parameter.default, Settings):
            arguments[name] = dataclasses.replace(parameter.default, **{path[0]: value for path, value in own.items()})
        elif isinstance(parameter.default, Overrides):
            arguments[name] = _nested(own)
    return arguments


def _nested(values: dict[tuple[str, ...], Any]) -> Overrides:
    nested = Overrides()
    for (first, *rest), value in values.items():
        if rest:
            nested.setdefault(first, {})[rest[0]] = value
        else:
            nested[first] = value
    return nested


def _unexpected(name: str, flags: Sequence[Flag], word: str) -> str:
    if not word.startswith("-"):
        return f"{word!r} is an unexpected argument: see {name} --help"
    flag = word.partition("=")[0]
    near = difflib.get_close_matches(flag, [f"--{flag.name}" for flag in flags], n=3, cutoff=0.6)
    hint = f" did you mean {' or '.join(near)}?" if near else ""
    return f"unknown flag {flag}:{hint} see {name} --help"


def _without_value(name: str, flags: Sequence[Flag], words: Sequence[str]) -> str:
    """Which flag has no value: all that tyro refuses, as everything else is a text that may be left out."""
    known = {f"--{flag.name}" for flag in flags if not flag.is_switch and not flag.is_list}
    for word, following in zip(words, [*words[1:], "--"], strict=True):
        if word.replace("_", "-") in known and following.startswith("--"):
            return f"{word} has no value: see {name} --help"
    return f"these arguments cannot be parsed: see {name} --help"


def print_help(name: str, command: Command, flags: Sequence[Flag], group: str, is_whole: bool) -> None:
    """Explain the flags of no group, of one, or all."""
    groups: dict[str, list[Flag]] = {}
    for flag in flags:
        groups.setdefault(flag.group, []).append(flag)
    if group not in groups:
        raise unknown("group of flags", group, [found for found in groups if found])
    about = inspect.cleandoc(command.__doc__ or "").partition("\n\nArgs:")[0]
    with contextlib.suppress(SystemExit):
        tyro.cli(_texts(flags, lambda flag: is_whole or flag.group == group), args=["--help"], prog=name,
                 description=about)  # fmt: skip
    if len(groups) > 1 and not is_whole and not group:
        print(f"more flags, explained by --help GROUP ({name} --help robot) or {HELP_ALL}:")
        for found in groups:
            print("\n".join(_listed(found, groups[found])), end="\n" if found else "")
    print("--import MODULE: import your module first, which adds rows to all of these (docs/robot.md)")


def _listed(group: str, flags: Sequence[Flag]) -> list[str]:
    """The names of a group; of settings that were derived from another group's those that are new."""
    if not group:
        return []
    kinds = settings.groups()
    known = next((other for other, kind in kinds.items() if group in kinds and kind in kinds[group].__mro__[1:]), None)
    old = () if known is None else schema.hints(kinds[known])
    prefix = f"{dashed(group)}."
    names = [flag.name.removeprefix(prefix) for flag in flags if flag.path[-1] not in old and "." in flag.name]
    names += [f"--{flag.name}" for flag in flags if "." not in flag.name]
    words = f"as --{known}." + (", and " if names else "") if known else ""
    title = f"  {f'--{prefix}' if any('.' in flag.name for flag in flags) else group:15} "
    width = min(shutil.get_terminal_size().columns, 100)
    return textwrap.wrap(words + " ".join(names), width, initial_indent=title, subsequent_indent=" " * len(title),
                         break_on_hyphens=False)  # fmt: skip
