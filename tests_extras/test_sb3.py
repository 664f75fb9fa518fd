"""Stable-Baselines3 learning from turned batches, on a task of ours and on Gymnasium's ant."""

# ruff: noqa: NPY002 - SB3 draws from NumPy's global generator
import gymnasium
import numpy as np
import pytest
import torch
from gymnasium.spaces import Box, Dict, Discrete
from gymnasium.wrappers import FrameStackObservation
from recording import Recording
from stable_baselines3 import DDPG, SAC, TD3
from stable_baselines3.common.vec_env import DummyVecEnv, VecFrameStack, VecNormalize
from turned_by_hand import assert_turned, assert_uniform

import euda
from euda.adapters.sb3 import RotatingReplayBuffer
from euda.errors import EudaError, LayoutError

torch.set_num_threads(1)
ENVIRONMENTS = {
    "hopper3d_hop": lambda: euda.make("hopper3d_hop", seed=0),
    "Ant-v5": lambda: euda.LimbObservation(gymnasium.make("Ant-v5"), direction=(1, 0, 0)),
}


def small():
    """Options of a model that learns little and soon; made afresh, because SB3 writes into them."""
    return {
        "policy_kwargs": {"net_arch": [32, 32]}, "buffer_size": 5000, "batch_size": 64, "learning_starts": 200,
        "train_freq": 8, "gradient_steps": 1, "seed": 3, "device": "cpu",
    }  # fmt: skip


def pair(batch):
    return batch.observations.numpy(), batch.next_observations.numpy()


def make(algorithm, env, buffer=RotatingReplayBuffer, **kwargs):
    options = {"layout": env.get_wrapper_attr("layout"), "share": 0.5} | kwargs
    return algorithm("MlpPolicy", env, replay_buffer_class=buffer, replay_buffer_kwargs=options, **small())


@pytest.mark.parametrize("name", ENVIRONMENTS)
@pytest.mark.parametrize("steps", [{}, {"n_steps": 3, "gamma": 0.99}], ids=["1-step", "3-step"])
def test_td3_learns_from_the_stored_batches_turned(name, steps):
    model = make(TD3, ENVIRONMENTS[name](), Recording, **steps).learn(2000)
    seen = model.replay_buffer.seen
    assert len(seen) == 225
    layout = model.replay_buffer.layout
    yaws = [assert_turned(layout, pair(plain), pair(batch), 0.5) for plain, batch in seen[::25]]
    assert_uniform(np.concatenate(yaws))
    for plain, batch in seen:
        for field in ("actions", "rewards", "dones"):
            assert torch.equal(getattr(batch, field), getattr(plain, field))
        assert (batch.discounts is None) == (not steps)
        assert not steps or torch.equal(batch.discounts, plain.discounts)
    assert all(torch.isfinite(parameter).all() for parameter in model.policy.parameters())


@pytest.mark.parametrize(
    ("algorithm", "name"), [(DDPG, "hopper3d_hop"), (TD3, "hopper3d_hop"), (SAC, "hopper3d_hop"), (TD3, "Ant-v5")]
)
@pytest.mark.parametrize("n_steps", [1, 3])
def test_share_0_reproduces_sb3_to_the_last_weight(algorithm, name, n_steps):
    steps = {"n_steps": n_steps, "gamma": 0.99} if n_steps > 1 else {}
    ours = make(algorithm, ENVIRONMENTS[name](), share=0.0, **steps).learn(500)
    theirs = algorithm("MlpPolicy", ENVIRONMENTS[name](), n_steps=n_steps, **small()).learn(500)
    for a, b in zip(ours.policy.state_dict().values(), theirs.policy.state_dict().values(), strict=True):
        assert torch.equal(a, b)
    for a, b in zip(*(same_sample(model.replay_buffer) for model in (ours, theirs)), strict=True):
        assert (a is None and b is None) or torch.equal(a, b)


def same_sample(buffer):
    np.random.seed(5)
    return [*buffer.sample(64), torch.as_tensor(np.random.rand(3))]


@pytest.mark.parametrize("algorithm", [DDPG, SAC])
def test_the_other_algorithms_learn(algorithm):
    model = make(algorithm, ENVIRONMENTS["hopper3d_hop"](), Recording, n_steps=3, gamma=0.99).learn(500)
    for plain, batch in model.replay_buffer.seen[::10]:
        assert_turned(model.replay_buffer.layout, pair(plain), pair(batch), 0.5)


def filled(share=0.5, steps=300, **options):
    """A buffer with random numbers in it, which is all that sampling looks at."""
    layout = euda.make("hopper3d_hop").layout
    n_envs, rng = options.setdefault("n_envs", 1), np.random.default_rng(0)
    space = Box(-np.inf, np.inf, (layout.dim,), np.float32)
    sizes = {"device": "cpu", "layout": layout, "share": share} | options
    buffer = RotatingReplayBuffer(200 * n_envs, space, Box(-1, 1, (12,), np.float32), **sizes)
    for step in range(steps):
        numbers = rng.normal(size=(2, n_envs, layout.dim)).astype(np.float32)
        done = np.full(n_envs, step % 50 == 49)
        buffer.add(*numbers, rng.uniform(-1, 1, (n_envs, 12)), rng.normal(size=n_envs), done, [{}] * n_envs)
    return buffer


def drawn(buffer, batch=64):
    np.random.seed(11)
    return buffer.sample(batch)


