"""TorchRL's replay buffers with turned batches: from a rollout of our own environment to the losses of its TD3."""

import gymnasium
import numpy as np
import pytest
import torch
from simulated import assert_simulated, rollout
from tensordict import TensorDict
from tensordict.nn import TensorDictModule
from torchrl.data import LazyMemmapStorage, LazyTensorStorage, TensorDictReplayBuffer
from torchrl.envs import GymWrapper, TransformedEnv
from torchrl.envs.transforms import ObservationNorm
from torchrl.modules import MLP, ValueOperator
from torchrl.objectives import SoftUpdate, TD3Loss
from turned_by_hand import assert_turned, assert_uniform

import euda
from euda import Field, Kind, Layout
from euda.adapters.torchrl import RotateTransform
from euda.body.dict_layout import DictLayout
from euda.errors import EudaError, LayoutError

torch.set_num_threads(1)
ENVIRONMENTS = {
    "hopper3d_hop": lambda: euda.make("hopper3d_hop", seed=0),
    "Ant-v5": lambda: euda.LimbObservation(gymnasium.make("Ant-v5"), direction=(1, 0, 0)),
}
LAYOUT = euda.make("hopper3d_hop").layout


def transitions(size=256, layout=LAYOUT):
    torch.manual_seed(0)
    numbers = {
        "observation": torch.randn(size, layout.dim), "action": torch.rand(size, 12),
        "next": {"observation": torch.randn(size, layout.dim), "reward": torch.randn(size, 1),
                 "done": torch.zeros(size, 1, dtype=torch.bool)},
        "row": torch.arange(size),
    }  # fmt: skip
    return TensorDict(numbers, [size])


def filled(transform=None, storage=LazyTensorStorage, data=None, batch_size=64):
    buffer = TensorDictReplayBuffer(storage=storage(1000), batch_size=batch_size)
    buffer.extend(transitions() if data is None else data)
    if transform is not None:
        buffer.append_transform(transform)
    return buffer


def pair(batch):
    return batch["observation"].numpy(), batch["next", "observation"].numpy()


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_td3_learns_from_the_stored_batches_turned(name):
    source = ENVIRONMENTS[name]()
    layout = source.get_wrapper_attr("layout")
    env = GymWrapper(source)
    data = env.rollout(1000, break_when_any_done=False)
    data["row"] = torch.arange(len(data))
    buffer = filled(RotateTransform(layout, share=0.5, seed=1), data=data)
    torch.manual_seed(0)
    sizes = {"depth": 1, "num_cells": 32}
    actor = TensorDictModule(
        torch.nn.Sequential(MLP(layout.dim, env.action_spec.shape[-1], **sizes), torch.nn.Tanh()),
        in_keys=["observation"], out_keys=["action"],
    )  # fmt: skip
    value = ValueOperator(MLP(out_features=1, **sizes), in_keys=["observation", "action"])
    value(actor(data[:1].clone()))
    loss = TD3Loss(actor, value, action_spec=env.action_spec)
    loss.make_value_estimator(gamma=0.99)
    targets, optimiser, yaws = SoftUpdate(loss, eps=0.99), torch.optim.Adam(loss.parameters(), 1e-3), []
    for _ in range(20):
        batch = buffer.sample()
        losses = loss(batch)
        (losses["loss_actor"] + losses["loss_qvalue"]).backward()
        optimiser.step()
        optimiser.zero_grad()
        targets.step()
        yaws.append(assert_turned(layout, pair(data[batch["row"]]), pair(batch), 0.5))
        assert torch.equal(batch["action"], data["action"][batch["row"]])
        assert torch.equal(batch["next", "reward"], data["next", "reward"][batch["row"]])
    assert_uniform(np.concatenate(yaws))
    assert torch.isfinite(losses["loss_qvalue"])


@pytest.mark.parametrize("storage", [LazyTensorStorage, LazyMemmapStorage])
@pytest.mark.parametrize("share", [0.01, 0.3, 1.0])
def test_the_share_is_turned_and_what_is_stored_stays(storage, share):
    buffer, data = filled(RotateTransform(LAYOUT, share), storage, batch_size=100), transitions()
    batch = buffer.sample()
    assert_turned(LAYOUT, pair(data[batch["row"]]), pair(batch), share)
    for key in ("observation", ("next", "observation")):
        assert torch.equal(buffer._storage[:][key], data[key])


def test_share_0_reproduces_the_buffer_and_pytorchs_random_numbers_are_left_alone():
    def drawn(transform):
        buffer = filled(transform)
        torch.manual_seed(4)
        return buffer.sample(), torch.rand(3)

    (plain, numbers), (same, same_numbers) = drawn(None), drawn(RotateTransform(LAYOUT, 0.0))
    assert (plain == same).all()
    assert torch.equal(numbers, same_numbers)
    turned, turned_numbers = drawn(RotateTransform(LAYOUT, 0.5))
    assert torch.equal(numbers, turned_numbers)
    assert_turned(LAYOUT, pair(plain), pair(turned), 0.5)


