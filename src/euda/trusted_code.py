"""Code that a user names: which of it this process may import, and the functions found there.

A run's configuration is data and may come from somebody else, so nothing that it names is imported because it
says so. A module is imported only if the user of this process named it, on the command line or from Python.
"""

from __future__ import annotations

import hashlib
import importlib
import inspect
import os
import sys
from collections.abc import Callable
from typing import Any

from euda.errors import EudaError, unknown

_named: set[str] = set()


def name(text: str) -> None:
    """The user of this process names `module:something`: it may be imported from now on."""
    _named.add(text)


def is_named(text: str) -> bool:
    """Whether the user of this process has named it."""
    return text in _named


def require(text: str, flag: str) -> None:
    """Refuse what only a stored configuration names."""
    if not is_named(text):
        raise EudaError(f"this run needs your code ({text}), which is imported only if you name it: add {flag} {text}")


def module(text: str, what: str) -> Any:
    """Import `module` or that of `module:something`, also from the working directory, where users keep theirs."""
    word = text.rpartition(":")[0] or text
    here = os.getcwd()
    if here not in sys.path:
        sys.path.append(here)
    try:
        return importlib.import_module(word)
    except (Exception, SystemExit) as error:  # anything may happen in a module of theirs
        said = " ".join(str(error).split())
        raise EudaError(f"{what} {text!r}: cannot import {word!r}: {type(error).__name__}: {said}") from error


def function(text: str) -> Callable[..., Any]:
    """The function that `module:function` names; the user must have named it."""
    before, _, attribute = text.partition(":")
    if not before or not attribute:
        raise EudaError(f"a custom reward is named module:function, not {text!r}")
    require(text, "--reward")
    found = module(text, "reward")
    value = getattr(found, attribute, None)
    if value is None:
        callables = [key for key, entry in vars(found).items() if callable(entry) and not key.startswith("_")]
        raise unknown(f"function of module {before!r}", attribute, callables or ["(it has none)"])
    if not callable(value):
        raise EudaError(f"reward {text!r} is not a function but {type(value).__name__}")
    return value


def text_of(function_: Callable[..., Any]) -> str | None:
    """Eight characters of a function's own text, or None where Python cannot show it."""
    try:
        return hashlib.sha256(inspect.getsource(function_).encode()).hexdigest()[:8]
    except (OSError, TypeError):
        return None
