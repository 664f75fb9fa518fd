"""Does rotation do what it is for? A critic that learnt from turned data sees turned worlds alike.

The measure is independent of `Layout.rotate`: states are turned in the simulator, and both observations are
read there.
"""

import numpy as np
import pytest

from euda import make
from euda.agents.agent import Agent
from euda.agents.ddpg import DDPG
from euda.agents.networks import mlp_networks, unravel
from euda.agents.sac import SAC
from euda.body.comparison import Pair, sample_states
from euda.config import AugmentationConfig, DDPGConfig, MLPConfig, SACConfig
from euda.replay.augmentation import make_augmentation
from euda.replay.buffer import ReplayBuffer

TASK, UPDATES = "hopper3d_hop", 700


@pytest.fixture(scope="module")
def experience():
    """A few episodes of random actions, and simulator-turned states to judge by."""
    env = make(TASK, cone="elliptic")
    buffer = ReplayBuffer(env.layout.dim, 12, 4000)
    rng = np.random.default_rng(0)
    for seed in range(20):
        observation, _ = env.reset(seed=seed)
        buffer.start(observation)
        for _ in range(100):
            action = rng.uniform(-1, 1, 12).astype(np.float32)
            observation, _, *_ = env.step(action)
            # Speed along the direction of travel: a reward with something to learn at every step.
            buffer.step(
                action, float(env.robot.direction @ env.data.sensor("torso_subtreelinvel").data), 1.0, observation
            )
    pair = Pair(make(TASK, cone="elliptic"), make(TASK, cone="elliptic"))
    actions = rng.uniform(-1, 1, (40, 12))
    judged = pair.compare(sample_states(pair.env, 40, rng), actions, rng.uniform(0, 2 * np.pi, (40, 5)))
    return env.layout, buffer, judged, np.repeat(actions, 5, axis=0).astype(np.float32)


def spread(experience, algorithm, share):
    """How much Q changes when the world is turned, relative to how much it varies between states."""
    layout, buffer, judged, actions = experience
    augment = make_augmentation(AugmentationConfig("rotate", share), layout)
    agent, rng = Agent.initialise(algorithm, 0, augment), np.random.default_rng(1)
    for step in range(UPDATES):
        agent, _ = agent.update(buffer.sample(rng, 128), step)

    critic = algorithm.critic
    flat = agent.state["critic" if "critic" in agent.state else "critic_1"]

    def q(observations):
        return np.asarray(critic.apply(unravel(critic, flat), observations.astype(np.float32), actions))[:, 0]

    original, turned = q(judged.original), q(judged.turned)
    return np.sqrt(np.mean((turned - original) ** 2)) / original.std()


SMALL = mlp_networks(MLPConfig(hidden_size=64))


@pytest.mark.parametrize(("rule", "config"), [(DDPG, DDPGConfig), (SAC, SACConfig)])
def test_rotation_makes_a_critic_more_invariant(experience, rule, config):
    algorithm = rule.make(experience[0].dim, 12, config(learning_rate=1e-3), SMALL)
    without, turned = spread(experience, algorithm, 0.0), spread(experience, algorithm, 1.0)
    assert without > 0.5
    assert turned < 0.6 * without
