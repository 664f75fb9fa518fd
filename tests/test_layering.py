"""Imports inside euda point forward only, and no private name crosses a module.

`ORDER` below is the order of the rooms; adapters come after replay.
"""

import ast
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "src" / "euda"
ROOT = "euda"  # the package itself: its __init__ may import anything, so importing it is a way around the layers

FREE = {"errors", "lookup", "operating_system", "schema", "trusted_code"}
ORDER = ("body", "tasks", "symmetry", "replay", "agents", "runs", "media", "exports", "studies", "reports", "terminal")
ALLOWED: dict[str, set[str]] = {
    **dict.fromkeys(FREE, FREE),
    **{room: FREE | set(ORDER[:place]) for place, room in enumerate(ORDER)},
    "mjx": FREE | {"body", "tasks", "symmetry", "replay"},
    "adapters": FREE | {"body", "tasks", "symmetry", "replay"},
    "testing": FREE | {"body", "replay"},
    "api": FREE | set(ORDER[: ORDER.index("reports")]),
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


def test_the_guide_for_contributors_has_every_folder_and_the_order_of_the_imports():
    guide = (PACKAGE.parents[1] / "CONTRIBUTING.md").read_text("utf-8")
    folders = {path.name for path in PACKAGE.iterdir() if path.is_dir() and path.name != "__pycache__"}
    assert set(re.findall(r"^\| `src/euda/(\w+)` \|", guide, re.MULTILINE)) == folders
    assert " ← ".join(f"`{room}`" for room in ORDER) in guide


@pytest.mark.parametrize(
    "source",
    [
        "import euda.agents.ddpg",
        "import numpy, euda.studies as s",
        "from euda.agents.ddpg import DDPG",
        "from euda import agents",
        "from euda import make",
        "import euda",
        "from ..agents import ddpg",
        "from .. import runs",
        "def f():\n    from euda.terminal.cli import main",
        "if TYPE_CHECKING:\n    from euda.runs.run_folder import Run",
        "importlib.import_module('euda.adapters.sb3')",
        "from euda.testing import assert_equivariant",
    ],
)
def test_backward_imports_are_caught(source):
    assert len(violations(source, "euda.replay.buffer")) == 1


def test_relative_imports_of_a_package_are_resolved_from_itself():
    assert violations("from ..runs import run_folder", "euda.body", is_package=True)
    assert not violations("from .layout import Layout", "euda.body", is_package=True)


def test_forward_imports_are_allowed():
    source = """
        import numpy as np
        import eudaimonia
        from euda.body.layout import Layout
        from euda.errors import EudaError
        from euda import lookup
        from . import augmentation
        from ..body import morphology
    """
    assert violations(textwrap.dedent(source), "euda.replay.buffer") == []


# -- private names ---------------------------------------------------------------------------------------


def private_uses(source: str) -> list[str]:
    """Names with one leading underscore that the source uses but does not itself define."""
    tree = ast.parse(source)
    defined: set[str] = set()
    used: list[tuple[int, str]] = []
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                defined.add(name)
            case ast.Name(id=name, ctx=ast.Store()):
                defined.add(name)
            case ast.Attribute(attr=name, ctx=ast.Store()):
                defined.add(name)
            case ast.Attribute(value=ast.Name(id="self")):
                pass  # a subclass may use what its base keeps for itself and its subclasses
            case ast.Attribute(attr=name):
                used.append((node.lineno, name))
            case ast.ImportFrom(names=names):
                used += [(node.lineno, alias.name) for alias in names]
    private = [(line, name) for line, name in used if name.startswith("_") and not name.startswith("__")]
    return [f"line {line} uses {name}" for line, name in private if name not in defined]


NAMED_SO = {"_replace", "_asdict", "_fields"}  # public methods of every NamedTuple


@pytest.mark.parametrize(("module", "path"), [pytest.param(*pair, id=pair[0]) for pair in modules()])
def test_no_private_name_crosses_a_module(module, path):
    found = private_uses(path.read_text("utf-8"))
    assert [use for use in found if use.rpartition(" ")[2] not in NAMED_SO] == []


@pytest.mark.parametrize(
    "source",
    ["from euda.body.features import _objects", "import m\nm._hidden()", "def f(env):\n    env._set_control(0)"],
)
def test_private_uses_are_caught(source):
    assert len(private_uses(source)) == 1


def test_a_module_may_use_its_own_private_names():
    assert private_uses("class A:\n    def f(self):\n        self._x = 1\n\ndef g(a):\n    return a._x") == []
