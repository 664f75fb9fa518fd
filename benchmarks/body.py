"""What observing and stepping cost, on one core, beside the alternatives, in the same run and on the same states.

Contenders take turns on every state of random rollouts (with resets), because the machine is noisy; each call
follows physics or another contender, so it finds cold caches. The observation is timed in a tight loop too. A
repeat is one rollout; its figure is the median over its steps; reported are best and median of the repeats. All is
CPU time, and so is the training step (acting, stepping, storing, one update) beside which the overhead of the
environment is set: what a step costs beyond bare physics should stay below 3 % of it. `--program "euda swift rotate"
--name body-swift` takes the base `swift`, whose updates are shorter.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable, Sequence
from typing import Any

import mujoco
import numpy as np
import recording
import workers

from euda import TASKS, TaskEnv, make
from euda.tasks import dm_control_tasks, table

OVERHEAD, TRAINING = "overhead (env.step - bare physics)", "training step with one update"
Samples = dict[str, list[float]]
"""Microseconds of every call, by contender."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--core", type=int, default=max(os.sched_getaffinity(0)), help="the core to stay on")
    parser.add_argument("--repeats", type=int, default=8, help="rollouts per figure")
    parser.add_argument("--steps", type=int, default=250, help="control steps per rollout")
    parser.add_argument("--tasks", nargs="+", default=list(TASKS), choices=list(TASKS))
    parser.add_argument("--program", default="euda rotate", choices=list(workers.EUDA), help="whose training step")
    parser.add_argument("--name", default="body", help="of the file that is written")
    options = parser.parse_args()
    os.sched_setaffinity(0, {options.core})
    before = recording.machine()
    observation = observe_humanoid(options.repeats, options.steps)
    show("humanoid `limb` observation", observation)
    steps = {}
    shares = {}
    for task in options.tasks:
        steps[task] = step_task(task, options.program, options.repeats, options.steps)
        show(task, steps[task])
        overhead, whole = steps[task][OVERHEAD]["median"], steps[task][TRAINING]["median"]
        shares[task] = round(overhead / whole, 4)
        print(f"    overhead is {shares[task]:.1%} of a training step")
    figures = {
        "machine": before, "load_average_at_end": recording.machine()["load_average"], "unit": "microseconds",
        "program": options.program, "pinned_to_one_core": True,
        "repeats": options.repeats, "steps_per_repeat": options.steps,
        "figure": "CPU time, median over the steps of a repeat; best and median of the repeats",
        "observation_humanoid_limb": observation, "step": steps, "overhead_as_share_of_a_training_step": shares,
    }  # fmt: skip
    recording.write(options.name, figures)


def show(title: str, figures: dict[str, dict[str, float]]) -> None:
    print(title)
    for name, figure in figures.items():
        print(f"    {name:42} best {figure['best']:7.1f}  median {figure['median']:7.1f} µs")


def summarise(repeats: Sequence[Samples]) -> dict[str, dict[str, float]]:
    medians = {name: [float(np.median(samples[name])) for samples in repeats] for name in repeats[0]}
    return {name: {"best": min(m), "median": float(np.median(m)), "repeats": m} for name, m in medians.items()}  # pyright: ignore[reportReturnType]


def timed(call: Callable[[], Any]) -> float:
    start = time.thread_time_ns()
    call()
    return (time.thread_time_ns() - start) / 1000


def in_a_tight_loop(call: Callable[[], Any], count: int = 300) -> float:
    """CPU time per call with everything in the caches, as on a quiet core between cheap steps."""
    start = time.thread_time_ns()
    for _ in range(count):
        call()
    return (time.thread_time_ns() - start) / 1000 / count


def in_turns(contenders: dict[str, Callable[[], Any]], turn: int) -> dict[str, float]:
    """Time each once; who goes first, and finds the caches cold, changes with every turn."""
    names = list(contenders)
    names = names[turn % len(names) :] + names[: turn % len(names)]
    return {name: timed(contenders[name]) for name in names}


