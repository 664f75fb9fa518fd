"""Stable-Baselines3 learning from turned batches, on a task of ours and on Gymnasium's ant."""

# ruff: noqa: NPY002 - SB3 draws from NumPy's global generator
import gymnasium
import numpy as np
import pytest
import torch
from gymnasium.spaces import Box, Dict, Discrete
from gymnasium.wrappers import FrameStackObservation
from recording import Recording
from simulated import assert_simulated, rollout
from stable_baselines3 import DDPG, SAC, TD3
from stable_baselines3.common.vec_env import DummyVecEnv, VecFrameStack, VecNormalize
from turned_by_hand import assert_turned, assert_uniform

import euda
from euda.adapters.sb3 import RotatingDictReplayBuffer, RotatingReplayBuffer
from euda.errors import EudaError, LayoutError
from euda.replay.batches import Turner
from euda.tasks.wrappers import DictObservation

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


def twice(model):
    """A batch of what a model has stored, once as it is and once turned."""
    return (_samples(model.replay_buffer, share) for share in (0.0, 1.0))


def _samples(buffer, share):
    buffer._turner = Turner(buffer.layout, share, np.random.default_rng(3))
    return buffer._get_samples(np.arange(8))


def yaws_of():
    return np.random.default_rng(3).uniform(-np.pi, np.pi, 8)


def test_stacked_frames_turn_together():
    env = ENVIRONMENTS["hopper3d_hop"]()
    stacked = VecFrameStack(DummyVecEnv([ENVIRONMENTS["hopper3d_hop"]]), 4)
    options = {"replay_buffer_class": RotatingReplayBuffer, "replay_buffer_kwargs": {"layout": env.layout}}
    with pytest.raises(LayoutError, match=r"look like 4 stacked frames of 96: .*layout.stacked\(4\)"):
        TD3("MlpPolicy", stacked, **options, **small())
    options["replay_buffer_kwargs"] = {"layout": env.layout.stacked(4)}
    model = TD3("MlpPolicy", stacked, **options, **small()).learn(40)
    plain, turned = twice(model)
    frames = plain.observations.numpy().reshape(8, 4, 96)
    expected = np.stack([env.layout.rotate(frames[:, k], yaws_of()) for k in range(4)], 1).reshape(8, -1)
    np.testing.assert_allclose(turned.observations, expected, atol=1e-5)


def test_frames_beside_each_other_turn_together():
    env = FrameStackObservation(ENVIRONMENTS["hopper3d_hop"](), 3)  # [3, 96]
    layout = env.get_wrapper_attr("layout")
    options = {"replay_buffer_class": RotatingReplayBuffer, "replay_buffer_kwargs": {"layout": layout}}
    plain, turned = twice(TD3("MlpPolicy", env, **options, **small()).learn(40))
    expected = layout.rotate(plain.observations.numpy(), yaws_of()[:, None])
    np.testing.assert_allclose(turned.observations, expected, atol=1e-5)


def test_dict_observations_turn_together():
    env = DictObservation(euda.make("hopper3d_hop"), {"own": "joint", "limbs": "limb"})
    options = {"replay_buffer_class": RotatingDictReplayBuffer, "replay_buffer_kwargs": {"layout": env.layout}}
    model = TD3("MultiInputPolicy", env, **options, **small()).learn(40)
    plain, turned = twice(model)
    for before, after in (
        (plain.observations, turned.observations),
        (plain.next_observations, turned.next_observations),
    ):
        for name, layout in env.layout.items():
            np.testing.assert_allclose(after[name], layout.rotate(before[name].numpy(), yaws_of()), atol=1e-5)
            assert (after[name] - before[name]).abs().max() > 0.1
    np.testing.assert_array_equal(plain.actions, turned.actions)
    options["replay_buffer_class"] = RotatingReplayBuffer
    with pytest.raises(LayoutError, match="RotatingDictReplayBuffer, with a DictLayout"):
        TD3("MultiInputPolicy", env, **options, **small())
    options = {"replay_buffer_class": RotatingDictReplayBuffer, "replay_buffer_kwargs": {"layout": env.layout["own"]}}
    with pytest.raises(LayoutError, match="needs a DictLayout and a Dict as observation space, not Layout"):
        TD3("MultiInputPolicy", env, **options, **small())


@pytest.mark.parametrize(
    "space",
    [Dict({"observation": Box(-1, 1, (96,))}), Discrete(96), Box(0, 255, (84, 84, 3), np.uint8), Box(0, 9, (96,), int)],
    ids=["dict", "discrete", "image", "whole numbers"],
)
def test_other_spaces_are_refused(space):
    layout = euda.make("hopper3d_hop").layout
    with pytest.raises(LayoutError, match=r"Box of 96 numbers|observations of 96|floating point|with a DictLayout"):
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


def test_mirrored_batches_are_what_the_simulator_does():
    env = euda.make("walker3d_run", seed=0)
    group = euda.symmetries(env.model)
    states, (s, a, r, following) = rollout(env, 30)
    options = {"layout": env.layout, "share": 1.0, "elements": group.elements[1:], "seed": 0}
    buffer = Recording(64, env.observation_space, env.action_space, "cpu", **options)
    for row in range(30):
        buffer.add(s[row], following[row], a[row], r[row : row + 1], np.zeros(1), [{}])
    buffer.sample(40)
    ((plain, batch),) = buffer.seen
    rows = [int(np.flatnonzero((s == x).all(axis=1))[0]) for x in plain.observations.numpy()]
    stored, changed = (
        [x.observations.numpy(), x.actions.numpy(), x.rewards.numpy()[:, 0], x.next_observations.numpy()]
        for x in (plain, batch)
    )
    kinds = assert_simulated(env, group, [states[row] for row in rows], stored, changed, yaws=True)
    assert 8 < sum(kinds) < 32


def test_sac_learns_from_mirrored_batches_and_wrong_actions_are_refused():
    env = euda.make("walker_run", seed=0)
    elements = euda.symmetries(env.model).elements[1:]
    model = make(SAC, env, Recording, elements=elements, yaws=False).learn(300)
    for plain, batch in model.replay_buffer.seen[::5]:
        changed = (plain.actions != batch.actions).any(dim=1)
        assert 0 < changed.sum() <= 32
        image = env.actions.act(elements[0], plain.actions[changed])
        assert torch.equal(batch.actions[changed], image)
    space = Box(-np.inf, np.inf, (env.layout.dim,), np.float32)
    with pytest.raises(EudaError, match="actions have 3 numbers, but the elements act on 6 actuators"):
        RotatingReplayBuffer(10, space, Box(-1, 1, (3,)), layout=env.layout, elements=elements)
    with pytest.raises(EudaError, match="needs a Box as action space"):
        RotatingReplayBuffer(10, space, Discrete(3), layout=env.layout, elements=elements)
