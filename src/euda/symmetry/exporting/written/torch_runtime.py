import functools
import math

import torch

DATA: dict = {"elements": [], "joints": [], "actuators": [], "observations": []}  # what the exporter writes

RULES = {
    "base_lin_vel": "polar", "projected_gravity": "polar", "base_ang_vel": "axial",
    "velocity_commands": "twist", "command": "twist",
    "joint_pos": "joints", "joint_vel": "joints", "joint_pos_rel": "joints", "joint_vel_rel": "joints",
    "actions": "actions", "last_action": "actions", "base_pos_z": "same", "euda": "euda",
}  # fmt: skip
"""How observation terms answer to an element, by name. Add your own.

polar: vectors in the root's frame, such as velocities and gravity. axial: angular velocities in the root's frame.
twist: velocity ahead and to the left, yaw rate. joints: one number for each joint. actions: one for each action.
same: numbers that no element changes. euda: euda's observations, entry by entry as in DATA["observations"].
Or a function (element, size) that returns a matrix [size, size].
"""

OBSERVATIONS = {"policy": ["euda"], "critic": ["euda"]}
"""The terms of each group of observations, for environments without an observation manager."""


def compute_symmetric_states(env=None, obs=None, actions=None):
    """Observations and actions, followed by their images under every element: [N, ...] becomes [N (1 + E), ...].

    This is the `data_augmentation_func` of rsl_rl: `obs` is a TensorDict (or dict) of groups, or None.
    """
    check_default_pose(env)
    numbers = range(len(DATA["elements"]))
    if obs is not None:
        obs = _stacked([obs, *(_observations(env, obs, number) for number in numbers)])
    if actions is not None:
        actions = torch.cat([actions, *(mirrored_actions(actions, number, env) for number in numbers)])
    return obs, actions


def mirrored_actions(actions, number=0, env=None):
    """The image of actions [..., m] under an element, by its number."""
    names = _actions(env)
    return actions @ matrix_of("actions", number, len(names), names, actions.dtype, actions.device).T


def mirrored_term(name, values, number=0, env=None):
    """The image of one observation term [..., k] under an element; a flattened history has several times k."""
    if name not in RULES:
        raise KeyError(f"nothing says how the observation term {name!r} answers to a mirror: add it to RULES")
    rule = RULES[name]
    names = _joints(env) if rule == "joints" else _actions(env) if rule == "actions" else ()
    width = _width(rule, names) or values.shape[-1]
    if values.shape[-1] % width:
        raise ValueError(f"the term {name!r} has {values.shape[-1]} numbers, which is no multiple of {width}")
    if callable(rule):
        matrix = torch.as_tensor(rule(DATA["elements"][number], width)).to(values)
    else:
        matrix = matrix_of(rule, number, width, names, values.dtype, values.device)
    return (values.unflatten(-1, (-1, width)) @ matrix.T).flatten(-2)


def check_default_pose(env):
    """Refuse a default pose that no mirror keeps: joint positions relative to it would be mapped wrongly."""
    robot = _robot(env)
    pose = getattr(getattr(robot, "data", None), "default_joint_pos", None)
    if pose is None:
        return
    first = torch.as_tensor(pose).reshape(-1, len(robot.joint_names))[0]
    for number, element in enumerate(DATA["elements"]):
        names = tuple(robot.joint_names)
        image = first @ matrix_of("joints", number, len(names), names, first.dtype, first.device).T
        worst = int((image - first).abs().argmax())
        if abs(float(image[worst] - first[worst])) > 1e-3:
            raise ValueError(
                f"the default pose is not symmetric under {element['name']!r}: joint {names[worst]!r} has"
                f" {float(first[worst]):.4g}, its image would need {float(image[worst]):.4g}"
            )


def _observations(env, obs, number):
    result = obs.clone() if hasattr(obs, "batch_size") else dict(obs)
    for group in obs.keys():
        values = obs[group]
        if hasattr(values, "keys"):  # terms that are not concatenated
            terms = {name: mirrored_term(name, values[name], number, env) for name in values.keys()}
            result[group] = values.clone().update(terms) if hasattr(values, "batch_size") else terms
            continue
        parts, first = [], 0
        for name, size in _terms(env, group, values.shape[-1]):
            parts.append(mirrored_term(name, values[..., first : first + size], number, env))
            first += size
        result[group] = torch.cat(parts, dim=-1)
    return result


