"""Imports inside euda point forward only: body ← replay ← agents ← study ← cli."""

import ast
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "src" / "euda"
ROOT = "euda"  # the package itself: its __init__ may import anything, so importing it is a way around the layers

FREE = {"config", "errors"}
ALLOWED: dict[str, set[str]] = {
    "config": FREE,
    "errors": FREE,
    "body": FREE,
    "replay": FREE | {"body"},
    "agents": FREE | {"body", "replay"},
    "study": FREE | {"body", "replay", "agents", "adapters"},
    "adapters": FREE | {"body", "replay"},
    "testing": FREE | {"body", "replay"},
    "api": FREE | {"body", "replay", "agents", "study"},
    "cli": FREE | {"body", "replay", "agents", "study", "adapters", "testing", ROOT},
    "__main__": {"cli"},
}


def imports(source: str, module: str, is_package: bool) -> Iterator[tuple[int, str]]:
    """Line and absolute dotted name of everything the source imports, wherever in the file."""
    package = module.split(".") if is_package else module.split(".")[:-1]
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Import(names=names):
                yield from ((node.lineno, alias.name) for alias in names)
            case ast.ImportFrom(module=origin, names=names, level=level):
                base = package[: len(package) - level + 1] if level else []
                stem = [*base, *([origin] if origin else [])]
                yield from ((node.lineno, ".".join([*stem, alias.name])) for alias in names)
            case ast.Call(
                func=ast.Attribute(attr="import_module") | ast.Name(id="import_module" | "__import__"),
                args=[ast.Constant(value=str(name)), *_],
            ):
                yield node.lineno, name


def layer(dotted: str) -> str | None:
    """The layer of euda that a dotted name belongs to, or None outside euda."""
    top, *rest = dotted.split(".")
    if top != ROOT:
        return None
    return rest[0] if rest and rest[0] in ALLOWED else ROOT


def violations(source: str, module: str, is_package: bool = False) -> list[str]:
    own = layer(module)
    assert own is not None
    found = ((line, name, layer(name)) for line, name in imports(source, module, is_package))
    return [
        f"{module}:{line} imports {name}: {own} may not use {target}"
        for line, name, target in found
        if target is not None and target != own and target not in ALLOWED[own]
    ]


def modules() -> Iterator[tuple[str, Path]]:
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
        yield ".".join(parts[:-1] if parts[-1] == "__init__" else parts), path


@pytest.mark.parametrize(("module", "path"), [pytest.param(*pair, id=pair[0]) for pair in modules() if pair[0] != ROOT])
def test_imports_point_forward(module, path):
    assert layer(module) != ROOT, f"{module} has no place in the layering: give it a row in ALLOWED"
    assert violations(path.read_text("utf-8"), module, path.name == "__init__.py") == []


@pytest.mark.parametrize(
    "source",
    [
        "import euda.agents.ddpg",
        "import numpy, euda.study as s",
        "from euda.agents.ddpg import DDPG",
        "from euda import agents",
        "from euda import make",
        "import euda",
        "from ..agents import ddpg",
        "from .. import study",
        "def f():\n    from euda.cli import main",
        "if TYPE_CHECKING:\n    from euda.study.run import Run",
        "importlib.import_module('euda.adapters.sb3')",
        "from euda.testing import assert_equivariant",
    ],
)
def test_backward_imports_are_caught(source):
    assert len(violations(source, "euda.replay.buffer")) == 1


def test_relative_imports_of_a_package_are_resolved_from_itself():
    assert violations("from ..study import run", "euda.body", is_package=True)
    assert not violations("from .layout import Layout", "euda.body", is_package=True)


def test_forward_imports_are_allowed():
    source = """
        import numpy as np
        import eudaimonia
        from euda.body.layout import Layout
        from euda.errors import EudaError
        from euda import config
        from . import augmentation
        from ..body import morphology
    """
    assert violations(textwrap.dedent(source), "euda.replay.buffer") == []
