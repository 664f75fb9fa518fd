"""Promises of the repository itself: what is locked, what is capped, and what no file may contain."""

import ast
import importlib.metadata
import os
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from packaging.markers import Marker
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
PINNED = re.compile(
    r"(?P<name>[a-z0-9-]+)==(?P<version>[\w.+]+)(?: ; (?P<marker>[^\\]+?))?(?: --hash=sha256:[0-9a-f]{64})+"
)
# A folder of one person's or one machine's; not a part of a web address.
MACHINE_PATH = re.compile(r"(?<![\w.:/~-])/(?:home|root|work|Users)/\w")
ELSEWHERE = {
    ".git",
    ".venv",
    ".venv-extras",
    "__pycache__",
    ".pytest_cache",
    ".ruff_cache",
    ".hypothesis",
    "build",
    "dist",
    "runs",
}


def lock() -> list[re.Match[str]]:
    text = re.sub(r" *\\\n +", " ", (ROOT / "requirements.lock").read_text("utf-8"))
    matches = [(line, PINNED.fullmatch(line)) for line in text.splitlines()]
    assert [line for line, match in matches if match is None] == []
    return [match for _, match in matches if match is not None]


def requirements() -> list[Requirement]:
    return [Requirement(line) for line in PROJECT["project"]["dependencies"] + PROJECT["dependency-groups"]["dev"]]


def files() -> Iterator[Path]:
    for folder, names, entries in os.walk(ROOT):
        names[:] = [name for name in names if name not in ELSEWHERE]
        yield from (Path(folder, entry) for entry in entries if entry not in ELSEWHERE)


def sources() -> list[Path]:
    return [path for name in ("src", "benchmarks", "studies") for path in sorted((ROOT / name).rglob("*.py"))]


def test_lock_is_versions_and_hashes_only():
    assert len(lock()) > 50
    assert "://" not in (ROOT / "requirements.lock").read_text("utf-8")


def test_lock_holds_no_gpu_or_torch_packages():
    assert [pin["name"] for pin in lock() if re.match(r"nvidia|torch|triton|.*-cuda", pin["name"])] == []


@pytest.mark.parametrize("python", ["3.11", "3.12"])
def test_lock_meets_every_requirement_once(python):
    environment = {"python_version": python, "python_full_version": f"{python}.0", "sys_platform": "linux"}
    pins = [pin for pin in lock() if not pin["marker"] or Marker(pin["marker"]).evaluate(environment)]
    versions = {pin["name"]: pin["version"] for pin in pins}
    assert len(versions) == len(pins)
    unmet = [str(r) for r in requirements() if not r.specifier.contains(versions[canonicalize_name(r.name)])]
    assert unmet == []


def test_mujoco_is_capped_below_4():
    (mujoco,) = (requirement for requirement in requirements() if requirement.name == "mujoco")
    assert mujoco.specifier.contains("3.17.0")
    assert not mujoco.specifier.contains("4.0.0")


def test_entry_points_resolve():
    project = PROJECT["project"]
    groups = {"console_scripts": project["scripts"]}
    for group, entries in groups.items():
        for name, value in entries.items():
            assert callable(importlib.metadata.EntryPoint(name, value, group).load())


def test_no_file_names_a_machine_or_a_package_index():
    options = re.compile(r"--(?:extra-)?index-url|--find-links|--trusted-host|" + MACHINE_PATH.pattern)
    offenders = []
    for path in files():
        try:
            text = path.read_text("utf-8")
        except UnicodeDecodeError:
            continue
        if path != Path(__file__):
            offenders += [f"{path.relative_to(ROOT)}: {match.group()}" for match in options.finditer(text)]
    assert offenders == []


def unsafe(source: str) -> list[str]:
    """Uses of what can run code found in data: pickle and its kin, eval, exec."""
    banned = {"pickle", "cloudpickle", "dill", "shelve", "marshal", "joblib"}
    found = []
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Import(names=names):
                found += [alias.name for alias in names if alias.name.split(".")[0] in banned]
            case ast.ImportFrom(module=str(module)) if module.split(".")[0] in banned:
                found.append(module)
            case ast.Call(func=ast.Name(id="eval" | "exec" as name)):
                found.append(name)
            case ast.keyword(arg="allow_pickle", value=ast.Constant(value=True)):
                found.append("allow_pickle")
    return found


def test_no_source_runs_code_found_in_data():
    assert {str(path.relative_to(ROOT)): bad for path in sources() if (bad := unsafe(path.read_text("utf-8")))} == {}
    assert unsafe("import pickle\neval('1')\nnp.load(f, allow_pickle=True)\nmodel.eval()") != []


def test_scripts_are_executable():
    assert os.access(ROOT / ".ci" / "run", os.X_OK)
