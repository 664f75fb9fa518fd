"""Gymnasium's rules, exact state, rendering, and bad input."""

import copy
import os
import subprocess
import sys

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from robots import crawler, write

import euda
from euda import ModelEnv, make
from euda.errors import EudaError, ModelError, RenderingError, SimulationError
from euda.tasks import table


@pytest.mark.filterwarnings("ignore:.*Box observation space (minimum|maximum) value is")
@pytest.mark.parametrize("features", ["limb", "joint"])
@pytest.mark.parametrize("name", table.TASKS)
def test_gymnasium_checker(name, features):
    """With frames for one set of features: they are drawn without a graphics card."""
    env = gymnasium.make(f"euda/{name}-v0", features=features, render_mode="rgb_array", width=64, height=48)
    check_env(env.unwrapped, skip_render_check=features == "joint")
    env.close()


def test_spaces():
    env = make("quadruped_run")
    assert env.observation_space.dtype == env.action_space.dtype == np.float32
    assert (env.action_space.low == -1).all()
    assert (env.action_space.high == 1).all()
    env.reset(seed=0)
    env.step(np.ones(12, np.float32))  # the quadruped's own bounds are asymmetric
    np.testing.assert_array_equal(env.data.ctrl, env.model.actuator_ctrlrange[:, 1])
    env.step(np.full(12, -7.0))  # clipped
    np.testing.assert_array_equal(env.data.ctrl, env.model.actuator_ctrlrange[:, 0])


def test_unwrapped_is_mujocos_own():
    env = gymnasium.make("euda/hopper3d_hop-v0")
    assert env.unwrapped.model.nu == 12
    assert env.unwrapped.data.qpos.shape == (19,)
    assert env.unwrapped.layout.dim == env.observation_space.shape[0]


def test_truncation_after_1000_steps_only():
    env = make("reacher_hard")
    env.reset(seed=0)
    ends = [env.step(np.zeros(2))[2:4] for _ in range(1000)]
    assert ends == [(False, False)] * 999 + [(False, True)]


@pytest.mark.parametrize("features", ["limb", "joint"])
@pytest.mark.parametrize("name", table.TASKS)
def test_state_goes_on_bit_by_bit_in_a_fresh_environment(name, features):
    """Saved in the middle of an episode, restored elsewhere: same observations, rewards and next resets."""
    env, fresh = make(name, features), make(name, features)
    rng = np.random.default_rng(0)
    env.reset(seed=5)
    for _ in range(40):
        env.step(rng.uniform(-1, 1, env.action_space.shape))
    saved = {key: value.copy() for key, value in env.get_state().items()}
    actions = rng.uniform(-1, 1, (60, *env.action_space.shape))
    fresh.set_state(saved)
    np.testing.assert_array_equal(env.observe(), fresh.observe())
    assert env.reward() == fresh.reward()
    for action in actions:
        one, two = env.step(action), fresh.step(action)
        np.testing.assert_array_equal(one[0], two[0])
        assert one[1:4] == two[1:4]
    np.testing.assert_array_equal(env.data.qacc, fresh.data.qacc)
    np.testing.assert_array_equal(env.reset()[0], fresh.reset()[0])
    assert env.steps == fresh.steps == 0


def test_state_straight_after_a_reset_and_of_another_model():
    env, fresh = make("quadruped_run"), make("quadruped_run")
    env.reset(seed=1)
    fresh.set_state(env.get_state())
    action = np.ones(12)
    np.testing.assert_array_equal(env.step(action)[0], fresh.step(action)[0])
    with pytest.raises(EudaError, match="does not belong to this model"):
        make("reacher_hard").set_state(env.get_state())


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_actions_that_are_not_finite(bad):
    env = make("reacher_hard")
    env.reset(seed=0)
    before = env.get_state()["integration"]
    with pytest.raises(SimulationError, match=r"actions must be finite, not \[0\.0, (nan|inf|-inf)\]"):
        env.step(np.array([0.0, bad]))
    np.testing.assert_array_equal(env.get_state()["integration"], before)
    with pytest.raises(SimulationError, match=r"an action has shape \(2,\), not \(3,\)"):
        env.step(np.zeros(3))


