"""Exported policies in ONNX Runtime and PyTorch: the same actions as the original, on every task."""

import json
import subprocess
import sys

import numpy as np
import onnxruntime
import pytest
import torch
import untrained

from euda import TASKS, EudaError
from euda.exports import export, onnx_file
from euda.exports.program import Program, Step
from euda.runs import evaluation

TOLERANCE = 1e-5
IN_TORCH = [(task, *untrained.INPUTS[(k + 2) % len(untrained.INPUTS)]) for k, task in enumerate(TASKS)]
"""Every task, and every way to see an observation twice; frames where robots have them."""


def in_onnx(file, observations):
    session = onnxruntime.InferenceSession(file)
    (actions,) = session.run(["action"], {"observation": observations})
    return actions, json.loads(session.get_modelmeta().custom_metadata_map["about"])


def both(run, to, path):
    """The exported file, the original policy, and observations to compare them on."""
    (file,) = export.export(run, to, path)
    environment = untrained.environment_of(run.config.task, run.config.features)
    return file, evaluation.load_policy(run, environment)[0], untrained.observations(environment)


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize(("method", "overrides"), untrained.INPUTS)
def test_onnx_runtime_acts_as_the_run_does(task, method, overrides, tmp_path):
    run = untrained.run(tmp_path / "run", task, untrained.possible(task, method), **untrained.small(overrides))
    file, policy, seen = both(run, "onnx", tmp_path / "policy.onnx")
    actions, about = in_onnx(file, seen)
    assert np.abs(actions - policy(seen)).max() < TOLERANCE
    assert np.ptp(actions, axis=0).max() > 1e-3
    assert np.abs(in_onnx(file, seen[:1])[0] - actions[:1]).max() < TOLERANCE  # any number of observations
    assert (about["task"], len(about["observation"])) == (task, seen.shape[1])


@pytest.mark.parametrize("name", ["segnn", "segnn-single"])
def test_equivariant_networks_too(name, tmp_path):
    run = untrained.run(tmp_path / "run", "reacher_hard", name, **{name: {"layers": 1}})
    file, policy, seen = both(run, "onnx", tmp_path / "policy.onnx")
    assert np.abs(in_onnx(file, seen)[0] - policy(seen)).max() < TOLERANCE


@pytest.mark.parametrize("task", ["reacher_hard", "hopper3d_hop"])
def test_a_policy_with_a_frame_turns_with_the_world(task, tmp_path):
    """In all four quadrants: ONNX has no atan2, so this one is put together."""
    run = untrained.run(tmp_path / "run", task, "canonical", mlp={"hidden_size": 16})
    file, policy, seen = both(run, "onnx", tmp_path / "policy.onnx")
    layout = untrained.environment_of(task).layout
    turned = np.concatenate([layout.rotate(seen, yaw) for yaw in np.linspace(-np.pi, np.pi, 17)])
    actions = in_onnx(file, turned)[0]
    assert np.abs(actions - policy(turned)).max() < TOLERANCE
    assert np.abs(actions - np.tile(actions[: len(seen)], (17, 1))).max() < 1e-4


def test_atan2_on_the_axes_and_in_the_quadrants(tmp_path):
    program = Program(2, 1, {"first": np.array([0]), "second": np.array([1])}, (
        Step("take", ("observation", "first"), "y", {"axis": 1}),
        Step("take", ("observation", "second"), "x", {"axis": 1}),
        Step("atan2", ("y", "x"), "angle", {}),
    ), "angle", {})  # fmt: skip
    ((path, content),) = onnx_file.write(program, tmp_path / "angle.onnx").items()
    path.write_bytes(content)
    ends = np.array([-2.0, -1e-30, 0.0, 1e-30, 3.0], np.float32)
    points = np.stack(np.meshgrid(ends, ends), -1).reshape(-1, 2)
    np.testing.assert_allclose(in_onnx(path, points)[0][:, 0], np.arctan2(*points.T), atol=1e-6)


@pytest.mark.parametrize(("task", "method", "overrides"), IN_TORCH)
def test_pytorch_acts_as_the_run_does(task, method, overrides, tmp_path):
    run = untrained.run(tmp_path / "run", task, method, **untrained.small(overrides))
    file, policy, seen = both(run, "torch", tmp_path / "policy.pt2")
    about = {"about.json": ""}
    module = torch.export.load(file, extra_files=about).module()
    for count in (1, len(seen)):
        assert np.abs(module(torch.from_numpy(seen[:count])).numpy() - policy(seen[:count])).max() < TOLERANCE
    assert json.loads(about["about.json"])["task"] == task


def test_an_operator_that_onnx_lacks_is_named(tmp_path):
    program = Program(2, 2, {}, (Step("digamma", ("observation",), "v0", {}),), "v0", {})
    with pytest.raises(EudaError, match="cannot be exported to ONNX, which has no operator 'digamma': valid are abs, "):
        onnx_file.write(program, tmp_path / "policy.onnx")


def test_the_file_does_not_name_euda_as_a_need(tmp_path):
    run = untrained.run(tmp_path / "run", "reacher_hard")
    (file,) = export.export(run, "onnx", tmp_path / "policy.onnx")
    code = "import sys, onnxruntime; onnxruntime.InferenceSession(sys.argv[1])\n"
    code += "print('euda' in sys.modules, 'jax' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code, str(file)], capture_output=True, text=True, check=True)
    assert done.stdout == "False False\n"