@pytest.mark.parametrize("share", [0.01, 0.3, 1.0])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"n_envs": 3},
        {"n_steps": 5, "gamma": 0.9},
        {"optimize_memory_usage": True, "handle_timeout_termination": False},
    ],
    ids=["plain", "3 environments", "5-step", "optimize_memory_usage"],
)
def test_every_kind_of_buffer_turns_its_share(share, options):
    plain, batch = drawn(filled(0.0, **options), 100), drawn(buffer := filled(share, **options), 100)
    assert_turned(buffer.layout, pair(plain), pair(batch), share)
    assert torch.equal(batch.rewards, plain.rewards)
    assert torch.equal(batch.dones, plain.dones)


def test_what_is_stored_stays():
    buffer = filled()
    before = buffer.observations.copy(), buffer.next_observations.copy()
    buffer.sample(64)
    assert np.array_equal(buffer.observations, before[0])
    assert np.array_equal(buffer.next_observations, before[1])


def test_yaws_follow_the_seed_and_leave_sb3s_random_numbers_alone():
    def observations(numpy_seed, **options):
        np.random.seed(numpy_seed)
        return drawn(filled(**options)).observations

    assert torch.equal(observations(1), observations(1))
    assert not torch.equal(observations(1), observations(2))
    assert torch.equal(observations(1, seed=7), observations(2, seed=7))
    np.random.seed(1)
    buffer = filled()
    assert np.random.rand() == np.random.RandomState(1).rand()
    drawn(buffer)
    after = np.random.rand()
    drawn(filled(0.0))
    assert np.random.rand() == after


def test_models_and_buffers_are_saved_and_go_on(tmp_path):
    model = make(TD3, ENVIRONMENTS["hopper3d_hop"]()).learn(300)
    model.save(tmp_path / "model")
    model.save_replay_buffer(tmp_path / "buffer")
    again = TD3.load(tmp_path / "model", ENVIRONMENTS["hopper3d_hop"]())
    again.load_replay_buffer(tmp_path / "buffer")
    assert isinstance(again.replay_buffer, RotatingReplayBuffer)
    assert torch.equal(drawn(model.replay_buffer).observations, drawn(again.replay_buffer).observations)
    again.learn(300, reset_num_timesteps=False)


# -- refused ---------------------------------------------------------------------------------------------------


def refused(sentence, env=None, error=EudaError, **kwargs):
    with pytest.raises(error, match=sentence):
        make(TD3, env or ENVIRONMENTS["hopper3d_hop"](), **kwargs)


def test_layouts_that_do_not_fit_are_refused():
    refused(
        "describes 21 numbers, but observations have 96", layout=euda.make("reacher_hard").layout, error=LayoutError
    )
    refused("not None: take env.get_wrapper_attr", layout=None, error=LayoutError)
    refused("share must be between 0 and 1, not 1.5", share=1.5)


def test_stacked_frames_are_refused():
    env = ENVIRONMENTS["hopper3d_hop"]()
    stacked = VecFrameStack(DummyVecEnv([ENVIRONMENTS["hopper3d_hop"]]), 4)
    options = {"replay_buffer_class": RotatingReplayBuffer, "replay_buffer_kwargs": {"layout": env.layout}}
    with pytest.raises(LayoutError, match="look like 4 stacked frames of 96: leave the stacking out"):
        TD3("MlpPolicy", stacked, **options, **small())
    refused("are 3 stacked frames of 96 numbers", FrameStackObservation(env, 3))


@pytest.mark.parametrize(
    "space",
    [Dict({"observation": Box(-1, 1, (96,))}), Discrete(96), Box(0, 255, (84, 84, 3), np.uint8), Box(0, 9, (96,), int)],
    ids=["dict", "discrete", "image", "whole numbers"],
)
def test_other_spaces_are_refused(space):
    layout = euda.make("hopper3d_hop").layout
    with pytest.raises(LayoutError, match=r"Box of 96 numbers|flat observations of 96|floating point"):
        RotatingReplayBuffer(100, space, Box(-1, 1, (12,)), layout=layout)


def test_normalised_observations_are_refused_and_normalised_rewards_are_not():
    def model(share, **options):
        env = VecNormalize(DummyVecEnv([ENVIRONMENTS["hopper3d_hop"]]), **options)
        buffer = {"layout": env.get_attr("layout")[0], "share": share}
        return TD3("MlpPolicy", env, replay_buffer_class=RotatingReplayBuffer, replay_buffer_kwargs=buffer, **small())

    with pytest.raises(EudaError, match=r"VecNormalize do not turn.*give it norm_obs=False"):
        model(0.5).learn(300)
    model(0.5, norm_obs=False).learn(300)
    model(0.0).learn(300)


def test_what_does_not_go_together_is_refused():
    refused("needs the algorithm's discount as well", n_steps=3)
    refused("n_steps must be a whole number of at least 1, not 0", n_steps=0)
    with pytest.raises(EudaError, match="n_steps=3 and optimize_memory_usage=True do not go together"):
        filled(n_steps=3, gamma=0.9, optimize_memory_usage=True)
    with pytest.raises(ValueError, match="optimize_memory_usage = True and handle_timeout_termination = True"):
        filled(optimize_memory_usage=True)


def test_sb3_says_itself_that_its_own_n_steps_does_not_reach_the_buffer():
    env = ENVIRONMENTS["hopper3d_hop"]()
    options = {"replay_buffer_class": RotatingReplayBuffer, "replay_buffer_kwargs": {"layout": env.layout}}
    with pytest.warns(UserWarning, match="`n_steps=3` is ignored"):
        TD3("MlpPolicy", env, n_steps=3, **options, **small())
