"""Lines for a person: what was asked for on standard output, everything else on standard error."""

from __future__ import annotations

import sys


def line(text: str) -> None:
    """What was asked for."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def complain(text: str) -> None:
    """What the user should know besides."""
    sys.stderr.write(f"euda: {text}\n")