# -- (a) one observation ---------------------------------------------------------------------------------


def observe_humanoid(repeats: int, steps: int) -> dict[str, dict[str, float]]:
    """The same 182 numbers by euda, by one call per body, and by dm_control's named access."""
    env = make("humanoid_run")
    contenders = {
        "euda Observer.observe": env.observer.observe,
        "mujoco.mj_objectVelocity per body, by id": by_id(env),
        "dm_control object_velocity, by name": by_name(env),
    }
    results = []
    for repeat in range(repeats):
        env.reset(seed=repeat)
        rng, samples = np.random.default_rng(repeat), {name: [] for name in contenders}
        for step in range(steps):
            env.set_control(rng.uniform(-1, 1, env.model.nu))
            env.advance()
            for name, microseconds in in_turns(contenders, step).items():
                samples[name].append(microseconds)
            if step % 50 == 0:
                for name, call in contenders.items():
                    samples.setdefault(f"{name} (tight loop)", []).append(in_a_tight_loop(call))
                seen = [call() for call in contenders.values()]
                for other in seen[1:]:
                    np.testing.assert_allclose(seen[0], other, rtol=1e-5, atol=1e-5)
        results.append(samples)
    return summarise(results)


def by_id(env: TaskEnv) -> Callable[[], np.ndarray]:
    """Plain MuJoCo: ids looked up once, one mj_objectVelocity per body, NumPy for the rest."""
    model, data, limbs = env.model, env.data, env.morphology
    bodies = [limb.body for limb in limbs.limbs]
    root, head = limbs.root.body, model.body("head").id
    joints = [joint for limb in limbs.counted[1:] if limb.dofs > 1 for joint in limb.joints]
    spinning = [i for i, limb in enumerate(limbs.limbs) if i and limb.dofs == 3]
    ends = [model.body(name).id for name in _ENDS]
    velocities, kind = np.zeros((len(bodies), 6)), int(mujoco.mjtObj.mjOBJ_BODY)

    def observe() -> np.ndarray:
        for row, body in enumerate(bodies):
            mujoco.mj_objectVelocity(model, data, kind, body, velocities[row], 0)
        matrix = data.xmat[root].reshape(3, 3)
        return np.concatenate([
            matrix.T.ravel(), velocities[0, :3], (data.xipos[bodies] - data.xipos[root]).ravel(),
            velocities[:, 3:].ravel(), data.xaxis[joints].ravel(), velocities[spinning, :3].ravel(),
            data.xpos[root, 2:], data.sensor("torso_subtreelinvel").data,
            ((data.xpos[ends] - data.xpos[root]) @ matrix).ravel(), data.xmat[root, 6:], data.xpos[head, 2:],
        ]).astype(np.float32)  # fmt: skip

    return observe


def by_name(env: TaskEnv) -> Callable[[], np.ndarray]:
    """dm_control's own way: everything by name."""
    physics, limbs, model = env.dm_control.physics, env.morphology, env.model
    data = physics.named.data
    names = [limb.name for limb in limbs.limbs]
    joints = [model.joint(joint).name for limb in limbs.counted[1:] if limb.dofs > 1 for joint in limb.joints]
    spinning = [names.index(limb.name) for limb in limbs.counted[1:] if limb.dofs == 3]

    def observe() -> np.ndarray:
        twists = np.array([physics.data.object_velocity(name, "body") for name in names])  # linear, angular
        matrix = data.xmat["torso"].reshape(3, 3)
        return np.concatenate([
            matrix.T.ravel(), twists[0, 1], (data.xipos[names] - data.xipos["torso"]).ravel(),
            twists[:, 0].ravel(), data.xaxis[joints].ravel(), twists[spinning, 1].ravel(),
            [data.xpos["torso", "z"]], data.sensordata["torso_subtreelinvel"],
            ((data.xpos[list(_ENDS)] - data.xpos["torso"]) @ matrix).ravel(),
            data.xmat["torso", ["zx", "zy", "zz"]], [data.xpos["head", "z"]],
        ]).astype(np.float32)  # fmt: skip

    return observe


