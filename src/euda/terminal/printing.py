"""Lines for a person: what was asked for on standard output, everything else on standard error."""

from __future__ import annotations

import sys
import textwrap

WIDTH = 119
"""Characters of a line of prose at most."""


def line(text: str) -> None:
    """What was asked for."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def statement(text: str) -> None:
    """What was asked for, however long: on lines of less than 120 characters, those after the first indented."""
    line(textwrap.fill(text, WIDTH, subsequent_indent="    ", break_long_words=False, break_on_hyphens=False))


def complain(text: str) -> None:
    """What the user should know besides."""
    sys.stderr.write(f"euda: {text}\n")
