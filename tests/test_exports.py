"""Policies as files that run without euda: the same actions as the original, whatever a policy consists of."""

import ast
import importlib.util
import json
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import untrained

from euda import TASKS, EudaError
from euda.exports import export, numpy_runner, onnx_file, torch_file
from euda.exports.program import Program, Step
from euda.exports.tracing import trace
from euda.runs import evaluation
from euda.terminal.cli import main


def exported(run, tmp_path):
    """The policy of a run, once from its NumPy file and once from the run."""
    file, runner = export.export(run, "numpy", tmp_path / "taken.npz")
    spec = importlib.util.spec_from_file_location("taken", runner)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    environment = untrained.environment_of(run.config.task, run.config.features)
    return module.load(file), evaluation.load_policy(run, environment)[0], environment


CASES = [(task, *untrained.INPUTS[(k + shift) % 5]) for shift in (0, 2) for k, task in enumerate(TASKS)]
"""Two for each task, four for each way to see an observation; tests_extras has all of them, with ONNX."""


@pytest.mark.parametrize(("task", "method", "overrides"), CASES)
def test_the_file_acts_as_the_run_does(task, method, overrides, tmp_path):
    run = untrained.run(tmp_path / "run", task, untrained.possible(task, method), **untrained.small(overrides))
    taken, policy, environment = exported(run, tmp_path)
    seen = untrained.observations(environment)
    assert np.abs(taken(seen) - policy(seen)).max() < 1e-5
    assert taken(seen[0]).shape == environment.action_space.shape
    assert np.ptp(policy(seen), axis=0).max() > 1e-3  # else any constant would pass


@pytest.mark.parametrize("method", ["segnn", "segnn-single", "segnn-axial"])
def test_equivariant_networks_too(method, tmp_path):
    name, *_ = method.partition("-axial")
    small = {name: {"layers": 1, "hidden_size": 16} | ({"parity": "axial"} if "axial" in method else {})}
    run = untrained.run(tmp_path / "run", "reacher_hard", name, **small)
    taken, policy, environment = exported(run, tmp_path)
    seen = untrained.observations(environment)
    assert np.abs(taken(seen) - policy(seen)).max() < 1e-5


def test_the_file_says_what_it_is_and_what_its_numbers_are(tmp_path):
    taken, _, environment = exported(untrained.run(tmp_path / "run", "quadruped_run"), tmp_path)
    assert (taken.about["task"], taken.about["step"]) == ("quadruped_run", 1000)
    assert len(taken.about["observation"]) == environment.layout.dim
    assert taken.about["action"] == list(environment.actions.names)
    assert taken.about["seconds_per_action"] == pytest.approx(0.02)
    low, high = (np.array(taken.about[f"control_{end}"]) for end in ("low", "high"))
    for action, control in ((-1, low), (1, high)):
        environment.set_control(np.full(len(low), action))
        np.testing.assert_allclose(environment.data.ctrl, control)
    assert (low != -high).any()  # the quadruped's ranges are not symmetric


