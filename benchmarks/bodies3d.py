"""The 3D variants under policies that know nothing: speeds, returns, and what the compiled models hold."""

from __future__ import annotations

import dataclasses
import itertools
from typing import Any

import mujoco
import numpy as np
import recording

from euda import TASKS, TaskEnv, make
from euda.errors import SimulationError
from euda.tasks import bodies3d as variants
from euda.tasks.table import CONES, EPISODE_STEPS

_SEEDS = (0, 1, 2)
_HOLD = 10
"""Steps for which the held bang-bang policy keeps its action."""


def main() -> None:
    rows, models, gimbals, starts = [], {}, {}, {}
    for task in (name for name, row in TASKS.items() if row.original is None):
        for cone in CONES:
            env = make(task, features="joint", cone=cone)
            models[task], gimbals[task], starts[task] = compiled(env.model), gimbal(env.model), resets(env)
            for policy in ("zero", "uniform", "bang-bang", "held bang-bang"):
                episodes = [episode(env, policy, seed) for seed in _SEEDS]
                rows.append({"task": task, "cone": env.cone, "policy": policy, "episodes": episodes})
                returns = ", ".join(f"{e['return']:.2f}" for e in episodes)
                speed = max(e["max_speed"] for e in episodes)
                excess = max(e["limit_excess_deg"] for e in episodes)
                print(f"{task:14} {env.cone:9} {policy:15} |qvel| {speed:5.1f} limits +{excess:4.1f}° return {returns}")
    figures = {
        "machine": recording.machine(), "steps": EPISODE_STEPS, "seeds": _SEEDS, "hold": _HOLD, "rows": rows,
        "models": models, "smallest_determinant_of_the_axes_by_order": gimbals, "resets": starts,
        "walker_with_the_pitch_hinge_s_values_on_all_axes": naive_walker(),
    }  # fmt: skip
    print(gimbals, starts, figures["walker_with_the_pitch_hinge_s_values_on_all_axes"], sep="\n")
    recording.write("bodies3d", figures)


def naive_walker() -> list[dict[str, Any]]:
    """Why the walker's added hinges are softer: with armature, damping and gear of the pitch hinge it blows up."""
    kept = variants.VARIANTS["walker"]
    variants.VARIANTS["walker"] = dataclasses.replace(kept, yaw_gear=1.0, roll_gear=1.0, armature=None, damping=None)
    try:
        return [blows_up(cone, seed) for cone in CONES for seed in _SEEDS]
    finally:
        variants.VARIANTS["walker"] = kept


def blows_up(cone: str, seed: int) -> dict[str, Any]:
    env = make("walker3d_run", features="joint", cone=cone)
    try:
        episode(env, "bang-bang", seed)
    except SimulationError as error:
        return {"cone": env.cone, "seed": seed, "step": env.steps, "error": str(error).partition(":")[0]}
    return {"cone": env.cone, "seed": seed, "step": None}


def resets(env: TaskEnv, count: int = 100) -> dict[str, Any]:
    """Sanity of first states."""
    upright_, speed, depth = [], [], []
    for seed in range(count):
        env.reset(seed=seed)
        upright_.append(upright(env))
        speed.append(float(np.abs(env.data.qvel).max()))
        depth.append(-float(env.data.contact.dist.min()) if env.data.ncon else None)
    touching = [d for d in depth if d is not None]
    return {"count": count, "least_upright": min(upright_), "max_speed": max(speed), "with_contacts": len(touching),
            "deepest_contact_m": max(touching, default=0.0)}  # fmt: skip


def gimbal(model: mujoco.MjModel) -> dict[str, float]:
    """For each order of the hinges, the smallest |det| of their axes over all joints' ranges: 0 is gimbal lock."""
    pitches = [j for j in range(1, model.njnt) if not model.joint(j).name.endswith(variants.ADDED)]
    return {"".join(order): min(least_determinant(model, j, order) for j in pitches)
            for order in itertools.permutations("zxy")}  # fmt: skip


