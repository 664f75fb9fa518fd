"""The SEGNN: equal to the full Clebsch-Gordan network, invariant, finite, and what its two parities can express."""

import functools
import itertools
import json
import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest
from segnn_oracle import Oracle, by_path, products_of

import euda
from euda import make
from euda.agents.agent import Agent
from euda.agents.ddpg import DDPG
from euda.agents.named_arrays import flatten
from euda.agents.network_settings import MLPConfig, SEGNNConfig
from euda.agents.networks import MLP
from euda.agents.optimiser import begin, descend, make_optimiser
from euda.agents.segnn.graph import OnePoint, TwoPoints
from euda.agents.segnn.network import segnn_networks
from euda.agents.settings import DDPGConfig
from euda.errors import EudaError
from euda.replay.buffer import Transition
from euda.replay.settings import ReplayConfig
from euda.runs import machine
from euda.runs.config import RunConfig
from euda.runs.resolution import resolve
from euda.terminal.cli import main
from euda.testing import assert_equivariant

LAYOUT = make("reacher_hard").layout
CHEETAH = make("cheetah3d_run").layout
GRAPH = TwoPoints(LAYOUT, "finger")
PARITIES = ("paper", "axial")
SMALL = {"layers": 1, "hidden_size": 24}


def config(parity, **changes):
    return SEGNNConfig(parity=parity, **changes)


def critic(settings, graph=GRAPH, actions=2):
    return segnn_networks(graph, settings).critic(graph.layout.dim, actions, 1)


def actor(settings, graph=GRAPH, outputs=2):
    return segnn_networks(graph, settings).actor(graph.layout.dim, outputs)


