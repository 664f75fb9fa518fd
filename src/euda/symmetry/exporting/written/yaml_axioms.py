import json
import pathlib

TABLES = "symmetry.yaml"  # what the exporter writes
LINES = pathlib.Path(__file__).with_name(TABLES).read_text(encoding="utf-8").splitlines()
DATA = {key: json.loads(value) for key, _, value in (line.partition(": ") for line in LINES) if "_Q_js" in key}
MAPS = list(zip(DATA["permutation_Q_js"], DATA["reflection_Q_js"], strict=True))


def after(second, first):
    """`first`, then `second`: y[i] = sign[i] x[index[i]], twice."""
    (i, s), (j, t) = second, first
    return [j[k] for k in i], [sign * t[k] for sign, k in zip(s, i, strict=True)]


def test_every_generator_is_a_permutation_with_signs():
    for index, sign in MAPS:
        assert sorted(index) == list(range(len(index)))
        assert set(sign) <= {-1, 1}


def test_every_generator_has_finite_order():
    for one in MAPS:
        power, identity = one, (list(range(len(one[0]))), [1] * len(one[0]))
        for _ in range(24):
            if tuple(power) == identity:
                break
            power = after(one, power)
        assert tuple(power) == identity
