"""Tables for a person at a terminal, and for a program that reads them."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

_ENDLESS = 100_000  # columns of a file: nothing in it is wrapped


def show(header: Sequence[Any], rows: Sequence[Sequence[Any]], texts: int = 1) -> None:
    """Aligned columns, the first `texts` of them left and the rest right.

    A terminal wraps what is too wide for it; elsewhere a row is one plain line, whatever its length.
    """
    console = Console(file=sys.stdout, highlight=False)
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for place, name in enumerate(header):
        table.add_column(Text(str(name)), justify="left" if place < texts else "right", no_wrap=not console.is_terminal)
    for row in rows:
        table.add_row(*(Text(str(cell)) for cell in row))
    if console.is_terminal:
        console.print(table)
        return
    plain = Console(file=sys.stdout, width=_ENDLESS, color_system=None)
    with plain.capture() as captured:
        plain.print(table)
    sys.stdout.write("".join(f"{line.rstrip()}\n" for line in captured.get().splitlines()))
