"""Write the tables of the documents that follow from the program or from committed results.

    .venv/bin/python docs/generate.py

A table stands between `<!-- NAME: written by docs/generate.py -->` and `<!-- end -->`. `tests/test_documents.py`
says so if what stands there is no longer what the program says.
"""

from __future__ import annotations

import contextlib
import io
import json
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from euda import METHODS, TASKS, make, schema
from euda.replay.settings import AUGMENTATIONS
from euda.runs import plugins, settings
from euda.runs.bases import BASES
from euda.runs.methods import Method
from euda.terminal import cli

DOCS = Path(__file__).resolve().parent
RESULTS = DOCS.parent / "results" / "benchmarks"
SECTION = re.compile(r"(<!-- ([\w-]+): written by docs/generate\.py -->\n).*?(\n<!-- end -->)", re.DOTALL)


def tasks() -> str:
    """What `euda tasks` prints."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        cli.main(["tasks"])
    return f"```text\n{out.getvalue()}```"


def layouts() -> str:
    """What `euda layout` prints for every task's limb features."""
    return "\n\n".join(f"## {task}\n\n```text\n{make(task).layout}\n```" for task in TASKS)


def gallery() -> str:
    """Every task's picture with the verdicts of its certificates."""
    found = _certificates()
    parts = []
    for task in TASKS:
        words = [_verdict(found[task, cone]) for cone in ("pyramidal", "elliptic")]
        link = f"[Layout](layouts.md#{task})"
        parts.append(f"### {task}\n\n![{task}](pictures/{task}.png)\n\n{words[0]}. {words[1]}. {link}.")
    return "\n\n".join(parts)


def _verdict(certificate: dict[str, Any]) -> str:
    worst = "" if certificate["verdict"] == "exact" else f" (worst error {certificate['worst']:.1g})"
    return f"{certificate['cone'].capitalize()} cone: {certificate['verdict']}{worst}"


def certificates() -> str:
    """`results/benchmarks/certificates.json` as a table."""
    rows = []
    for (task, cone), c in _certificates().items():
        field = max(entry["max"] for entry in c["fields"].values())
        dynamics = f"{_short(c['dynamics']['median'])} / {_short(c['dynamics']['max'])}"
        energy = f"{_short(c['energy']['median'])} / {_short(c['energy']['p90'])}"
        looked = [
            f"{c['coverage'][what]['touched']} of {c['coverage'][what]['total']}" for what in ("contacts", "limits")
        ]
        rows.append((f"`{task}`", cone, c["verdict"], dynamics, energy, _short(field), _short(c["reward"]["max"]),
                     f"{c['states']} + {c['sought']}", *looked))  # fmt: skip
    header = ("task", "cone", "verdict", "dynamics, median / worst", "of a step's change, median / p90", "worst field",
              "reward, worst", "states, made", "contact pairs", "limits")  # fmt: skip
    return _table(header, rows)


def _certificates() -> dict[tuple[str, str], dict[str, Any]]:
    stored = json.loads((RESULTS / "certificates.json").read_text("utf-8"))["certificates"]
    return {(entry["task"], entry["cone"]): entry for entry in stored}


def sufficiency() -> str:
    """`results/benchmarks/sufficiency.json` as a table."""
    stored = json.loads((RESULTS / "sufficiency.json").read_text("utf-8"))["rows"]
    cells = {(row["task"], row["features"]): row for row in stored}
    rows = []
    for task in TASKS:
        ranks = [cells[task, features] for features in ("limb", "limb-paper", "joint")]
        rows.append((f"`{task}`", ranks[0]["expected"], *map(_rank, ranks)))
    return _table(("task", "full rank", "`limb`", "`limb-paper`", "`joint`"), rows)


def _rank(row: dict[str, Any]) -> str:
    short = row["expected"] - row["rank"]
    return f"{row['rank']}{f' ({short} short)' if short > 0 else ''}, {row['smallest']:.0e}"


def coverage() -> str:
    """`results/benchmarks/coverage.json` as a table, a column for each number of seeds."""
    stored = json.loads((RESULTS / "coverage.json").read_text("utf-8"))
    names = {"Student t": "mean, Student t", "bootstrap": "mean, bootstrap", "median": "**median, ours**"}
    both = {"bootstrap": "better, bootstrap", "ours": "**better, ours**"}
    rows: dict[tuple[str, str], dict[int, str]] = {}
    for part, words in (("one_method", names), ("two_methods", both)):
        for entry in stored[part]:
            for key, name in words.items():
                cell = "–" if entry[key] is None else f"{100 * entry[key]:.0f}"
                rows.setdefault((entry["returns"], name), {})[entry["seeds"]] = cell
    seeds = next(iter(rows.values()))
    return _table(("returns", "interval", *(f"{n} seeds, %" for n in seeds)),
                  [(*key, *cells.values()) for key, cells in rows.items()])  # fmt: skip


def methods() -> str:
    """The table of methods."""

    def share(method: Method) -> str:
        row = AUGMENTATIONS[method.augment]
        return "–" if row.make is None else "chosen" if row.share is None else f"{row.share:g}"

    def part(name: str | None) -> str:
        return "the base's" if name is None else f"`{name}`"

    rows = [(f"`{name}`", f"`{m.features}`", f"`{m.augment}`", share(m), f"`{m.frame}`", part(m.agent), part(m.network))
            for name, m in METHODS.items()]  # fmt: skip
    return _table(("method", "features", "augmentation", "share on `paper`", "frame", "agent", "network"), rows)


def hyperparameters() -> str:
    """Every flag of these groups, its value on each base and its meaning, from the configuration classes."""
    rows = []
    for group, kind in settings.groups().items():
        for name, hint in schema.hints(kind).items():
            values = [_plain(getattr(base.of(kind), name)) for base in BASES.values()]
            flag = name if name in schema.top_level(kind) else f"{group}.{name}"
            rows.append((f"`--{flag.replace('_', '-')}`", *values, plugins.with_rows(kind.help(name), hint)))
    return _table(("flag", *BASES, "meaning"), rows)


def _plain(value: Any) -> str:
    return "default" if value is None else f"{value:.4g}" if isinstance(value, float) else str(value)


def _short(value: float) -> str:
    return "0" if value == 0 else f"{value:.0e}"


def _table(header: Iterable[Any], rows: Iterable[Iterable[Any]]) -> str:
    header = list(header)
    lines = [f"| {' | '.join(map(str, row))} |" for row in (header, *rows)]
    return "\n".join([lines[0], "|" + "---|" * len(header), *lines[1:]])


SECTIONS: dict[str, Callable[[], str]] = {
    "tasks": tasks,
    "layouts": layouts,
    "gallery": gallery,
    "certificates": certificates,
    "sufficiency": sufficiency,
    "coverage": coverage,
    "methods": methods,
    "hyperparameters": hyperparameters,
}


def written(text: str) -> str:
    """A document with its tables as they should be now."""
    return SECTION.sub(lambda match: f"{match[1]}\n{SECTIONS[match[2]]()}\n{match[3]}", text)


def main() -> None:
    """Write every document that has a table."""
    for path in sorted(DOCS.glob("*.md")):
        old = path.read_text("utf-8")
        new = written(old)
        if new != old:
            path.write_text(new, "utf-8")


if __name__ == "__main__":
    main()
