"""Exported symmetries inside the real rsl_rl, and with environments that look like Isaac Lab's and mjlab's."""

import importlib.util
import subprocess
import sys
import types

import mujoco
import numpy as np
import pytest
import torch
from rsl_rl.env import VecEnv
from rsl_rl.runners import OnPolicyRunner
from symmetric_robots import star
from tensordict import TensorDict

import euda
from euda.symmetry.examination import examine
from euda.symmetry.exporting.formats import export
from euda.symmetry.exporting.tables import tables

torch.set_num_threads(1)


def exported(folder, subject, name, keep=None):
    """The module that the exporter writes for the elements of an environment, and those elements."""
    examined = examine(subject, states=4)
    places = [i for i, one in enumerate(examined.verdicts) if i and (keep is None or one.element.name in keep)]
    path, test = export(tables(examined, places, subject.layout), name, folder)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module, [examined.group.elements[i] for i in places], test


class Vectorised(VecEnv):
    """Two environments of ours, as rsl_rl wants them."""

    def __init__(self, task, count=2):
        self.envs = [euda.make(task, seed=seed) for seed in range(count)]
        self.num_envs, self.num_actions = count, self.envs[0].model.nu
        self.max_episode_length, self.device, self.cfg = 50, "cpu", {}
        self.episode_length_buf = torch.zeros(count, dtype=torch.long)
        self._seen = np.stack([env.reset(seed=seed)[0] for seed, env in enumerate(self.envs)])

    def get_observations(self):
        return TensorDict({"policy": torch.as_tensor(self._seen).clone()}, [self.num_envs])

    def step(self, actions):
        rewards = []
        for i, (env, action) in enumerate(zip(self.envs, actions.numpy(), strict=True)):
            self._seen[i], reward, *_ = env.step(action)
            rewards.append(reward)
        done = torch.zeros(self.num_envs)
        return self.get_observations(), torch.tensor(rewards, dtype=torch.float32), done, {"time_outs": done}


def configuration(augmentation, **symmetry):
    network = {"class_name": "MLPModel", "hidden_dims": [16], "activation": "elu"}
    return {
        "num_steps_per_env": 8, "save_interval": 100, "obs_groups": {"actor": ["policy"], "critic": ["policy"]},
        "actor": {**network, "distribution_cfg": {"class_name": "GaussianDistribution", "init_std": 0.5}},
        "critic": dict(network), "logger": "tensorboard",
        "algorithm": {"class_name": "PPO", "num_learning_epochs": 1, "num_mini_batches": 1,
                      "symmetry_cfg": {"data_augmentation_func": augmentation, **symmetry}},
    }  # fmt: skip


@pytest.mark.parametrize("symmetry", [{"use_data_augmentation": True},
                                      {"use_mirror_loss": True, "mirror_loss_coeff": 1.0}])  # fmt: skip
def test_ppo_of_rsl_rl_learns_with_the_exported_function(tmp_path, symmetry):
    env = Vectorised("walker_run")
    module, (mirror,), test = exported(tmp_path, euda.make("walker_run"), "rsl_rl")
    seen = []

    def watched(env, obs, actions):
        result = module.compute_symmetric_states(env, obs, actions)
        seen.append(([obs, actions], result))
        return result

    runner = OnPolicyRunner(env, configuration(watched, **symmetry), device="cpu")
    before = [parameter.clone() for parameter in runner.alg.actor.parameters()]
    runner.learn(2)
    assert any(not torch.equal(a, b) for a, b in zip(before, runner.alg.actor.parameters(), strict=True))
    layout, actions = env.envs[0].layout, env.envs[0].actions
    checked = 0
    for (obs, given), (both, mapped) in seen:
        if obs is not None:
            x, image = obs["policy"], both["policy"][len(obs) :]
            torch.testing.assert_close(image, layout.act(mirror, x))
            checked += 1
        if given is not None:
            torch.testing.assert_close(mapped[len(given) :], actions.act(mirror, given))
            checked += 1
    assert checked >= 4
    command = [sys.executable, "-I", "-m", "pytest", "-q", "-p", "no:cacheprovider", str(test)]
    assert subprocess.run(command, cwd=tmp_path, check=False).returncode == 0


