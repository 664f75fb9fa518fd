import importlib.util
import itertools
import pathlib

import torch

MODULE = "symmetry.py"  # what the exporter writes
spec = importlib.util.spec_from_file_location("exported_symmetry", pathlib.Path(__file__).with_name(MODULE))
symmetry = importlib.util.module_from_spec(spec)
spec.loader.exec_module(symmetry)
COUNT = len(symmetry.DATA["elements"])
TERMS = ["polar", "axial", "twist", "joints", "actions", "euda"]


def maps(number):
    """What an element does to everything, as matrices; None stands for the identity."""
    data, found = symmetry.DATA, []
    for rule in TERMS:
        names = tuple(data["joints"] if rule == "joints" else data["actuators"] if rule == "actions" else ())
        width = {"joints": len(names), "actions": len(names), "euda": len(data["observations"])}.get(rule, 3)
        if rule == "euda" and data["elements"][0]["observations"] is None:
            continue
        if number is None:
            found.append(torch.eye(width, dtype=torch.float64))
        else:
            found.append(symmetry.matrix_of(rule, number, width, names, torch.float64, torch.device("cpu")))
    return found


GROUP = [maps(number) for number in (None, *range(COUNT))]


def place(element):
    """Where a list of matrices is in the group, or None."""
    for number, known in enumerate(GROUP):
        if all(torch.allclose(a, b, atol=1e-6) for a, b in zip(element, known, strict=True)):
            return number
    return None


def test_every_map_keeps_lengths():
    for element in GROUP:
        for matrix in element:
            assert torch.allclose(matrix @ matrix.T, torch.eye(len(matrix), dtype=torch.float64), atol=1e-6)


def test_the_elements_are_a_group():
    for first, second in itertools.product(GROUP, GROUP):
        assert place([b @ a for a, b in zip(first, second, strict=True)]) is not None
    for element in GROUP:
        assert place([matrix.T for matrix in element]) is not None  # what undoes it


def test_the_first_rows_are_the_originals_and_the_others_their_images():
    data, actions = symmetry.DATA, torch.rand(5, len(symmetry.DATA["actuators"]))
    has_observations = data["elements"][0]["observations"] is not None
    obs = {"policy": torch.rand(5, len(data["observations"]))} if has_observations else None
    both, images = symmetry.compute_symmetric_states(None, obs, actions)
    assert torch.equal(images[:5], actions)
    assert len(images) == 5 * (1 + COUNT)
    for number in range(COUNT):
        image = images[5 * (number + 1) : 5 * (number + 2)]
        assert torch.allclose(image, symmetry.mirrored_actions(actions, number))
    if obs is not None:
        assert torch.equal(both["policy"][:5], obs["policy"])
        assert len(both["policy"]) == 5 * (1 + COUNT)
