"""Programs to measure, each in a process of its own: reads a command per line, answers with one line of JSON.

    python benchmarks/workers.py PROGRAM TASK CORE

`run N` trains for N steps, `evaluate` and `checkpoint` do that once (euda only). All programs step the same
environments (euda's, limb features). But for the base `swift`, which has sizes of its own, all have the same ones:
batch 256, two hidden layers of 256, one critic, one update per step, actor and targets every second update; 3-step
returns where the program has them (CleanRL has not).
The two loops called CleanRL are written anew after the published algorithm, with the libraries it uses
(PyTorch or Flax and Optax, the replay buffer of Stable-Baselines3), because it is a set of scripts and no package.
"""

from __future__ import annotations

import functools
import importlib
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

SEED_STEPS, BATCH, HIDDEN, SIGMA = 500, 256, 256, 0.3
Train = Callable[[int], None]


class Euda:
    """The loop of euda, checkpoints and evaluation as in a run."""

    def __init__(self, task: str, program: str) -> None:
        from euda.runs import run_folder, trainer

        self._folder = tempfile.TemporaryDirectory()
        self._run = run_folder.Run(Path(self._folder.name), config_of(program, task))
        self._run.clear()
        self.trainer = trainer.Trainer(self._run, None)

    def train(self, steps: int) -> None:
        for _ in range(steps):
            self.trainer.advance()
        self.trainer.averages.take()

    def evaluate(self) -> None:
        self.trainer.evaluate()

    def checkpoint(self) -> None:
        from euda.runs import checkpoint

        checkpoint.save(self._run.checkpoints, self.trainer.checkpoint(0))


EUDA: dict[str, tuple[str, str]] = {
    "euda": ("limb", "paper"),
    "euda rotate": ("rotate", "paper"),
    "euda swift": ("limb", "swift"),
    "euda swift rotate": ("rotate", "swift"),
    "euda swift canonical": ("canonical", "swift"),
}
"""Our own programs: method and base."""


def config_of(program: str, task: str) -> Any:
    """The configuration of one of our own programs."""
    from euda.runs.resolution import resolve

    method, base = EUDA[program]
    return resolve(task, method, base, steps=100_000, overrides={"replay": {"seed_steps": SEED_STEPS}})


def make_environment(task: str) -> Any:
    from euda.tasks.task_env import make

    return make(task)


def stable_baselines(task: str, module: str) -> Train:
    """TD3 of Stable-Baselines3 or SBX with one critic: DDPG with target policy smoothing."""
    import numpy as np

    noise = importlib.import_module("stable_baselines3.common.noise")
    environment = make_environment(task)
    size = environment.action_space.shape[0]
    model = importlib.import_module(module).TD3(
        "MlpPolicy", environment, learning_rate=1e-4, buffer_size=100_000, learning_starts=SEED_STEPS, batch_size=BATCH,
        tau=0.01, n_steps=3, policy_delay=2, action_noise=noise.NormalActionNoise(np.zeros(size), np.full(size, SIGMA)),
        policy_kwargs={"net_arch": [HIDDEN, HIDDEN], "n_critics": 1}, device="cpu", seed=0,
    )  # fmt: skip
    return lambda steps: model.learn(steps, reset_num_timesteps=False)


class CleanLoop:
    """What both CleanRL loops share: environment, buffer of Stable-Baselines3, noise, when to learn."""

    def __init__(self, task: str) -> None:
        import numpy as np

        gymnasium = importlib.import_module("gymnasium")
        buffers = importlib.import_module("stable_baselines3.common.buffers")
        self.environments = gymnasium.vector.SyncVectorEnv([lambda: make_environment(task)])
        self.observations, _ = self.environments.reset(seed=0)
        spaces = self.environments.single_observation_space, self.environments.single_action_space
        self.buffer = buffers.ReplayBuffer(100_000, *spaces, "cpu", handle_timeout_termination=False)
        self.dim, self.size = spaces[0].shape[0], spaces[1].shape[0]
        self.step, self.random = 0, np.random.default_rng(0)

    def train(self, steps: int) -> None:
        import numpy as np

        for _ in range(steps):
            actions = self.act(self.observations) + self.random.normal(0, SIGMA, (1, self.size))
            actions = np.clip(actions, -1, 1).astype(np.float32)
            following, rewards, terminal, _, infos = self.environments.step(actions)
            self.buffer.add(self.observations, following, actions, rewards, terminal, [infos])
            self.observations, self.step = following, self.step + 1
            if self.step > SEED_STEPS:
                self.learn(self.buffer.sample(BATCH))

    def act(self, observations: Any) -> Any:
        raise NotImplementedError

    def learn(self, batch: Any) -> None:
        raise NotImplementedError


