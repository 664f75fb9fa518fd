"""The public door: every name resolves, says what it is, and shows an example that runs as it is printed."""

import ast
import doctest
import importlib
import importlib.resources
import inspect
import tempfile
from pathlib import Path

import pytest

import euda
import euda.testing
from euda import EudaError

TESTING = [name for name, value in vars(euda.testing).items() if inspect.isfunction(value) and not name.startswith("_")]
NAMES = [f"euda.{name}" for name in euda.__all__] + [
    f"euda.testing.{name}" for name in TESTING if getattr(euda.testing, name).__module__ == "euda.testing"
]


def home(name: str) -> str:
    """The module in which a public name is defined."""
    module, _, attribute = name.rpartition(".")
    return module if module != "euda" else euda._HOME[attribute]


def documentation(name: str) -> str:
    """The docstring of a class or function, or the string under an assignment."""
    attribute = name.rpartition(".")[2]
    tree = ast.parse(Path(inspect.getfile(importlib.import_module(home(name)))).read_text("utf-8"))
    for node, following in zip(tree.body, [*tree.body[1:], None], strict=True):
        match node:
            case ast.FunctionDef(name=found) | ast.ClassDef(name=found) if found == attribute:
                if text := ast.get_docstring(node):  # overloads have none
                    return text
            case ast.Assign(targets=[ast.Name(id=found)]) | ast.AnnAssign(target=ast.Name(id=found)) if (
                found == attribute
            ):
                match following:
                    case ast.Expr(value=ast.Constant(value=str(text))):
                        return text
    return ""


def test_public_names_are_about_twenty_and_typed():
    assert 15 <= len(euda.__all__) <= 28
    assert set(euda.__all__) == set(euda._HOME) == set(dir(euda))
    assert importlib.resources.files("euda").joinpath("py.typed").is_file()


@pytest.mark.parametrize("name", NAMES)
def test_public_name_has_an_example_that_runs(name, tmp_path, monkeypatch):
    module, _, attribute = name.rpartition(".")
    assert getattr(importlib.import_module(module), attribute) is not None
    text = documentation(name)
    assert text.strip(), f"{name} has no docstring"
    test = doctest.DocTestParser().get_doctest(text, {}, name, None, 0)
    assert test.examples, f"{name} has no example"
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    report: list[str] = []
    doctest.DocTestRunner(verbose=False).run(test, out=report.append)
    assert report == []


def test_a_former_name_still_works():
    assert euda.load_policy is euda.load
    assert "load_policy" not in dir(euda)


def test_unknown_names_are_refused():
    with pytest.raises(AttributeError, match="no attribute 'rotation'"):
        _ = euda.rotation


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"task": "reacher"}, "unknown task 'reacher': did you mean 'reacher_hard'"),
        ({"method": "turn"}, "unknown method 'turn'"),
        ({"base": "papre"}, "unknown base 'papre': did you mean 'paper'"),
        ({"share": 2.0}, "share must be a finite number between 0 and 1, not 2.0"),
        ({"method": "limb", "share": 0.5}, "share 0.5 changes nothing"),
        ({"mlp": {"size": 3}}, "unknown entry of mlp 'size'"),
        ({"learning_rate": 1.0}, "unknown override 'learning_rate'"),
    ],
)
def test_train_refuses_in_one_sentence(options, says, tmp_path):
    with pytest.raises(EudaError) as caught:
        euda.train(**({"task": "reacher_hard", "out": tmp_path / "run"} | options))
    assert str(caught.value).startswith(says)
    assert not (tmp_path / "run").exists()


def test_policies_of_nothing_are_refused(tmp_path):
    with pytest.raises(EudaError, match="is not a run"):
        euda.load(tmp_path)
    with pytest.raises(EudaError, match="is not a run"):
        euda.evaluate(str(tmp_path))
