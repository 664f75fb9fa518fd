"""What the error of a mirrored step says about a load on the quadruped, by the states in which it is measured.

The median depends on the states: on the path of rollouts it is the load's share of the mass, and a quarter less where
the robot is posed and moves at random. Whether the norm is taken with the masses at the beginning or at the end of
the step changes almost nothing.
"""

from __future__ import annotations

import mujoco
import numpy as np
import recording

from euda import make, symmetries
from euda.symmetry.judging.states import visited_states
from euda.symmetry.judging.transformation import ElementImage, Posture
from euda.symmetry.judging.twin import Twin
from euda.tasks.base_env import LimbEnv, State

_SHARES, _STATES, _DRAWS = (0.01, 0.03, 0.1, 0.3), 300, 2000
_STEPS, _EVERY, _EPISODE = 2000, 20, 200


def main() -> None:
    rows = []
    for share in _SHARES:
        env = make("quadruped_run", payload=share)
        mirror = ElementImage(symmetries(make("quadruped_run").model).elements[1], turn_direction=False)
        rng = np.random.default_rng(0)
        visited = visited_states(env, _STATES, rng)
        rolled = 2 * _STATES // 3
        kinds = {"held": visited[:rolled], "posed": visited[rolled:], "fresh": _with_fresh_actions(env, rng)}
        for kind, states in kinds.items():
            errors = errors_of(Twin(env), states, mirror, rng)
            ends, starts = errors.T
            medians = np.median(rng.choice(ends, (_DRAWS, 36)), axis=1)
            row = {
                "share": share, "states": kind, "count": len(states), "median": round(float(np.median(ends)), 4),
                "median_masses_at_start": round(float(np.median(starts)), 4),
                "medians_of_36": [round(float(q), 4) for q in np.quantile(medians, (0.05, 0.95))],
            }  # fmt: skip
            rows.append(row)
            print(row)
    recording.write("payload", {"machine": recording.machine(), "cone": make("quadruped_run").cone, "rows": rows})


def _with_fresh_actions(env: LimbEnv, rng: np.random.Generator) -> list[State]:
    """Every so many steps of episodes with a new random action at every step; `visited_states` holds them for four."""
    states = []
    for step in range(_STEPS):
        if step % _EPISODE == 0:
            env.reset(seed=step)
        env.step(rng.uniform(-1, 1, env.model.nu))
        if step % _EVERY == _EVERY - 1:
            states.append(env.get_state())
    return states


def errors_of(twin: Twin, states: list[State], mirror: ElementImage, rng: np.random.Generator) -> np.ndarray:
    """[states, 2] error of a mirrored step over its change, with the masses at the step's end and at its start."""
    env, errors = twin.env, []
    for state in states:
        action = rng.uniform(-1, 1, env.model.nu)
        twin.place(state)
        before, first = env.data.qvel.copy(), _masses(env)
        twin.step(action)
        after, change = Posture.of(env.data), env.data.qvel - before
        of_change = [_norm(change, masses) for masses in (_masses(env), first)]
        twin.transform(state, mirror)
        first = _masses(env)
        twin.step(mirror.action(action))
        now, last = Posture.of(env.data), _masses(env)
        wrong = now.qvel - mirror.posture(env.robot, after, now).qvel
        of_error = [_norm(wrong, masses) for masses in (last, first)]
        errors.append(np.divide(of_error, of_change))
    return np.array(errors)


def _masses(env: LimbEnv) -> np.ndarray:
    """The matrix of the kinetic energy [nv, nv] in the present posture."""
    matrix = np.zeros((env.model.nv, env.model.nv))
    mujoco.mj_fullM(env.model, env.data, matrix)
    return matrix


def _norm(velocity: np.ndarray, masses: np.ndarray) -> float:
    return float(np.sqrt(velocity @ masses @ velocity))


if __name__ == "__main__":
    main()