class CleanTorch(CleanLoop):
    """DDPG in eager PyTorch."""

    def __init__(self, task: str) -> None:
        super().__init__(task)
        self.torch = torch = importlib.import_module("torch")
        layers = torch.nn

        def network(inputs: int, outputs: int, *last: Any) -> Any:
            hidden = [layers.Linear(inputs, HIDDEN), layers.ReLU(), layers.Linear(HIDDEN, HIDDEN), layers.ReLU()]
            return layers.Sequential(*hidden, layers.Linear(HIDDEN, outputs), *last)

        self.actor, self.actor_target = (network(self.dim, self.size, layers.Tanh()) for _ in range(2))
        self.critic, self.critic_target = (network(self.dim + self.size, 1) for _ in range(2))
        self.actor_target.load_state_dict(self.actor.state_dict())
        self.critic_target.load_state_dict(self.critic.state_dict())
        self.actor_adam = torch.optim.Adam(self.actor.parameters(), lr=1e-4)
        self.critic_adam = torch.optim.Adam(self.critic.parameters(), lr=1e-4)

    def act(self, observations: Any) -> Any:
        with self.torch.no_grad():
            return self.actor(self.torch.as_tensor(observations)).numpy()

    def q(self, critic: Any, observations: Any, actions: Any) -> Any:
        return critic(self.torch.cat([observations, actions], 1)).view(-1)

    def learn(self, batch: Any) -> None:
        torch = self.torch
        with torch.no_grad():
            following = self.q(self.critic_target, batch.next_observations, self.actor_target(batch.next_observations))
            target = batch.rewards.flatten() + (1 - batch.dones.flatten()) * 0.99 * following
        loss = torch.nn.functional.mse_loss(self.q(self.critic, batch.observations, batch.actions), target)
        self.descend(self.critic_adam, loss)
        if self.step % 2 == 0:
            self.descend(
                self.actor_adam, -self.q(self.critic, batch.observations, self.actor(batch.observations)).mean()
            )
            for net, target_net in ((self.actor, self.actor_target), (self.critic, self.critic_target)):
                for value, slow in zip(net.parameters(), target_net.parameters(), strict=True):
                    slow.data.copy_(0.01 * value.data + 0.99 * slow.data)

    @staticmethod
    def descend(adam: Any, loss: Any) -> None:
        adam.zero_grad()
        loss.backward()
        adam.step()


class CleanJax(CleanLoop):
    """DDPG with Flax and Optax, actor and critic updated by two jitted functions."""

    def __init__(self, task: str) -> None:
        super().__init__(task)
        jax, nn, optax = (importlib.import_module(name) for name in ("jax", "flax.linen", "optax"))
        numpy, state = (
            importlib.import_module("jax.numpy"),
            importlib.import_module("flax.training.train_state").TrainState,
        )

        def network(outputs: int, last: Any) -> Any:
            return nn.Sequential([nn.Dense(HIDDEN), nn.relu, nn.Dense(HIDDEN), nn.relu, nn.Dense(outputs), last])

        actor, critic = network(self.size, nn.tanh), network(1, lambda x: x[:, 0])
        joined = numpy.zeros((1, self.dim + self.size))
        params = actor.init(jax.random.key(0), self.observations), critic.init(jax.random.key(1), joined)
        self.states = tuple(
            state.create(apply_fn=net.apply, params=value, tx=optax.adam(1e-4))
            for net, value in zip((actor, critic), params, strict=True)
        )
        self.targets, self.forward = params, jax.jit(actor.apply)

        def q(value: Any, s: Any, a: Any) -> Any:
            return critic.apply(value, numpy.concatenate([s, a], -1))

        @jax.jit
        def learn_critic(states: Any, targets: Any, s: Any, a: Any, following: Any, r: Any, d: Any) -> Any:
            y = r + (1 - d) * 0.99 * q(targets[1], following, actor.apply(targets[0], following))
            gradient = jax.grad(lambda value: ((q(value, s, a) - y) ** 2).mean())(states[1].params)
            return states[0], states[1].apply_gradients(grads=gradient)

        @jax.jit
        def learn_actor(states: Any, targets: Any, s: Any) -> Any:
            gradient = jax.grad(lambda value: -q(states[1].params, s, actor.apply(value, s)).mean())(states[0].params)
            states = states[0].apply_gradients(grads=gradient), states[1]
            return states, optax.incremental_update(tuple(item.params for item in states), targets, 0.01)

        self.learn_critic, self.learn_actor = learn_critic, learn_actor

    def act(self, observations: Any) -> Any:
        import numpy as np

        return np.asarray(self.forward(self.states[0].params, observations))

    def learn(self, batch: Any) -> None:
        s, a, following, done, r = (item.numpy() for item in batch[:5])
        self.states = self.learn_critic(self.states, self.targets, s, a, following, r.flatten(), done.flatten())
        if self.step % 2 == 0:
            self.states, self.targets = self.learn_actor(self.states, self.targets, s)


PROGRAMS: dict[str, Callable[[str], Any]] = {
    **{program: functools.partial(Euda, program=program) for program in EUDA},
    "Stable-Baselines3": functools.partial(stable_baselines, module="stable_baselines3"),
    "SBX": functools.partial(stable_baselines, module="sbx"),
    "CleanRL (PyTorch)": CleanTorch,
    "CleanRL (JAX)": CleanJax,
}


def main() -> None:
    program, task, core = sys.argv[1:]
    os.sched_setaffinity(0, {int(core)})
    if program.startswith("euda"):
        from euda.runs import machine

        machine.use_one_thread()
    made = PROGRAMS[program](task)
    train = getattr(made, "train", made)
    answer({"ready": program})
    for line in sys.stdin:
        command, *arguments = line.split()
        wall, cpu = time.perf_counter(), time.process_time()
        train(int(arguments[0])) if command == "run" else getattr(made, command)()
        answer({"wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu})


def answer(value: dict[str, Any]) -> None:
    print(json.dumps(value), flush=True)


if __name__ == "__main__":
    main()