def _stacked(parts):
    if hasattr(parts[0], "keys") and not hasattr(parts[0], "batch_size"):
        return {name: _stacked([part[name] for part in parts]) for name in parts[0]}
    return torch.cat(parts)


def _terms(env, group, size):
    """Names and sizes of the terms of a group, in order."""
    manager = getattr(getattr(env, "unwrapped", env), "observation_manager", None)
    if manager is not None:
        sizes = [math.prod(shape) for shape in manager.group_obs_term_dim[group]]
        return list(zip(manager.active_terms[group], sizes, strict=True))
    if group not in OBSERVATIONS:
        raise KeyError(f"nothing says which terms the group {group!r} of observations has: add it to OBSERVATIONS")
    names = OBSERVATIONS[group]
    if len(names) == 1:
        return [(names[0], size)]
    known = {"joints": _joints(env), "actions": _actions(env)}
    found = [(name, _width(RULES[name], known.get(RULES[name], ())) or 1) for name in names]
    if sum(width for _, width in found) != size:
        raise ValueError(f"the terms of group {group!r} are {found}, but there are {size} numbers")
    return found


def _width(rule, names):
    """How many numbers a rule is about; 0 where any number will do."""
    return {"polar": 3, "axial": 3, "twist": 3, "euda": len(DATA["observations"])}.get(rule, len(names))


def _robot(env):
    scene = getattr(getattr(env, "unwrapped", env), "scene", None)
    return None if scene is None else scene["robot"]


def _joints(env):
    """Names of the joints in the order of the environment, which need not be that of the model."""
    robot = _robot(env)
    return tuple(DATA["joints"] if robot is None else robot.joint_names)


def _actions(env):
    """What each number of an action drives, in the order of the environment."""
    manager = getattr(getattr(env, "unwrapped", env), "action_manager", None)
    if manager is None:
        return tuple(DATA["actuators"])
    names = []
    for term in manager.active_terms:
        one = manager.get_term(term)
        attributes = ("target_names", "_target_names", "joint_names", "_joint_names", "_actuator_names")
        names += next((list(getattr(one, name)) for name in attributes if hasattr(one, name)), list(_joints(env)))
    return tuple(names)


@functools.cache
def matrix_of(rule, number, width, names, dtype, device):
    """What an element does to numbers that answer to a rule, a matrix [width, width]."""
    element = DATA["elements"][number]
    robot, handed = torch.tensor(element["robot"], dtype=torch.float64), -1.0 if element["mirror"] else 1.0
    if rule == "polar":
        matrix = robot
    elif rule == "axial":
        matrix = handed * robot
    elif rule == "twist":
        matrix = torch.zeros(3, 3, dtype=torch.float64)
        matrix[:2, :2], matrix[2, 2] = robot[:2, :2], handed * robot[2, 2]
    elif rule == "same":
        matrix = torch.eye(width, dtype=torch.float64)
    elif rule == "euda":
        matrix = _of_terms(element["observations"], width)
    else:
        matrix = _of_names(element, names, "joints" if rule == "joints" else _kind_of(names))
    return matrix.to(dtype=dtype, device=device)


def _kind_of(names):
    """Whether actions are named after actuators or after joints."""
    for kind in ("actuators", "joints"):
        if set(names) <= set(DATA[kind]):
            return kind
    raise KeyError(
        f"actions {names} are neither actuators {DATA['actuators']} nor joints {DATA['joints']} of the model"
    )


def _of_names(element, names, kind):
    matrix = torch.zeros(len(names), len(names), dtype=torch.float64)
    table, place = element[kind], {name: i for i, name in enumerate(names)}
    for name, i in place.items():
        if name not in DATA[kind]:
            raise KeyError(f"the model has no {kind[:-1]} {name!r}, but {', '.join(DATA[kind])}")
        to = DATA[kind].index(name)
        source = DATA[kind][table["index"][to]]
        if source not in place:
            raise KeyError(f"{name!r} comes from {source!r}, which is not among {', '.join(names)}")
        matrix[i, place[source]] = table["sign"][to]
    return matrix


def _of_terms(table, width):
    if table is None:
        raise KeyError("these observations hold a field of which nobody knows what a mirror does to it")
    if any(table["offset"]):
        raise ValueError("these observations have offsets: use terms relative to a symmetric pose")
    matrix = torch.zeros(width, width, dtype=torch.float64)
    for index, weight in zip(table["index"], table["weight"], strict=True):
        matrix[torch.arange(width), torch.tensor(index)] += torch.tensor(weight, dtype=torch.float64)
    return matrix
