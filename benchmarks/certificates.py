"""The certificate of every task with both friction cones."""

from __future__ import annotations

import recording

from euda import TASKS, TaskEnv, certify

_STATES, _YAWS = 120, 6


def main() -> None:
    certificates = []
    for task in TASKS:
        for cone in ("default", "elliptic"):
            # The 3D variants are elliptic by default: their pyramidal cone has to be asked for.
            env = _make(task, pyramidal=cone == "default")
            certificate = certify(env, states=_STATES, yaws=_YAWS).to_json()
            certificates.append(certificate)
            reward = certificate["reward"]
            print(
                f"{task:15} {certificate['cone']:9} {certificate['summary']}"
                f" dynamics {certificate['dynamics']['median']:.1e} {certificate['dynamics']['max']:.1e}"
                f" reward {reward['median']:.1e} {reward['max']:.1e}"
            )
            for cause in certificate["causes"]:
                print(f"    {cause}")
    recording.write("certificates", {"machine": recording.machine(), "certificates": certificates})


def _make(task: str, *, pyramidal: bool) -> TaskEnv:
    env = TaskEnv(task, cone="default" if pyramidal else "elliptic")
    expected = "pyramidal" if pyramidal else "elliptic"
    assert env.cone == expected, f"{task} has a cone that is {env.cone}, not {expected}"
    return env


if __name__ == "__main__":
    main()