def test_a_state_that_blows_up_is_said(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # MuJoCo logs its warnings into the working directory
    env = ModelEnv(write(tmp_path, crawler().replace('gear="8"', 'gear="1e9"')))
    env.reset(seed=0)

    def blow_up():
        for _ in range(50):
            env.step(np.ones(3))

    with pytest.raises(SimulationError, match=r"became invalid at step \d+ \(MuJoCo's mjWARN_BAD"):
        blow_up()


@pytest.mark.parametrize("name", table.TASKS)
def test_rendering_without_a_screen(name):
    env = make(name, render_mode="rgb_array", width=160, height=120)
    env.reset(seed=0)
    frame = env.render()
    assert (frame.shape, frame.dtype) == ((120, 160, 3), np.uint8)
    assert frame.std() > 5
    for _ in range(20):
        env.step(np.ones(env.action_space.shape))
    assert (env.render() != frame).mean() > 0.005
    env.close()
    env.close()


def test_cameras():
    env = make("cheetah_run", render_mode="rgb_array", camera="back")
    env.reset(seed=0)
    back = env.render()
    env.close()
    side = make("cheetah_run", render_mode="rgb_array", camera=0)
    side.reset(seed=0)
    assert (side.render() != back).mean() > 0.05
    side.close()
    for camera, says in (("front", "unknown camera 'front': valid are side, back"), (7, "the model has 2")):
        env = make("cheetah_run", render_mode="rgb_array", camera=camera)
        env.reset(seed=0)
        with pytest.raises(RenderingError, match=says):
            env.render()
        env.close()


def test_no_backend_is_one_clear_sentence(monkeypatch):
    env = make("reacher_hard", render_mode="rgb_array")
    env.reset(seed=0)
    monkeypatch.setattr("importlib.import_module", lambda name: (_ for _ in ()).throw(ImportError(f"no {name} here")))
    monkeypatch.delenv("MUJOCO_GL", raising=False)
    monkeypatch.delenv("DISPLAY", raising=False)
    with pytest.raises(
        RenderingError, match=r"no OpenGL backend works.*egl: no mujoco.egl here.*install Debian's libegl1"
    ):
        env.render()
    monkeypatch.setenv("MUJOCO_GL", "vulkan")
    with pytest.raises(RenderingError, match="MUJOCO_GL='vulkan' cannot draw: valid are egl, osmesa, glfw"):
        env.render()


def test_render_modes():
    with pytest.raises(EudaError, match="unknown render_mode 'human'"):
        make("reacher_hard", render_mode="human")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("<mujoco><worldbody>", "is not a valid MuJoCo model"),
        ("", "is not a valid MuJoCo model"),
        (None, "no model file at"),
    ],
)
def test_unreadable_models(tmp_path, text, says):
    path = tmp_path / "robot.xml"
    if text is not None:
        path.write_text(text)
    with pytest.raises(ModelError, match=says) as error:
        ModelEnv(path)
    assert "\n" not in str(error.value)


def test_import_is_quiet_and_needs_no_screen():
    """A fresh interpreter without MUJOCO_GL and DISPLAY: no warning, no GLFW message, MUJOCO_GL left as it was."""
    code = (
        "import os, gymnasium, euda; env = gymnasium.make('euda/cheetah_run-v0'); env.reset(seed=0);"
        "env = euda.make('cheetah3d_run'); assert 'MUJOCO_GL' not in os.environ; print(env.layout.dim)"
    )
    clean = {key: value for key, value in os.environ.items() if key not in ("MUJOCO_GL", "DISPLAY", "PYTHONWARNINGS")}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], env=clean, capture_output=True, text=True, check=True
    )
    assert (done.stdout, done.stderr) == ("130\n", "")


def test_every_public_name_resolves_and_is_documented():
    assert sorted(euda.__all__, key=str.lower) == sorted(set(euda.__all__), key=str.lower)
    for name in euda.__all__:
        thing = getattr(euda, name)
        if name != "TASKS":
            assert thing.__doc__, name
    assert set(dir(euda)) >= set(euda.__all__)
    with pytest.raises(AttributeError, match="no attribute 'magic'"):
        _ = euda.magic


def test_copies_are_refused_and_states_are_checked():
    env = make("cheetah3d_run")
    env.reset(seed=0)
    for copying in (copy.deepcopy, copy.copy):
        with pytest.raises(EudaError, match="set_state"):
            copying(env)
    with pytest.raises(EudaError, match="does not belong to this model: integration"):
        make("walker_run").set_state(env.get_state())
    with pytest.raises(EudaError, match="steps missing"):
        env.set_state({key: value for key, value in env.get_state().items() if key != "steps"})
    with pytest.raises(SimulationError, match="an action is 18 numbers, not"):
        env.step(["a"] * 18)


def test_seeds_of_any_size_start_an_episode_again():
    env = euda.make("reacher_hard")
    first, second, again = (env.reset(seed=seed)[0] for seed in (2**63 + 5, 2**63 + 6, 2**63 + 5))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, second)