def managed(model, data, joints, motors):
    """What an exported file reads of an environment of Isaac Lab or mjlab, with joints and actions in any order."""
    terms = {"base_lin_vel": 3, "base_ang_vel": 3, "projected_gravity": 3, "velocity_commands": 3,
             "joint_pos": len(joints), "joint_vel": 2 * len(joints), "actions": len(motors)}  # fmt: skip
    robot = types.SimpleNamespace(
        joint_names=joints, data=types.SimpleNamespace(default_joint_pos=torch.zeros(1, len(joints)))
    )
    manager = types.SimpleNamespace(
        active_terms={"policy": list(terms)}, group_obs_term_dim={"policy": [(size,) for size in terms.values()]}
    )
    action = types.SimpleNamespace(
        active_terms=["joint_pos"], get_term=lambda name: types.SimpleNamespace(_joint_names=motors)
    )
    inner = types.SimpleNamespace(scene={"robot": robot}, observation_manager=manager, action_manager=action)
    return types.SimpleNamespace(unwrapped=inner)


def observed(model, data, joints, command, action):
    """The terms of a velocity task, read from the simulator; the rates twice, as a history would be."""
    rotation = data.xmat[1].reshape(3, 3)
    places = [model.joint(name).qposadr[0] for name in joints]
    rates = data.qvel[[model.joint(name).dofadr[0] for name in joints]]
    twist = rotation.T @ data.qvel[:3], data.qvel[3:6], rotation.T @ [0, 0, -1.0]
    return np.concatenate([*twist, command, data.qpos[places], rates, rates, action])


@pytest.mark.parametrize("name", ["isaaclab", "mjlab"])
def test_terms_of_a_velocity_task_are_those_of_the_image_of_the_state(tmp_path, name):
    model = star(4)
    module, elements, _ = exported(tmp_path, euda.ModelEnv(model), name)
    joints, motors = sorted(module.DATA["joints"])[::-1], sorted(set(module.DATA["driven"]))
    data, rng = mujoco.MjData(model), np.random.default_rng(0)
    env = managed(model, data, joints, motors)
    data.qpos[:] = model.qpos0
    mujoco.mj_integratePos(model, data.qpos, 0.3 * rng.standard_normal(model.nv), 1.0)
    data.qvel[:] = rng.standard_normal(model.nv)
    mujoco.mj_forward(model, data)
    qpos, qvel, command = data.qpos.copy(), data.qvel.copy(), rng.standard_normal(3)
    action = rng.standard_normal(model.nu)
    order = [module.DATA["driven"].index(name) for name in motors]
    before = observed(model, data, joints, command, action[order])
    both, actions = module.compute_symmetric_states(
        env, TensorDict({"policy": torch.as_tensor(before)[None]}, [1]), torch.as_tensor(action[order])[None]
    )
    for number, element in enumerate(elements, start=1):
        data.qpos[:], data.qvel[:] = element.positions(qpos), element.velocities(qpos, qvel)
        mujoco.mj_forward(model, data)
        s = element.robot_map
        mapped = np.array([*(s[:2, :2] @ command[:2]), np.linalg.det(s) * s[2, 2] * command[2]])
        expected = observed(model, data, joints, mapped, element.action(action)[order])
        np.testing.assert_allclose(both["policy"][number], expected, atol=1e-9)
        np.testing.assert_allclose(actions[number], element.action(action)[order], atol=1e-9)


def test_what_nothing_is_known_about_is_refused(tmp_path):
    model = star(4)
    module, *_ = exported(tmp_path, euda.ModelEnv(model), "isaaclab", keep=("mirror left-right",))
    joints = module.DATA["joints"]
    env = managed(model, None, joints, joints)
    env.unwrapped.observation_manager.active_terms["policy"][0] = "height_scan"
    obs = {"policy": torch.zeros(1, 12 + 4 * len(joints))}
    with pytest.raises(KeyError, match="nothing says how the observation term 'height_scan' answers to a mirror"):
        module.compute_symmetric_states(env, obs, None)
    with pytest.raises(KeyError, match="nothing says which terms the group 'state' of observations has"):
        module.compute_symmetric_states(None, {"state": torch.zeros(1, 3)}, None)
    env.unwrapped.scene["robot"].data.default_joint_pos[0, 0] = 0.3
    with pytest.raises(ValueError, match="the default pose is not symmetric under 'mirror left-right': joint"):
        module.compute_symmetric_states(env, None, None)
    with pytest.raises(KeyError, match="neither actuators"):
        module._kind_of(("tail",))
