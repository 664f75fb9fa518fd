"""The built wheel works outside the repository: installed into a fresh environment, it brings the command line along.

Nothing is downloaded: the environment sees the packages of the one that runs the tests, but not its euda.
"""

import os
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

import euda

ROOT = Path(__file__).parents[1]


def run(*command: object, cwd: Path) -> str:
    """The output of a command that knows nothing of this repository."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "PIP_"))}
    done = subprocess.run(
        [str(word) for word in command], cwd=cwd, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", folder, cwd=ROOT)
    (path,) = folder.iterdir()
    return path


@pytest.fixture(scope="module")
def environment(wheel, tmp_path_factory) -> Path:
    """The folder of a fresh environment with the wheel in it."""
    folder = tmp_path_factory.mktemp("fresh")
    run(sys.executable, "-m", "venv", "--without-pip", folder, cwd=folder)
    python = folder / "bin" / "python"
    run(sys.executable, "-m", "pip", "--python", python, "install", "--no-deps", "--no-index", wheel, cwd=folder)
    own = Path(run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))", cwd=folder).strip())
    (own / "shared.pth").write_text(
        sysconfig.get_path("purelib") + "\n"
    )  # behind its own, and without editable installs
    return folder


def test_the_wheel_holds_every_file_of_the_package_and_nothing_else(wheel):
    package = Path(euda.__file__).parent
    files = {path for path in package.rglob("*") if path.is_file() and "__pycache__" not in path.parts}
    names = {str(Path("euda", path.relative_to(package))) for path in files}
    assert {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name} == names
    assert {"euda/py.typed", "euda/examples/tripod.xml"} <= names


def test_the_command_line_works_outside_the_repository(environment, tmp_path):
    command = environment / "bin" / "euda"
    place = run(environment / "bin" / "python", "-c", "import euda; print(euda.__file__)", cwd=tmp_path)
    assert Path(place.strip()).is_relative_to(environment)
    lines = run(command, "tasks", cwd=tmp_path).splitlines()
    assert {line.split()[0] for line in lines} >= set(euda.TASKS)
    assert run(command, "--version", cwd=tmp_path).startswith("euda ")
    assert os.listdir(tmp_path) == []
