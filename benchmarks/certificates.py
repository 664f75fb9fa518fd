"""The certificate of every task with both friction cones."""

from __future__ import annotations

import functools
from typing import Any

import mujoco
import numpy as np
import recording

from euda import TASKS, TaskEnv, certify
from euda.body.comparison import Pair

_STATES, _YAWS = 120, 6


def main() -> None:
    certificates = []
    for task in TASKS:
        for cone in ("default", "elliptic"):
            # The 3D variants are elliptic by default: their pyramidal cone has to be asked for.
            make = functools.partial(_make, task, pyramidal=cone == "default")
            certificate = certify(make, states=_STATES, yaws=_YAWS).to_json()
            certificates.append(certificate)
            reward = certificate["reward"]
            print(
                f"{task:15} {certificate['cone']:9} {certificate['verdict']:11}"
                f" dynamics {certificate['dynamics']['median']:.1e} {certificate['dynamics']['max']:.1e}"
                f" reward {reward['median']:.1e} {reward['max']:.1e}"
            )
            for cause in certificate["causes"]:
                print(f"    {cause}")
    folded = [folded_cheetah(task, pyramidal=p) for task in ("cheetah_run", "cheetah3d_run") for p in (True, False)]
    print(*folded, sep="\n")
    figures = {"machine": recording.machine(), "certificates": certificates, "cheetah_touching_itself": folded}
    recording.write("certificates", figures)


def folded_cheetah(task: str, *, pyramidal: bool, count: int = 40, yaws: int = 6) -> dict[str, Any]:
    """Dynamics of states that a certificate rarely meets: in the air, joints drawn at random, limbs touching."""
    make = functools.partial(_make, task, pyramidal=pyramidal)
    pair, rng = Pair(make(), make()), np.random.default_rng(0)
    env = pair.env
    limited = env.model.jnt_limited.astype(bool)
    low, high = env.model.jnt_range[limited].T
    states = []
    while len(states) < count:
        env.reset(seed=int(rng.integers(2**31)))
        env.data.qpos[2 if env.morphology.base == "free" else 1] = 2.0
        env.data.qpos[env.model.jnt_qposadr[limited]] = rng.uniform(low, high)
        env.data.qvel[:] = rng.standard_normal(env.model.nv)
        mujoco.mj_forward(env.model, env.data)
        if env.data.ncon:
            states.append(env.get_state())
    errors = pair.compare(
        states, rng.uniform(-1, 1, (count, env.model.nu)), rng.uniform(0, 2 * np.pi, (count, yaws))
    ).dynamics
    return {"task": task, "cone": "pyramidal" if pyramidal else "elliptic", "states": count, "yaws": yaws,
            "median": float(np.median(errors)), "max": float(errors.max())}  # fmt: skip


def _make(task: str, *, pyramidal: bool) -> TaskEnv:
    env = TaskEnv(task, cone="default" if pyramidal else "elliptic")
    expected = "pyramidal" if pyramidal else "elliptic"
    assert env.cone == expected, f"{task} has a cone that is {env.cone}, not {expected}"
    return env


if __name__ == "__main__":
    main()
