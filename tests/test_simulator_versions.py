"""Simulator packages that are missing or do not fit each other are refused in one sentence."""

import importlib.metadata

import pytest

from euda import EudaError
from euda.mjx import versions


@pytest.mark.parametrize(
    ("package", "installed", "says"),
    [
        ("mujoco-mjx", {"mujoco": "3.17.0"}, r"this needs the package mujoco-mjx: pip install 'euda\[mjx\]'"),
        (
            "mujoco-mjx",
            {"mujoco-mjx": "3.18.0", "mujoco": "3.17.0"},
            "mujoco-mjx 3.18.0 does not fit mujoco 3.17.0: pip install mujoco-mjx==3.17.0",
        ),
        ("mujoco-mjx", {"mujoco-mjx": "3.2.7", "mujoco": "3.2.7"}, "tested with mujoco-mjx 3.17, not 3.2.7"),
        ("playground", {"playground": "0.3.0"}, "tested with playground 0.2, not 0.3.0"),
        ("brax", {"brax": "0.12.1"}, "tested with brax 0.14, not 0.12.1"),
    ],
)
def test_packages_that_do_not_fit(package, installed, says, monkeypatch):
    def version(name):
        if name not in installed:
            raise importlib.metadata.PackageNotFoundError(name)
        return installed[name]

    monkeypatch.setattr(importlib.metadata, "version", version)
    with pytest.raises(EudaError, match=says):
        versions.require(package)


def test_packages_that_fit(monkeypatch):
    found = {"mujoco-mjx": "3.17.2", "mujoco": "3.17.2", "brax": "0.14.9", "playground": "0.2.1"}
    monkeypatch.setattr(importlib.metadata, "version", found.__getitem__)
    for package in versions.WANTED:
        versions.require(package)