def test_the_file_needs_numpy_alone(tmp_path):
    tree = ast.parse(importlib.util.find_spec("euda.exports.numpy_runner").loader.get_source(numpy_runner.__name__))
    imported = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    imported |= {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert imported == {"json", "numpy", "collections.abc", "typing"}
    run = untrained.run(tmp_path / "run", "reacher_hard")
    assert main(["export", str(run.folder), "--to", "numpy", "--out", str(tmp_path / "policy.npz")]) == 0
    code = "import sys\nfrom policy import load\npolicy = load('policy.npz')\n"
    code += "print(policy([0.0] * policy.dim).shape, 'euda' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout == "(2,) False\n"


def test_other_observations_are_refused_in_one_sentence(tmp_path):
    taken, _, _ = exported(untrained.run(tmp_path / "run", "reacher_hard"), tmp_path)
    with pytest.raises(ValueError, match=r"^this policy takes observations of \d+ numbers, not an array \[3\]$"):
        taken(np.zeros(3))


# -- what is traced ------------------------------------------------------------------------------------------


def ran(function, x, **arrays):
    """The function, and its program in NumPy."""
    program = trace(lambda given, observations: function(observations, **given), arrays, x.shape[-1], {})
    steps = [[step.operation, step.inputs, step.output, dict(step.options)] for step in program.steps]
    held = {"about": {}, "dim": program.dim, "steps": json.loads(json.dumps(steps)), "output": program.output}
    return np.asarray(function(jnp.asarray(x), **arrays)), numpy_runner.Policy(held, program.constants)(x)


OPERATIONS = {
    "slices": lambda x: x[:, 1:5:2] + x[..., -1:] * x[:, ::-2][:, :2],
    "indices": lambda x: jnp.take(x, jnp.array([3, 0, 0]), axis=-1) * x[:, jnp.array([1, 2, 4])],
    "angles": lambda x: jnp.arctan2(x, x[:, ::-1]) + jnp.remainder(4 * x, 2.0) - jnp.fmod(3 * x, 0.7),
    "choices": lambda x: jnp.where((x > 0) & (x < 0.5) | ~(x >= -1), x, -x).clip(-0.3, 0.4),
    "squashing": lambda x: jax.nn.softplus(x) + jax.nn.elu(x) + jax.nn.silu(x) + jax.nn.softmax(x) + jax.nn.gelu(x),
    "powers": lambda x: x**2 - x**3 + jnp.abs(x) ** 0.5 + jax.lax.rsqrt(x * x + 1) + jnp.sign(x) * jnp.floor(x),
    "shapes": lambda x: jnp.stack([x, -x], 1).reshape(-1, 2, 3, 2).transpose(0, 2, 1, 3).sum((1, 3)),
    "products": lambda x: jnp.einsum("bij,bkj->bik", x.reshape(-1, 2, 3), jnp.sin(x).reshape(-1, 2, 3))[:, 0],
    "ones": lambda x: jnp.concatenate([x, jnp.ones((x.shape[0], 2)), (x > 0).astype(jnp.float32)], axis=-1),
}


@pytest.mark.parametrize("name", OPERATIONS)
def test_operations_mean_in_numpy_what_they_mean_in_jax(name):
    x = np.random.default_rng(0).normal(size=(7, 6)).astype(np.float32)
    wanted, found = ran(OPERATIONS[name], x)
    np.testing.assert_allclose(found, wanted, atol=2e-6)
    assert ran(OPERATIONS[name], x[:1])[1].shape == (1, *wanted.shape[1:])


def test_constants_keep_their_names_and_what_they_amount_to_is_computed_once():
    weight = np.ones((6, 2), np.float32)
    program = trace(lambda a, x: jnp.tanh(x @ a["w"] + jnp.sum(jnp.exp(a["b"]))), {"w": weight, "b": weight}, 6, {})
    assert [step.operation for step in program.steps] == ["matmul", "add", "tanh"]
    assert "w" in program.constants
    assert "b" not in program.constants


@pytest.mark.parametrize(
    ("function", "says"),
    [
        (lambda x: jax.lax.cumsum(x, 1), "its network uses JAX's operation 'cumsum', which has no counterpart here"),
        (lambda x: jnp.take_along_axis(x, jnp.argmax(x, 1, keepdims=True), 1), "JAX's operation 'argmax'"),
        (lambda x: x.reshape(-1, 3), "observations do not stay apart"),
        (lambda x: jnp.ones((2, 2)), "its actions do not depend on the observation"),
        (lambda x: jnp.exp(x).astype(jnp.int32), "to numbers of type int32"),
    ],
)
def test_what_has_no_counterpart_is_refused_by_name(function, says):
    with pytest.raises(EudaError) as caught:
        ran(function, np.zeros((4, 6), np.float32))
    assert str(caught.value).startswith("this policy cannot be exported: ")
    assert says in str(caught.value)


# -- bad input -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--to", "tflite"], "unknown format 'tflite': valid are onnx, numpy, torch"),
        (["--to", "numpy", "--out", "policy.onnx"], "a policy for numpy is a .npz file, not 'policy.onnx'"),
        (["--to", "numpy", "--out", "no/policy.npz"], "no folder 'no' to write 'policy.npz' into"),
        ([], "--to is missing: see euda export --help"),
    ],
)
def test_bad_words_end_in_one_sentence(words, says, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    run = untrained.run(tmp_path / "run", "reacher_hard")
    before = sorted(path.name for path in run.folder.iterdir())
    assert main(["export", str(run.folder), *words]) == 2
    assert capsys.readouterr().err == f"euda: {says}\n"
    assert sorted(path.name for path in run.folder.iterdir()) == before


def test_the_policy_of_another_robot_is_refused(tmp_path, capsys):
    mine = untrained.run(tmp_path / "mine", "reacher_hard")
    other = untrained.run(tmp_path / "other", "hopper3d_hop")
    mine.policy.write_bytes(other.policy.read_bytes())
    assert main(["export", str(mine.folder), "--to", "numpy"]) == 2
    said = capsys.readouterr().err
    assert said.startswith(f"euda: the policy in {str(mine.folder)!r} does not fit its configuration: ")
    assert said.count("\n") == 1
    assert not (mine.folder / "policy.npz").exists()


@pytest.mark.parametrize(("module", "package"), [(onnx_file, "onnx"), (torch_file, "torch")])
def test_a_missing_package_is_named(module, package, monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(EudaError, match=f"needs the package {package}: pip install"):
        module.write(Program(2, 1, {}, (Step("tanh", ("observation",), "v0", {}),), "v0", {}), tmp_path / "x")
