"""Tables of the command line: one plain line per row for programs, wrapped to its width on a terminal."""

import io
import re
import sys

import pytest

from euda.terminal import tables

LONG = ", ".join(["a name of a method that is longer than any terminal is wide"] * 5)
ROWS = [("reacher_hard", LONG, 3, "[bold]1.5[/bold]"), ("é", "limb", 12, "")]


def shown(monkeypatch, is_terminal, **environment):
    out = io.StringIO()
    out.isatty = lambda: is_terminal
    monkeypatch.setattr(sys, "stdout", out)
    for name in ("FORCE_COLOR", "TTY_COMPATIBLE", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    tables.show(("task", "method", "seed", "return"), ROWS, texts=2)
    return out.getvalue()


def test_a_file_gets_one_plain_line_per_row_and_texts_as_they_are(monkeypatch):
    text = shown(monkeypatch, False, COLUMNS="40")
    width = len(LONG)
    assert text.splitlines() == [
        f"task          {'method':{width}}  seed            return",
        f"reacher_hard  {LONG}     3  [bold]1.5[/bold]",
        f"é             {'limb':{width}}    12",
    ]


def test_a_terminal_gets_lines_that_fit(monkeypatch):
    text = re.sub(r"\x1b\[[\d;]*m", "", shown(monkeypatch, True, COLUMNS="60", TERM="xterm"))
    lines = text.splitlines()
    assert len(lines) > 5
    assert max(map(len, lines)) <= 60
    assert "[bold]" in text


@pytest.mark.parametrize("rows", [[], [("a", "b")]])
def test_small_tables(capsys, rows):
    tables.show(("first", "second"), rows)
    assert capsys.readouterr().out.splitlines() == ["first  second", *(["a           b"] if rows else [])]
