"""Tables → the robot file of MorphoSymm: permutations and reflections of the joints for the generators of the group.

Its joints are those of the robot's URDF, in that order; the file here has the order of the MuJoCo model, with names.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from euda.errors import EudaError

Tables = dict[str, Any]
Map = tuple[tuple[int, ...], tuple[int, ...], tuple[float, ...]]


def generators(tables: Tables) -> tuple[str, list[int]]:
    """The name of the group as MorphoSymm calls it, and the places of its generators among the elements.

    Cyclic groups (C2, C3, …) have one generator, the Klein four-group K4 two, dihedral groups D3, D4, … a rotation of
    the highest order and a mirror.
    """
    maps = [_map(element) for element in tables["elements"]]
    orders = [_order(one) for one in maps]
    size = len(maps) + 1
    if size in orders:
        return f"C{size}", [orders.index(size)]
    mirrors = [i for i, element in enumerate(tables["elements"]) if element["mirror"]]
    if size == 4:
        first = mirrors[0] if mirrors else 0
        return "K4", [first, next(i for i in range(len(maps)) if i != first)]
    turns = [i for i, element in enumerate(tables["elements"]) if not element["mirror"]]
    longest = max(turns, key=lambda i: orders[i], default=None)
    if longest is not None and mirrors and 2 * orders[longest] == size:
        return f"D{orders[longest]}", [longest, mirrors[0]]
    raise EudaError(
        f"the {size} elements are neither a cyclic nor a dihedral group, which is what MorphoSymm has: choose some with"
        " --elements"
    )


def write(tables: Tables, usage: str, comments: list[str]) -> str:
    """The text of the file."""
    label, places = generators(tables)
    chosen = [tables["elements"][place] for place in places]
    lines = [f"# {line}".rstrip() for line in (*comments, "", *usage.splitlines())]
    lines += [f"# joints: {', '.join(tables['joints'])}"]
    lines += [f"# generator {number}: {element['name']}" for number, element in enumerate(chosen)]
    lines += ["defaults:", "  - base_robot", "", f"name: {tables['robot']}", f"group_label: {label}"]
    for part in ("Q_js", "TqQ_js"):
        lines.append(f"permutation_{part}: {json.dumps([element['joints']['index'] for element in chosen])}")
        lines.append(f"reflection_{part}: {json.dumps([element['joints']['sign'] for element in chosen])}")
    return "\n".join(lines) + "\n"


def _map(element: dict[str, Any]) -> Map:
    return (tuple(element["joints"]["index"]), tuple(element["joints"]["sign"]),
            tuple(np.round(element["robot"], 6).ravel().tolist()))  # fmt: skip


def _order(one: Map) -> int:
    """After how many times everything is back: joints, and the map of the root."""
    index, sign, _ = one
    robot = np.reshape(one[2], (3, 3))
    i, s, power, order = index, sign, robot, 1
    while not (i == tuple(range(len(i))) and set(s) <= {1} and np.allclose(power, np.eye(3), atol=1e-3)):
        s = tuple(sign[k] * s[index[k]] for k in range(len(i)))
        i = tuple(i[index[k]] for k in range(len(i)))
        power, order = robot @ power, order + 1
        if order > 120:
            raise EudaError("an element of this group is not of finite order: it cannot be exported")
    return order
