"""Rank of the observation's Jacobian for every task and feature set: how much of the state it shows."""

from __future__ import annotations

import recording

from euda import TASKS, make, sufficiency
from euda.body.features import FEATURES

_STATES = 10


def main() -> None:
    rows = []
    for task in TASKS:
        for features in FEATURES:
            env = make(task, features)
            found = sufficiency(env, states=_STATES, seed=0)
            row = {
                "task": task, "features": features, "dim": env.layout.dim, "rank": found.rank,
                "expected": int(found.expected), "smallest": found.smallest, "sufficient": bool(found.is_sufficient),
            }  # fmt: skip
            rows.append(row)
            short = found.expected - found.rank
            print(
                f"{task:15} {features:10} {found.rank:3} of {found.expected:3}"
                f" smallest {found.smallest:.1e} {'' if found.is_sufficient else f'{short} short'}"
            )
    recording.write("sufficiency", {"machine": recording.machine(), "states": _STATES, "seed": 0, "rows": rows})


if __name__ == "__main__":
    main()