def least_determinant(model: mujoco.MjModel, pitch: int, order: tuple[str, ...]) -> float:
    axes = {"x": (1.0, 0.0, 0.0), "y": (0.0, 1.0, 0.0), "z": (0.0, 0.0, 1.0)}
    angles = {"y": grid(model.jnt_range[pitch], 25)}
    for letter in "zx":
        angles[letter] = grid(model.joint(f"{model.joint(pitch).name}_{letter}").range, 5)
    first, second, third = (np.array(axes[letter]) for letter in order)
    least = 1.0
    for a, b in itertools.product(angles[order[0]], angles[order[1]]):
        outer = turn(first, a)
        frame = np.stack([first, outer @ second, outer @ turn(second, b) @ third])
        least = min(least, abs(float(np.linalg.det(frame))))
    return round(least, 4)


def grid(ends: np.ndarray, count: int) -> np.ndarray:
    return np.linspace(ends[0], ends[1], count)


def turn(axis: np.ndarray, angle: float) -> np.ndarray:
    quaternion, matrix = np.empty(4), np.empty(9)
    mujoco.mju_axisAngle2Quat(quaternion, axis, angle)
    mujoco.mju_quat2Mat(matrix, quaternion)
    return matrix.reshape(3, 3)


def episode(env: TaskEnv, policy: str, seed: int) -> dict[str, Any]:
    """One whole episode; a MuJoCo warning or a number that is not finite would raise."""
    rng = np.random.default_rng(seed)
    env.reset(seed=seed)
    speed, depth, excess, total, fell = 0.0, 0.0, 0.0, 0.0, None
    start = upright(env)
    action = np.zeros(env.model.nu)
    for step in range(EPISODE_STEPS):
        action = act(policy, step, action, rng)
        _, reward, *_ = env.step(action)
        total += float(reward)
        speed = max(speed, float(np.abs(env.data.qvel).max()))
        depth = max(depth, -float(env.data.contact.dist.min()) if env.data.ncon else 0.0)
        excess = max(excess, limit_excess(env))
        if fell is None and upright(env) < 0.5:
            fell = step + 1
    assert np.isfinite(env.data.qpos).all()
    return {"seed": seed, "return": total, "max_speed": speed, "max_penetration_m": depth, "limit_excess_deg": excess,
            "upright_at_start": start, "first_step_tilted_over_60_deg": fell}  # fmt: skip


def act(policy: str, step: int, before: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    if policy == "zero" or (policy == "held bang-bang" and step % _HOLD):
        return before
    draw = rng.uniform(-1, 1, before.shape)
    return draw if policy == "uniform" else np.sign(draw)


def upright(env: TaskEnv) -> float:
    """Cosine of the angle between the torso's own z axis and the vertical."""
    return float(env.data.xmat[env.morphology.root.body, 8])


def limit_excess(env: TaskEnv) -> float:
    """How far the worst hinge is beyond its range (degrees)."""
    limited = env.model.jnt_limited.astype(bool)
    angle = env.data.qpos[env.model.jnt_qposadr[limited]]
    low, high = env.model.jnt_range[limited].T
    return float(np.rad2deg(np.maximum(low - angle, angle - high).max().clip(0)))


def compiled(model: mujoco.MjModel) -> dict[str, Any]:
    """Every number of the hinges, motors and floor as the compiled model has it."""
    gear = {int(model.actuator_trnid[a, 0]): float(model.actuator_gear[a, 0]) for a in range(model.nu)}
    hinges = []
    for joint in range(model.njnt):
        dof = int(model.jnt_dofadr[joint])
        free = model.jnt_type[joint] == int(mujoco.mjtJoint.mjJNT_FREE)
        hinges.append({
            "joint": model.joint(joint).name, "body": model.body(int(model.jnt_bodyid[joint])).name,
            "axis": None if free else model.jnt_axis[joint].round(12).tolist(),
            "range_deg": None if free else np.rad2deg(model.jnt_range[joint]).round(6).tolist(),
            "gear": gear.get(joint), "armature": float(model.dof_armature[dof]),
            "damping": np.ravel(model.dof_damping[dof])[0].item(),
            "stiffness": np.ravel(model.jnt_stiffness[joint])[0].item(),
        })  # fmt: skip
    floor = model.geom("floor").id if mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_GEOM, "floor") >= 0 else 0
    return {
        "joints": hinges, "mass_kg": float(model.body_mass.sum()), "timestep_s": float(model.opt.timestep),
        "nq": int(model.nq), "nv": int(model.nv), "nu": int(model.nu),
        "floor": {"pos": model.geom_pos[floor].tolist(), "size": model.geom_size[floor].tolist(),
                  "friction": model.geom_friction[floor].tolist()},
    }  # fmt: skip


if __name__ == "__main__":
    main()