def planar(count, seed=0):
    """Observations of the reacher's kind: every vector in the plane."""
    x = np.random.default_rng(seed).normal(size=(count, LAYOUT.dim // 3, 3))
    x[:, :, 2] = 0
    return x.reshape(count, -1).astype(np.float32)


def actions(count, seed=1):
    return np.random.default_rng(seed).uniform(-1, 1, (count, 2)).astype(np.float32)


def relative(found, expected):
    return np.abs(np.asarray(found) - np.asarray(expected)).max() / max(1.0, np.abs(np.asarray(expected)).max())


# -- equal to the full network ---------------------------------------------------------------------------


@pytest.mark.parametrize("parity", PARITIES)
def test_equals_the_full_network_in_outputs_and_gradients(parity):
    settings = config(parity, layers=2)  # a first and a last layer; a third would only compile longer
    fast, full = critic(settings), Oracle(1, 2, settings, GRAPH)
    weights = jax.tree.map(np.float32, fast.path_weights(jax.random.key(1)))
    x, a, weigh = planar(16), actions(16), np.random.default_rng(2).normal(size=(16, 1)).astype(np.float32)
    known = by_path(fast, weights)

    def loss(network, params, a):
        y = network(params, x, a)
        return jnp.sum(y * weigh), y

    grad = functools.partial(jax.value_and_grad, argnums=(0, 1), has_aux=True)
    of_full, of_fast = (jax.jit(grad(functools.partial(loss, network.apply))) for network in (full, fast))
    (_, expected), (by_weight, by_action) = of_full(full.fill(known), a)
    (_, found), (by_entry, by_action_found) = of_fast(fast.collapse(weights), a)
    assert relative(found, expected) < 1e-5
    assert relative(by_action_found, by_action) < 1e-5
    by_weight, by_entry = (jax.tree.map(np.asarray, gradients) for gradients in (by_weight, by_entry))
    largest = max(np.abs(g).max() for g in by_weight.values())
    for key in by_weight.keys() - known.keys():  # the fast network has no such path: the full one must not depend on it
        assert np.abs(by_weight[key]).max() == 0, key
    leaves, structure = jax.tree.flatten(weights)
    places = by_path(fast, jax.tree.unflatten(structure, range(len(leaves))))
    for key, place in places.items():  # along a random direction of each path's weights
        shape = leaves[place].shape
        direction = np.random.default_rng(3).normal(size=shape) / np.sqrt(leaves[place].size)
        inside = by_weight[key][tuple(slice(0, n) for n in shape)]
        assert np.abs(by_weight[key]).sum() == pytest.approx(np.abs(inside).sum(), rel=1e-6), key
        all_directions = [np.zeros_like(leaf) if k != place else direction for k, leaf in enumerate(leaves)]
        change = fast.collapse(jax.tree.unflatten(structure, all_directions))
        along = sum(map(np.vdot, jax.tree.leaves(change), jax.tree.leaves(by_entry)))
        assert abs(along - np.vdot(direction, inside)) < 1e-5 * largest, key


@pytest.mark.parametrize(
    "settings",
    [
        config("paper", layers=1, lmax=3, attribute_lmax=1, vectors=6, hidden_size=70),
        config("axial", layers=1, attribute_lmax=2, split="5,3,2"),
    ],
    ids=["lmax 3", "attribute_lmax 2"],
)
def test_other_sizes_equal_the_full_network_too(settings):
    fast, full = actor(settings), Oracle(2, 0, settings, GRAPH)
    weights, x = fast.path_weights(jax.random.key(0)), planar(8)
    expected = jax.jit(full.apply)(full.fill(by_path(fast, weights)), x)
    assert relative(jax.jit(fast.apply)(fast.collapse(weights), x), expected) < 1e-5


@pytest.mark.parametrize("settings", [config("paper"), config("axial"), config("axial", attribute_lmax=2)])
def test_fan_in_counts_every_path_of_the_full_network(settings):
    fast, full = critic(settings), Oracle(1, 2, settings, GRAPH)
    for name, product in products_of(fast).items():
        for irrep, _ in product.outputs:
            assert product.fan_in(irrep) == full.fan_in(name, irrep)


def test_full_network_has_the_reference_sizes():
    settings = config("paper")
    assert settings.irreps == (("0e", 23), ("1o", 7), ("2e", 4))
    assert config("paper", lmax=1).irreps == (("0e", 34), ("1o", 10))
    assert config("axial").irreps == (("0e", 22), ("1e", 7), ("1o", 7))
    sizes = [sum(map(np.prod, Oracle(*kind, settings, GRAPH).shapes.values())) for kind in ((2, 0), (1, 2))]
    assert sizes == [39_294, 34_229]


def test_adam_on_matrices_is_adam_on_the_weights_of_paths():
    network = critic(config("paper", **SMALL))
    x, a, y = planar(32), actions(32), np.random.default_rng(4).normal(size=(32, 1)).astype(np.float32)
    weights = jax.tree.map(np.float32, network.path_weights(jax.random.key(0)))

    def loss(params):
        return jnp.mean((network.apply(params, x, a) - y) ** 2)

    learning = DDPGConfig(learning_rate=5e-3)
    of_matrices = loss, network.collapse(weights), make_optimiser(learning, network.rates())
    of_paths = lambda params: loss(network.collapse(params, jnp)), weights, make_optimiser(learning)
    curves = []
    for loss_, params, optimiser in (of_matrices, of_paths):
        state, losses = begin("params", params, optimiser), []

        @jax.jit
        def step(state, loss_=loss_, optimiser=optimiser):
            value, slope = jax.value_and_grad(loss_)(state["params"])
            return value, descend("params", state, slope, optimiser)

        for _ in range(30):
            value, state = step(state)
            losses.append(float(value))
        curves.append(losses)
    assert curves[0][-1] < 0.9 * curves[0][0]
    np.testing.assert_allclose(curves[0], curves[1], rtol=2e-3)


# -- symmetries ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("parity", PARITIES)
def test_invariant_under_rotations_about_the_vertical(parity):
    for network, inputs in ((actor(config(parity)), LAYOUT), (critic(config(parity)), [LAYOUT, 2])):
        params = network.initialise(jax.random.key(0))
        assert_equivariant(jax.jit(functools.partial(network.apply, params)), inputs, tolerance=1e-5)


def test_paper_parity_is_invariant_under_all_rotations_and_mirrors():
    network, rng = critic(config("paper", layers=2)), np.random.default_rng(0)
    x, a, params = rng.normal(size=(64, 7, 3)), actions(64), network.initialise(jax.random.key(0))
    turns = np.linalg.qr(rng.normal(size=(64, 3, 3)))[0] * rng.choice([-1, 1], (64, 1, 1))
    assert {-1, 1} == set(np.linalg.det(turns).round())
    turned = np.einsum("bij,bnj->bni", turns, x)
    before, after = (jax.jit(network.apply)(params, v.reshape(64, 21).astype(np.float32), a) for v in (x, turned))
    assert relative(after, before) < 1e-5


def mirrored(x):
    return (x.reshape(-1, 7, 3) * np.array([1, -1, 1], np.float32)).reshape(-1, 21)


def test_only_axial_parity_tells_a_state_from_its_mirror_image():
    x = planar(64)
    for parity, sees in (("paper", False), ("axial", True)):
        network = actor(config(parity, **SMALL))
        apply = functools.partial(jax.jit(network.apply), network.initialise(jax.random.key(0)))
        before, after = np.asarray(apply(x)), np.asarray(apply(mirrored(x)))
        difference = np.abs(after - before).max() / np.ptp(before)
        assert difference > 1e-4 if sees else difference < 1e-5


def test_a_mirrored_reacher_with_negated_torques_follows_the_mirrored_path():
    left, right = make("reacher_hard"), make("reacher_hard")
    rng = np.random.default_rng(0)
    for seed in range(3):
        left.reset(seed=seed)
        left.data.qvel[:] = rng.normal(size=2)
        state = left.get_state()
        right.reset(seed=seed)
        right.set_state(state)
        right.data.qpos[:], right.data.qvel[:] = -left.data.qpos, -left.data.qvel
        right.model.geom_pos[right.model.geom("target").id, 1] *= -1
        for environment in (left, right):
            mujoco.mj_step1(environment.model, environment.data)
        for _ in range(50):
            action = rng.uniform(-1, 1, 2)
            x, reward, *_ = left.step(action)
            y, mirrored_reward, *_ = right.step(-action)
            np.testing.assert_allclose(mirrored(x[None])[0], y, atol=1e-6)
            assert reward == pytest.approx(mirrored_reward, abs=1e-9)


def test_single_point_sees_norms_only():
    rng = np.random.default_rng(0)
    for layout, m in ((LAYOUT, 2), (CHEETAH, 6)):
        network = critic(config("paper"), OnePoint(layout), m)
        params, x = network.initialise(jax.random.key(0)), rng.normal(size=(32, layout.dim))
        a, turned = rng.uniform(-1, 1, (32, m)).astype(np.float32), x.copy()
        for field in layout:
            if field.kind.value == "vector":
                where = layout.slice(field.name)
                turns = np.linalg.qr(rng.normal(size=(32, field.count, 3, 3)))[0]
                vectors = x[:, where].reshape(32, field.count, 3)
                turned[:, where] = np.einsum("bnij,bnj->bni", turns, vectors).reshape(32, -1)
        before, after = (jax.jit(network.apply)(params, v.astype(np.float32), a) for v in (x, turned))
        assert relative(after, before) < 1e-5
        assert np.ptp(before) > 1e-3


# -- what the parities can express -----------------------------------------------------------------------


def controller(x):
    """Torques J^T F of the force F = r - 0.1 v on the finger, to unit variance."""
    position, velocity = (x[:, LAYOUT.slice(name)].reshape(-1, 3, 3) for name in ("position", "velocity"))
    force = x[:, LAYOUT.slice("to_target")] - 0.1 * velocity[:, 2]
    arms = position[:, 2], position[:, 2] - 2 * position[:, 0]  # from the shoulder, from the wrist
    torques = np.stack([np.cross(arm, force)[:, 2] for arm in arms], 1)
    return (torques / torques.std(0)).astype(np.float32)


def reacher_states(count, seed=0):
    """Observations at random joint angles and speeds."""
    environment, rng, rows = make("reacher_hard"), np.random.default_rng(seed), []
    environment.reset(seed=seed)
    for _ in range(count):
        environment.data.qpos[:], environment.data.qvel[:] = rng.uniform(-2.5, 2.5, 2), rng.normal(size=2)
        angle, radius = rng.uniform(-np.pi, np.pi), rng.uniform(0.05, 0.2)
        place = environment.model.geom_pos[environment.model.geom("target").id]
        place[:2] = radius * np.cos(angle), radius * np.sin(angle)
        mujoco.mj_forward(environment.model, environment.data)
        rows.append(environment.observe())
    return np.array(rows)


def fit(network, x, y, steps, rate=3e-3):
    """Mean square error over variance on the last quarter after fitting the rest."""
    train = 3 * len(x) // 4
    optimiser = make_optimiser(DDPGConfig(learning_rate=rate), network.rates())
    state = begin("params", network.initialise(jax.random.key(0)), optimiser)

    def loss(params, x, y):
        return jnp.mean((network.apply(params, x) - y) ** 2)

    @jax.jit
    def step(state, x, y):
        return descend("params", state, jax.grad(loss)(state["params"], x, y), optimiser)

    rng = np.random.default_rng(0)
    for _ in range(steps):
        chosen = rng.integers(0, train, 128)
        state = step(state, x[chosen], y[chosen])
    return float(jax.jit(loss)(state["params"], x[train:], y[train:])) / float(y[train:].var())


def test_paper_parity_cannot_fit_a_controller_that_axial_parity_and_a_perceptron_can():
    x = reacher_states(1600)
    y = controller(x)
    paper, axial = (fit(actor(config(parity, layers=1, hidden_size=32)), x, y, 400) for parity in PARITIES)
    perceptron = fit(MLP((LAYOUT.dim,), 2, MLPConfig(hidden_size=64)), x, y, 400, rate=1e-3)
    assert 0.9 < paper < 1.3
    assert axial < 0.3
    assert perceptron < 0.3


# -- degenerate inputs -----------------------------------------------------------------------------------


def degenerate(count, dim, rng):
    """Vectors [count, dim] of which each is zero, tiny, ordinary, large, or a copy of the one before."""
    x = rng.normal(size=(count, dim // 3, 3)) * rng.choice([0.0, 1e-30, 1e-12, 1e-6, 1.0, 1e3], (count, dim // 3, 1))
    copies = rng.random(x.shape[:2]) < 0.2
    copies[:, 0] = False
    index = np.arange(dim // 3)[None] - copies
    return np.take_along_axis(x, index[..., None], 1).reshape(count, -1).astype(np.float32)


@pytest.mark.parametrize("parity", [*PARITIES, "single"])
def test_degenerate_inputs_give_finite_values_and_gradients(parity):
    count, rng = 8192, np.random.default_rng(0)
    is_single = parity == "single"
    network = critic(config("paper" if is_single else parity, **SMALL), OnePoint(LAYOUT) if is_single else GRAPH)
    x = degenerate(count, LAYOUT.dim, rng)
    x[: count // 4, LAYOUT.slice("to_target")] = 0  # coinciding points
    x[: count // 8, LAYOUT.slice("velocity")] = 0
    a = (rng.uniform(-1, 1, (count, 2)) * rng.choice([0.0, 1e-30, 1.0], (count, 1))).astype(np.float32)
    x[0], a[0] = 0, 0
    params = network.initialise(jax.random.key(0))

    @jax.jit
    def everything(params, x, a):
        y, back = jax.vjp(network.apply, params, x, a)
        return y, *back(jnp.ones_like(y))

    y, by_params, by_x, by_a = everything(params, x, a)
    assert np.isfinite(y).all()
    assert np.isfinite(by_x).all()
    assert np.isfinite(by_a).all()
    assert all(np.isfinite(value).all() for value in jax.tree.leaves(by_params))


# -- as an agent's network -------------------------------------------------------------------------------


def batch(seed):
    rng = np.random.default_rng(seed)
    reward, discount = rng.random((2, 64)).astype(np.float32)
    return Transition(planar(64, seed), actions(64, seed), reward, discount, planar(64, seed + 1))


@pytest.mark.parametrize("parity", PARITIES)
def test_same_seed_same_bytes_and_a_stored_agent_goes_on_in_the_same_bytes(parity):
    learning = DDPGConfig(learning_rate=5e-5, actor_every=1, target_every=1)  # one update to compile instead of two
    rule = DDPG.make(LAYOUT.dim, 2, learning, segnn_networks(GRAPH, config(parity, **SMALL)))

    def learn(agent, seeds):
        for seed in seeds:
            agent, _ = agent.update(batch(seed), seed)
        return agent

    straight = learn(Agent.initialise(rule, 7), range(4)).state_dict()
    stored = learn(Agent.initialise(rule, 7), range(2)).state_dict()
    again = learn(Agent.from_state_dict(rule, stored), range(2, 4))
    for name, value in again.state_dict().items():
        np.testing.assert_array_equal(value, straight[name], err_msg=name)
    assert again.act(planar(1)[0]).shape == (2,)
    assert again.act(planar(5)).shape == (5, 2)
    if parity == "paper":  # entries without a path stay zero while learning
        begun, changed = Agent.initialise(rule, 7).state_dict(), []
        for name, rates in flatten({"critics": rule.critics.rates()}).items():
            fixed = np.asarray(rates) == 0
            assert not straight[name][fixed].any()
            changed += (straight[name] != begun[name])[~fixed].tolist()
        assert np.mean(changed) > 0.9
        assert any((rates == 0).any() for rates in jax.tree.leaves(rule.critics.network.rates()))


# -- bad input -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"parity": "odd"}, "unknown parity 'odd'"),
        ({"hidden_size": 7}, "hidden_size must be large enough for 0e, 1o, 2e"),
        ({"hidden_size": -1}, "hidden_size must be a whole number of at least 1"),
        ({"layers": 0}, "layers must be a whole number of at least 1"),
        ({"lmax": 4}, "lmax must be a whole number between 1 and 3"),
        ({"lmax": 1.5}, "lmax must be a whole number"),
        ({"hidden_size": 63.5}, "hidden_size must be a whole number"),
        ({"lmax": 2, "parity": "axial"}, "lmax must be 1 with axial parity"),
        ({"attribute_lmax": 0}, "attribute_lmax must be"),
        ({"vectors": 5}, "vectors must be 6 or 7"),
        ({"split": "1,2"}, "split must be balanced, or 3 positive whole numbers"),
        ({"split": "1,2,0"}, "split must be balanced"),
        ({"split": "wide"}, "split must be balanced"),
        ({"learning_rate": 0.0}, "learning_rate must be a finite number above 0"),
    ],
)
def test_bad_settings_are_refused_in_one_sentence(settings, message):
    with pytest.raises(EudaError, match=message) as caught:
        SEGNNConfig(**settings)
    assert "\n" not in str(caught.value)


def test_graphs_refuse_observations_without_their_points():
    with pytest.raises(EudaError, match="needs vectors named position, velocity and to_target"):
        TwoPoints(CHEETAH, "finger")
    with pytest.raises(EudaError, match="no position of a limb 'nose'"):
        TwoPoints(LAYOUT, "nose")
    with pytest.raises(EudaError, match="a single point holds vectors and scalars"):
        OnePoint(make("reacher_hard", "joint").layout)


def test_every_pair_of_rows_has_one_meaning():
    """Columns of a gated product: scalars, one gate for every gated component, the components."""
    for parity, which in itertools.product(PARITIES, (0, 1)):
        network = critic(config(parity))
        matrices = network.matrices(network.initialise(jax.random.key(0))).layers[0].message[which]
        scalars, gated = network.products.layers[0].message[which].gates
        assert (scalars, gated) == ((23, 11) if parity == "paper" else (22, 21))
        assert matrices.both.shape[1] == scalars + 2 * gated


# -- on the command line ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("cheetah_run --method segnn", "defined for tasks with a target (reacher_hard), not for 'cheetah_run'"),
        ("reacher_hard --method segnn --parity odd", "parity 'odd': valid are paper, axial"),
        ("reacher_hard --method segnn --segnn.hidden-size 7", "hidden_size must be large enough"),
        ("reacher_hard --method segnn --segnn.layers 2.5", "2.5"),
        ("reacher_hard --method segnn --features joint", "out of features 'limb', not 'joint'"),
        ("reacher_hard --method segnn-single --parity axial", "segnn.parity is not used"),
        ("reacher_hard --base paper --method segnn --ddpg.learning-rate 1e-3", "--segnn.learning-rate"),
    ],
)
def test_bad_input_exits_with_2_and_one_sentence(arguments, message, capsys, tmp_path):
    assert main(["train", *arguments.split(), "--out", str(tmp_path / "run")]) == 2
    complaint = capsys.readouterr().err
    assert message in complaint
    assert complaint.count("\n") == 1
    assert not (tmp_path / "run").exists()


def test_settings_of_a_run_are_stored_and_read_again():
    settings = RunConfig("reacher_hard", network="segnn", architecture=config("axial", layers=2))
    assert RunConfig.from_json(settings.to_json()) == settings
    assert settings.label == "segnn axial"
    assert RunConfig("reacher_hard", network="segnn").method == "segnn"
    assert RunConfig("cheetah3d_run", network="segnn-single").method == "segnn-single"
    with pytest.raises(EudaError, match="architecture must be MLPConfig, not SEGNNConfig"):
        RunConfig("reacher_hard", architecture=SEGNNConfig())


def test_methods_have_the_hyperparameters_of_the_papers_table():
    run = resolve("reacher_hard", "segnn", "paper")
    assert run.learning == DDPGConfig(learning_rate=5e-5)
    assert run.architecture == SEGNNConfig(hidden_size=64)
    assert (run.replay, run.learning.actor_every, run.learning.target_rate) == (ReplayConfig(), 2, 0.01)


def test_single_point_trains_evaluates_and_goes_on(tmp_path, monkeypatch):
    monkeypatch.setattr(machine, "use_one_thread", lambda: None)
    monkeypatch.setattr(machine, "cache_compilations", lambda: None)
    short = {
        "segnn-single": {"layers": 1, "hidden_size": 24},
        "sac": {"actor_every": 1, "target_every": 1},  # one update to compile instead of two
        "replay": {"seed_steps": 20, "batch_size": 8, "capacity": 500},
        "evaluation": {"every": 20, "episodes": 1},
        "episode_steps": 10,
        "checkpoint_every": 20,
    }
    for name, stops in (("whole", (40,)), ("parts", (30, 40))):
        for steps in stops:
            euda.train("cheetah3d_run", "segnn-single", steps=steps, out=tmp_path / name, **short)
    first, second = (json.loads((tmp_path / name / "config.json").read_text()) for name in ("whole", "parts"))
    assert first == second
    policies = [(tmp_path / name / "policy.safetensors").read_bytes() for name in ("whole", "parts")]
    assert policies[0] == policies[1]


COMPILE_ONCE = """
import sys
from euda.runs import machine
machine.cache_compilations(sys.argv[1])
import os
os.environ["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = "0"
import jax
hits = []
jax.monitoring.register_event_listener(lambda event, **_: hits.append(event))
jax.jit(lambda x: x @ x + 1)(jax.numpy.ones((8, 8))).block_until_ready()
print(sum(event.endswith("cache_hits") for event in hits))
"""


def test_what_one_process_compiled_the_next_one_reads(tmp_path):
    environment = {"PYTHONPATH": str(Path(euda.__file__).parents[1]), "JAX_PLATFORMS": "cpu", "HOME": str(tmp_path)}
    command = [sys.executable, "-W", "error", "-c", COMPILE_ONCE, str(tmp_path)]
    first, second = (
        subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout for _ in range(2)
    )
    assert int(first) == 0
    assert int(second) > 0
