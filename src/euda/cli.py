"""The command line: one function per command, parsed by tyro from its signature.

Every error a user can cause ends as one sentence on standard error and exit code 2.
"""

from __future__ import annotations

import dataclasses
import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any

import tyro

from euda.errors import EudaError

Positional = tyro.conf.Positional


def tasks(json_: Annotated[bool, tyro.conf.arg(name="json")] = False) -> int:
    """List the tasks: limbs, degrees of freedom, sizes of actions and features, episode length, cone.

    Args:
        json_: Print a JSON list instead of a table.
    """
    from euda.body import tasks as table

    rows = [table.summary(name) for name in table.TASKS]
    if json_:
        print(json.dumps([dataclasses.asdict(row) for row in rows], indent=2))
        return 0
    header = ("task", "n", "d1", "1-DoF", "2-DoF", "3-DoF", "actions", "limb", "limb-paper", "joint", "steps", "s/step", "cone")
    lines = [
        (r.name, r.n, r.d1, r.n1, r.n2, r.n3, r.actions, *r.features.values(), r.episode_steps, f"{r.control_timestep:g}", r.cone)
        for r in rows
    ]
    _table(header, lines)
    return 0


def layout(task: Positional[str], features: str = "limb", json_: Annotated[bool, tyro.conf.arg(name="json")] = False) -> int:
    """Print what each entry of a task's observation is and how it turns.

    Args:
        task: Name of a task (see `euda tasks`).
        features: limb, limb-paper or joint.
        json_: Print JSON instead of a table.
    """
    from euda.body.environment import make

    fields = make(task, features).layout
    print(json.dumps(fields.to_json(), indent=2) if json_ else fields)
    return 0


COMMANDS: dict[str, Callable[..., int]] = {
    "tasks": tasks,
    "layout": layout,
}


def _table(header: Sequence[Any], rows: Sequence[Sequence[Any]]) -> None:
    """Plain aligned columns: first left, the rest right, readable in a terminal and in a file."""
    cells = [[str(cell) for cell in row] for row in (header, *rows)]
    widths = [max(len(row[i]) for row in cells) for i in range(len(header))]
    for row in cells:
        print("  ".join([row[0].ljust(widths[0]), *(cell.rjust(w) for cell, w in zip(row[1:], widths[1:], strict=True))]).rstrip())


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns its exit code."""
    try:
        return tyro.extras.subcommand_cli_from_dict(COMMANDS, prog="euda", description=__doc__, args=arguments)
    except EudaError as error:
        print(f"euda: {error}", file=sys.stderr)
        return 2
    except BrokenPipeError:
        return 0
    except KeyboardInterrupt:
        print("euda: interrupted", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())
