"""Write the tables of the documents that follow from the program or from committed results.

    .venv/bin/python docs/generate.py

A table stands between `<!-- NAME: written by docs/generate.py -->` and `<!-- end -->`. `tests/test_documents.py`
says so if what stands there is no longer what the program says.
"""

from __future__ import annotations

import ast
import contextlib
import inspect
import io
import json
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from euda import METHODS, TASKS, cli, config, make
from euda.study import settings
from euda.study.methods import DEFAULT_SHARES, Method

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
        rows.append((f"`{task}`", cone, c["verdict"], dynamics, _short(field), _short(c["reward"]["max"]),
                     c["states_with_contacts"]))  # fmt: skip
    header = ("task", "cone", "verdict", "dynamics, median / worst", "worst field", "reward, worst",
              "states with frictional contacts")  # fmt: skip
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


def methods() -> str:
    """The table of methods."""

    def share(method: Method) -> str:
        value = DEFAULT_SHARES[method.augment]
        return "–" if method.augment == "none" else "chosen" if method.augment == "rotate-auto" else f"{value:g}"

    rows = [(f"`{name}`", f"`{m.agent}`", f"`{m.features}`", f"`{m.augment}`", share(m), f"`{m.network}`")
            for name, m in METHODS.items()]  # fmt: skip
    return _table(("method", "agent", "features", "augmentation", "default share", "network"), rows)


SETTINGS = {
    "replay": config.ReplayConfig,
    "mlp": config.MLPConfig,
    "ddpg": config.DDPGConfig,
    "sac": config.SACConfig,
    "evaluation": settings.EvaluationConfig,
}


def hyperparameters() -> str:
    """Every flag of these groups, its default and its meaning, from the configuration classes."""
    rows = []
    for group, kind in SETTINGS.items():
        for name, meaning in _fields(kind).items():
            default = getattr(kind(), name)
            rows.append((f"`--{group}.{name.replace('_', '-')}`", _plain(default), meaning))
    return _table(("flag", "default", "meaning"), rows)


def _plain(value: Any) -> str:
    return "see there" if value is None else f"{value:.4g}" if isinstance(value, float) else str(value)


def _fields(kind: type) -> dict[str, str]:
    """The fields of a configuration class, base classes first, with the strings under them."""
    found: dict[str, str] = {}
    for cls in reversed(kind.__mro__[:-1]):
        (node,) = ast.parse(inspect.getsource(cls)).body
        assert isinstance(node, ast.ClassDef)
        for field, text in zip(node.body, node.body[1:], strict=False):
            match field, text:
                case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(words))):
                    found[name] = words
    return found


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
