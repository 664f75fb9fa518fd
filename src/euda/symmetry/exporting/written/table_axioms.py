import itertools
import json
import pathlib

TABLES = "symmetry.json"  # what the exporter writes
DATA = json.loads(pathlib.Path(__file__).with_name(TABLES).read_text(encoding="utf-8"))
PARTS = ("joints", "actuators")


def of(element):
    """Index and sign of joints and actuators; None stands for the identity."""
    if element is None:
        return {part: (list(range(len(DATA[part]))), [1] * len(DATA[part])) for part in PARTS}
    return {part: (element[part]["index"], element[part]["sign"]) for part in PARTS}


def after(second, first):
    """`first`, then `second`: y[i] = sign[i] x[index[i]], twice."""
    result = {}
    for part in PARTS:
        (i, s), (j, t) = second[part], first[part]
        result[part] = ([j[k] for k in i], [sign * t[k] for sign, k in zip(s, i, strict=True)])
    return result


GROUP = [of(None), *map(of, DATA["elements"])]


def test_every_table_is_a_permutation_with_signs():
    for element in GROUP:
        for part, (index, sign) in element.items():
            assert sorted(index) == list(range(len(DATA[part])))
            assert set(sign) <= {-1, 1}


def test_the_elements_are_a_group():
    for first, second in itertools.product(GROUP, GROUP):
        assert after(second, first) in GROUP
    for element in GROUP:
        assert any(after(element, other) == GROUP[0] for other in GROUP)


def test_the_map_of_the_root_keeps_lengths():
    for element in DATA["elements"]:
        rows = element["robot"]
        for a, b in itertools.product(range(3), range(3)):
            product = sum(x * y for x, y in zip(rows[a], rows[b], strict=True))
            assert abs(product - (a == b)) < 1e-6