def test_sequences_have_one_yaw_each():
    data = transitions(256).reshape(64, 4)
    buffer = TensorDictReplayBuffer(storage=LazyTensorStorage(100), batch_size=16)
    buffer.extend(data)
    buffer.append_transform(RotateTransform(LAYOUT, 1.0))
    batch = buffer.sample()
    stored = data[batch["row"][:, 0] // 4]
    yaws = [assert_turned(LAYOUT, pair(a), pair(b), 1.0) for a, b in zip(stored, batch, strict=True)]
    assert np.ptp(np.unwrap(yaws, axis=1), axis=1).max() < 1e-5
    assert np.ptp(np.stack(yaws)[:, 0]) > 1


def test_other_keys_and_seeds():
    data = transitions().rename_key_("observation", "state")
    keys = ("state", ("next", "observation"))

    def drawn(seed, state=None, skip=0):
        transform = RotateTransform(LAYOUT, 0.5, keys=keys, seed=seed)
        buffer = filled(transform, data=data)
        for _ in range(skip):
            buffer.sample()
        if state is not None:
            transform.load_state_dict(state)
        torch.manual_seed(1)
        return buffer.sample()["state"], transform.state_dict()

    (first, state), (second, _), (other, _) = drawn(5), drawn(5), drawn(6)
    assert torch.equal(first, second)
    assert not torch.equal(first, other)
    went_on, _ = drawn(5, skip=1)
    resumed, _ = drawn(99, state)
    assert torch.equal(went_on, resumed)
    torch.manual_seed(7)
    default = RotateTransform(LAYOUT)
    assert default._turner.generator.random() == np.random.default_rng(7).random()


def test_the_whole_buffer_goes_on_from_its_files(tmp_path):
    buffer = filled(RotateTransform(LAYOUT, 0.5, seed=1))
    buffer.sample()
    buffer.dumps(tmp_path)
    again = filled(RotateTransform(LAYOUT, 0.5, seed=2))
    again.loads(tmp_path)
    drawn = []
    for each in (buffer, again):
        torch.manual_seed(1)
        drawn.append(each.sample()["observation"])
    assert torch.equal(*drawn)


def test_histories_and_several_entries_turn_by_one_yaw():
    draw = np.random.default_rng(0)
    goal = Layout((Field("goal", Kind.VECTOR),))
    layout = DictLayout({"observation": LAYOUT, "goal": goal, "depth": None})
    data = TensorDict({"observation": torch.from_numpy(draw.normal(size=(6, 3, 96))), "goal": torch.ones(6, 3),
                       "depth": torch.ones(6, 2)}, [6])  # fmt: skip
    turned = RotateTransform(layout, 1.0, seed=3)(data.clone())
    yaws = np.random.default_rng(3).uniform(-np.pi, np.pi, 6)
    frames = LAYOUT.rotate(data["observation"].numpy(), yaws[:, None])
    np.testing.assert_allclose(turned["observation"], frames, atol=1e-12)
    np.testing.assert_allclose(turned["goal"], goal.rotate(np.ones((6, 3)), yaws), atol=1e-6)
    assert torch.equal(turned["depth"], data["depth"])


# -- refused ---------------------------------------------------------------------------------------------------


def refused(sentence, *args, error=LayoutError, data=None, **kwargs):
    with pytest.raises(error, match=sentence):
        filled(RotateTransform(*args, **kwargs), data=data).sample()


def test_what_does_not_fit_is_refused():
    refused("describes 21 numbers, but observations have 96", euda.make("reacher_hard").layout)
    refused("not None: take env", None)
    refused("share must be between 0 and 1, not -1", LAYOUT, -1, error=EudaError)
    refused("no tensor 'state' to turn: give keys=.*observation", LAYOUT, keys=("state",))
    data = transitions()
    refused("look like 2 stacked frames", LAYOUT, data=data.clone().set("observation", torch.zeros(256, 192)))
    pixels = torch.zeros(256, 3, 8, 8, dtype=torch.uint8)
    refused("or frames of them", LAYOUT, data=data.clone().set("observation", pixels))
    refused("floating point", LAYOUT, data=data.clone().set("observation", torch.zeros(256, 96, dtype=torch.int64)))
    with pytest.raises(LayoutError, match="a batch of transitions"):
        RotateTransform(LAYOUT)(data[0])


@pytest.mark.parametrize("order", [1, -1], ids=["before", "after"])
def test_normalised_observations_are_refused(order):
    normalise = ObservationNorm(0.0, 2.0, in_keys=["observation"])
    buffer = filled()
    for transform in (normalise, RotateTransform(LAYOUT))[::order]:
        buffer.append_transform(transform)
    with pytest.raises(EudaError, match="normalised by ObservationNorm do not turn"):
        buffer.sample()


def test_it_is_refused_in_an_environment():
    with pytest.raises(EudaError, match="belongs to a replay buffer"):
        TransformedEnv(GymWrapper(ENVIRONMENTS["hopper3d_hop"]()), RotateTransform(LAYOUT)).rollout(2)


def test_mirrored_batches_are_what_the_simulator_does():
    env = euda.make("walker3d_run", seed=0)
    group = euda.symmetries(env.model)
    states, (s, a, r, following) = rollout(env, 30)
    tensors = {"observation": torch.as_tensor(s), "action": torch.as_tensor(a), "row": torch.arange(30),
               "next": {"observation": torch.as_tensor(following), "reward": torch.as_tensor(r)}}  # fmt: skip
    transform = RotateTransform(env.layout, share=1.0, seed=0, elements=group.elements[1:])
    batch = filled(transform, data=TensorDict(tensors, [30]), batch_size=40).sample()
    rows = batch["row"].numpy()
    stored = [array[rows] for array in (s, a, r, following)]
    changed = [batch[key].numpy() for key in ("observation", "action", ("next", "reward"), ("next", "observation"))]
    kinds = assert_simulated(env, group, [states[row] for row in rows], stored, changed, yaws=True)
    assert 8 < sum(kinds) < 32
    wrong = RotateTransform(env.layout, elements=group.elements[1:], action_keys=["a"])
    buffer = filled(wrong, data=TensorDict(tensors, [30]))
    with pytest.raises(LayoutError, match=r"no tensor 'a' to turn: give action_keys=..., out of .*action"):
        buffer.sample()
