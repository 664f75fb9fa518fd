"""Things by name: what a row of a table says as `module:name`, and the row that a user named."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from euda.errors import unknown

Maker = str | Callable[..., Any]
"""What makes the thing that a row describes: a callable, or `module:name`, which is loaded when it is needed."""
Row = TypeVar("Row")


def loaded(maker: Maker) -> Any:
    """The callable of a maker; tables are read by every command, so what they name is loaded only now."""
    if callable(maker):
        return maker
    module, _, name = maker.partition(":")
    return getattr(importlib.import_module(module), name)


def find(what: str, rows: Mapping[str, Row], name: str) -> Row:
    """The row of that name; an unknown one is refused with the nearest and all valid ones."""
    if name not in rows:
        raise unknown(what, name, rows)
    return rows[name]
