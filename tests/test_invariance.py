"""Does rotation do what it is for? A critic that learnt from turned data sees turned worlds alike.

The measure is independent of `Layout.rotate`: states are turned in the simulator, and both observations are
read there.
"""

import numpy as np
import pytest

from euda import make
from euda.agents.agent import Agent
from euda.agents.ddpg import DDPG
from euda.agents.network_settings import MLPConfig
from euda.agents.networks import mlp_networks
from euda.agents.sac import SAC
from euda.agents.settings import DDPGConfig, SACConfig
from euda.replay.augmentation import make_augmentation
from euda.replay.buffer import ReplayBuffer
from euda.replay.settings import AugmentationConfig
from euda.symmetry.judging.states import visited_states
from euda.symmetry.judging.transformation import WorldYaw
from euda.symmetry.judging.twin import Trial, Twin

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
    twin = Twin(make(TASK, cone="elliptic"))
    actions, angles = rng.uniform(-1, 1, (40, 12)), rng.uniform(-np.pi, np.pi, (40, 5))
    samples = zip(visited_states(twin.env, 40, rng), actions, angles, strict=True)
    judged = twin.compare([Trial(state, action, [WorldYaw(yaw) for yaw in yaws]) for state, action, yaws in samples])
    return env.layout, buffer, judged, np.repeat(actions, 5, axis=0).astype(np.float32)


def spread(experience, algorithm, share):
    """How much Q changes when the world is turned, relative to how much it varies between states."""
    layout, buffer, judged, actions = experience
    augment = make_augmentation(AugmentationConfig("rotate", share), layout)
    agent, rng = Agent.initialise(algorithm, 0, augment), np.random.default_rng(1)
    for step in range(UPDATES):
        agent, _ = agent.update(buffer.sample(rng, 128), step)

    def q(observations):
        return np.asarray(algorithm.critics.q(agent.state["critics"][0], observations.astype(np.float32), actions))

    original, turned = q(judged.original), q(judged.found)
    return np.sqrt(np.mean((turned - original) ** 2)) / original.std()


SMALL = mlp_networks(MLPConfig(hidden_size=64))


@pytest.mark.parametrize(("rule", "config"), [(DDPG, DDPGConfig), (SAC, SACConfig)])
def test_rotation_makes_a_critic_more_invariant(experience, rule, config):
    algorithm = rule.make(experience[0].dim, 12, config(learning_rate=1e-3), SMALL)
    without, turned = spread(experience, algorithm, 0.0), spread(experience, algorithm, 1.0)
    assert without > 0.5
    assert turned < 0.6 * without
