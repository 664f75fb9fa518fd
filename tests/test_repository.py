"""Promises of the repository itself: what is locked, what is capped, and what no file may contain."""

import ast
import importlib.metadata
import os
import re
import subprocess
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
    ".venv-mjx",
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


def pins_of(python: str) -> list[re.Match[str]]:
    """What is installed with a version of Python."""
    environment = {"python_version": python, "python_full_version": f"{python}.0", "sys_platform": "linux"}
    return [pin for pin in lock() if not pin["marker"] or Marker(pin["marker"]).evaluate(environment)]


@pytest.mark.parametrize("python", ["3.11", "3.12", "3.13"])
def test_lock_meets_every_requirement_once(python):
    pins = pins_of(python)
    versions = {pin["name"]: pin["version"] for pin in pins}
    assert len(versions) == len(pins)
    unmet = [str(r) for r in requirements() if not r.specifier.contains(versions[canonicalize_name(r.name)])]
    assert unmet == []


WITHOUT_WHEEL = {"labmaze"}
"""Has none for Python 3.13: only dm_control's mazes, of which euda has none, would import it."""


@pytest.mark.parametrize("python", ["3.11", "3.12", "3.13"])
def test_lock_is_complete(python):
    """It is installed without resolving, so whatever a package of it needs must be in it."""
    here = {"python_version": python, "python_full_version": f"{python}.0", "extra": ""}
    names = {pin["name"] for pin in pins_of(python)}
    needed = {
        canonicalize_name(requirement.name): name
        for name in names
        for line in _requires(name)
        for requirement in [Requirement(line)]
        if requirement.marker is None or requirement.marker.evaluate(here)
    }
    assert set(needed) - names == (WITHOUT_WHEEL if python == "3.13" else set())


def _requires(name: str) -> list[str]:
    """What an installed package asks for; the lock has some for other systems and versions, which cannot be asked."""
    try:
        return importlib.metadata.requires(name) or []
    except importlib.metadata.PackageNotFoundError:
        return []


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
    assert os.access(ROOT / ".ci" / "system-packages", os.X_OK)


@pytest.mark.parametrize(
    ("installed", "user", "says", "asked"),
    [
        ("one two", 0, ["all there (one two)"], []),
        ("one", 0, ["missing two", "installed two"], ["update", "install two"]),
        ("", 0, ["missing one two", "installed one two"], ["update", "install one two"]),
        ("one", 1000, ["missing two"], []),
    ],
)
def test_system_packages_are_installed_only_where_they_are_missing(tmp_path, installed, user, says, asked):
    """With stand-ins for Debian's programs that know what is installed and keep what they are asked for."""
    programs = {
        "dpkg-query": f'for last; do :; done; case " {installed} " in *" $last "*) echo installed;; *) exit 1;; esac',
        "apt-get": f'words=; for word; do case $word in -*) ;; *) words="$words $word";; esac; done; '
        f"echo $words >> {tmp_path}/asked",
        "id": f"echo {user}",
    }
    for name, text in programs.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / name).chmod(0o755)
    environment = os.environ | {"PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}"}
    command = [ROOT / ".ci" / "system-packages", "one", "two"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [f"system packages: {line}" for line in says]
    log = tmp_path / "asked"
    assert (log.read_text().splitlines() if log.exists() else []) == asked
    assert ("yourself" in done.stderr) == (user != 0)


@pytest.mark.parametrize(("target", "folder"), [("test-mjx", ".venv-mjx"), ("test-extras", ".venv-extras")])
def test_extras_are_installed_only_when_their_versions_change(tmp_path, target, folder):
    """With stand-ins for Python that keep what they are asked for, in environments that are there already."""
    asked, makefile = tmp_path / "asked", (ROOT / "Makefile").read_text("utf-8")
    programs = {f"{folder}/bin/python": f'echo "$@" >> {asked}', ".ci/system-packages": ""}
    for name, text in programs.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / name).chmod(0o755)
    (tmp_path / folder / "lock.txt").write_text("numpy==2.0.0\n")
    for place, name in enumerate(
        ["requirements.lock", "pyproject.toml", ".venv/.installed-lock", ".venv/.installed-euda", f"{folder}/.on-top"]
    ):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
        os.utime(tmp_path / name, (place, place))  # each newer than what it is made of

    def installs(text: str) -> int:
        asked.unlink(missing_ok=True)
        (tmp_path / "Makefile").write_text(text)
        subprocess.run(["make", target], cwd=tmp_path, capture_output=True, check=True)
        return sum("-m pip install" in line for line in asked.read_text().splitlines())

    assert installs(makefile) == 2
    assert installs(makefile) == 0
    assert installs(f"{makefile}\n# a remark\n") == 0
    version = {"test-mjx": "brax==0.14.2", "test-extras": "minari==0.5.4"}[target]
    assert installs(makefile.replace(version, f"{version}.post1")) == 2