_WARM_UP = 100  # training steps before the first that is timed: what compiles has compiled
_ENDS = ("left_hand", "left_foot", "right_hand", "right_foot")


# -- (b) one control step --------------------------------------------------------------------------------


def step_task(task: str, program: str, repeats: int, steps: int) -> dict[str, dict[str, float]]:
    """Bare physics, the environment, its parts, and dm_control, side by side through the same states."""
    env, parts, control = make(task), make(task), dm_control_environment(task)
    bare = mujoco.MjData(env.model)
    training, results = workers.Euda(task, program), []
    training.train(workers.SEED_STEPS + _WARM_UP)
    for repeat in range(repeats):
        env.reset(seed=repeat)
        start_together(env, parts, control, bare)
        rng, samples = np.random.default_rng(repeat), {}
        for step in range(steps):
            action = rng.uniform(-1, 1, env.model.nu)
            env.set_control(action)  # for the numbers; env.step does it again
            ctrl = env.data.ctrl.copy()
            contenders = {
                "bare physics": lambda ctrl=ctrl: bare_step(env, bare, ctrl),
                "euda env.step": lambda action=action: env.step(action),
                "dm_control env.step": lambda ctrl=ctrl: control.step(ctrl),
            }
            times = in_turns(contenders, step) | time_parts(parts, action)
            times[OVERHEAD] = times["euda env.step"] - times["bare physics"]
            for name, microseconds in times.items():
                samples.setdefault(name, []).append(microseconds)
        for other in (bare, parts.data, control.physics.data.ptr):
            np.testing.assert_array_equal(env.data.qpos, other.qpos)  # the same states, bit for bit
        samples[TRAINING] = [training_step(training)]
        results.append(samples)
    return summarise(results)


def training_step(training: workers.Euda, steps: int = 50) -> float:
    """CPU time of a step of the whole loop, other threads included."""
    start = time.process_time_ns()
    training.train(steps)
    return (time.process_time_ns() - start) / 1000 / steps


def bare_step(env: TaskEnv, data: mujoco.MjData, ctrl: np.ndarray) -> None:
    data.ctrl[:] = ctrl
    mujoco.mj_step2(env.model, data)
    if env.substeps > 1:
        mujoco.mj_step(env.model, data, env.substeps - 1)
    mujoco.mj_step1(env.model, data)


def time_parts(env: TaskEnv, action: np.ndarray) -> dict[str, float]:
    """The same step taken apart. What is left of the overhead is action scaling, warnings check and call overhead."""
    stages = {
        "  part: action scaling": lambda: env.set_control(action),
        "  part: physics (advance)": env.advance,
        "  part: observation": env.observe,
        "  part: reward": env.reward,
    }
    return {name: timed(stage) for name, stage in stages.items()}


def dm_control_environment(task: str) -> Any:
    """dm_control's unmodified environment; for the 3D variants, which it lacks, its Environment around our model."""
    row = table.find(task)
    if row.original is None:
        return table.load(task)
    with dm_control_tasks.quiet_compile():
        return dm_control_tasks.suite.load(*row.original)


def start_together(env: TaskEnv, parts: TaskEnv, control: Any, bare: mujoco.MjData) -> None:
    """Bring everybody to the state that `env` was reset to."""
    state = env.get_state()
    env.set_state(state)
    parts.reset(seed=0)
    parts.set_state(state)
    control.reset()
    model, kind = control.physics.model.ptr, mujoco.mjtState.mjSTATE_INTEGRATION
    model.geom_pos[:], model.geom_size[:], model.opt.cone = env.model.geom_pos, env.model.geom_size, env.model.opt.cone
    for its_model, its_data in ((model, control.physics.data.ptr), (env.model, bare)):
        mujoco.mj_setState(its_model, its_data, state["integration"], int(kind))
        mujoco.mj_step1(its_model, its_data)


if __name__ == "__main__":
    main()
