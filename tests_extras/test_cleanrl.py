"""The recipe of docs/adapters.md inside a whole script in the style of CleanRL: DDPG in PyTorch, one loop, one file."""

import copy

import numpy as np
import pytest
import torch
from documents import ROOT, python_blocks
from simulated import assert_simulated, rollout
from stable_baselines3.common.buffers import ReplayBuffer

import euda

STEPS, LEARNING_STARTS, BATCH = 400, 150, 64


def defined(function):
    """The names that the page's block with this function defines."""
    (block,) = [code for code, _ in python_blocks((ROOT / "docs" / "adapters.md").read_text(), "python extras")
                if f"def {function}(" in code]  # fmt: skip
    assert len([line for line in block.splitlines() if line.strip()]) < 20
    names = {}
    exec(compile(block, "adapters.md", "exec"), names)
    return names


@pytest.fixture(scope="module")
def recipe():
    """`env` and `turn`."""
    return defined("turn")


def network(inputs, outputs, *last):
    return torch.nn.Sequential(
        torch.nn.Linear(inputs, 64), torch.nn.ReLU(), torch.nn.Linear(64, 64), torch.nn.ReLU(),
        torch.nn.Linear(64, outputs), *last,
    )  # fmt: skip


def test_a_whole_script_learns_from_turned_batches(recipe):
    env, turn, seen = recipe["env"], recipe["turn"], []
    torch.manual_seed(0)
    draw = np.random.default_rng(0)
    dim, m = env.observation_space.shape[0], env.action_space.shape[0]
    actor, critic = network(dim, m, torch.nn.Tanh()), network(dim + m, 1)
    target_actor, target_critic = copy.deepcopy(actor), copy.deepcopy(critic)
    before = [parameter.clone() for parameter in (*actor.parameters(), *critic.parameters())]
    optimisers = [torch.optim.Adam(net.parameters(), lr=1e-3) for net in (actor, critic)]
    rb = ReplayBuffer(10_000, env.observation_space, env.action_space, "cpu", handle_timeout_termination=False)
    observation, _ = env.reset(seed=0)
    for step in range(STEPS):
        with torch.no_grad():
            action = actor(torch.as_tensor(observation)).numpy() + draw.normal(0, 0.3, m)
        action = np.clip(action, -1, 1).astype(np.float32)
        following, reward, terminal, truncated, _ = env.step(action)
        rb.add(observation, following, action, np.array([reward]), np.array([terminal]), [{}])
        observation = following if not truncated else env.reset()[0]
        if step < LEARNING_STARTS:
            continue
        data = rb.sample(BATCH)
        observations, next_observations = turn(0.5, data.observations, data.next_observations)  # the recipe
        seen.append((data.observations, observations))
        with torch.no_grad():
            best = torch.cat([next_observations, target_actor(next_observations)], 1)
            y = data.rewards + 0.99 * (1 - data.dones) * target_critic(best)
        loss = torch.nn.functional.mse_loss(critic(torch.cat([observations, data.actions], 1)), y)
        actor_loss = -critic(torch.cat([observations, actor(observations)], 1)).mean()
        for optimiser, value in zip(reversed(optimisers), (loss, actor_loss), strict=True):
            optimiser.zero_grad()
            value.backward(retain_graph=value is loss, inputs=optimiser.param_groups[0]["params"])
        for optimiser in optimisers:
            optimiser.step()
        for net, target in ((actor, target_actor), (critic, target_critic)):
            for now, slow in zip(net.parameters(), target.parameters(), strict=True):
                slow.data.lerp_(now.data, 0.01)
        assert torch.isfinite(loss)
        assert torch.isfinite(actor_loss)

    after = [*actor.parameters(), *critic.parameters()]
    assert all(not torch.equal(old, new) for old, new in zip(before, after, strict=True))
    for stored, used in seen:  # half of every batch is turned: other numbers, the same lengths and heights
        assert torch.equal(stored[BATCH // 2 :], used[BATCH // 2 :])
        first, second = (x[: BATCH // 2].reshape(BATCH // 2, -1, 3) for x in (stored, used))
        assert not torch.allclose(first, second, atol=1e-3)
        torch.testing.assert_close(first.norm(dim=-1), second.norm(dim=-1), rtol=1e-4, atol=1e-5)
        torch.testing.assert_close(first[..., 2], second[..., 2])


def test_the_recipe_for_mirrors_is_what_the_simulator_does():
    names = defined("mirrored")
    env, mirror, mirrored = names["env"], names["mirror"], names["mirrored"]
    states, (s, a, r, following) = rollout(env, 20)
    image_s, image_a, image_following = (
        x.numpy() for x in mirrored(0.5, *(torch.as_tensor(array) for array in (s, a, following)))
    )
    group = euda.symmetries(env.model)
    assert group.elements[1].name == mirror.name
    changed = image_s, image_a, r, image_following
    kinds = assert_simulated(env, group, states, (s, a, r, following), changed, yaws=False)
    assert kinds == [True] * 10 + [False] * 10
