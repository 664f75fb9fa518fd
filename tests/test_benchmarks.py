"""What benchmarks make of their raw figures: when a return is reached, what goes on, what is missing."""

import importlib
import json
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"


@pytest.fixture
def time_to_return(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    time_to_return = importlib.import_module("time_to_return")

    yield time_to_return
    for name in ("time_to_return", "learners", "processes", "recording"):
        sys.modules.pop(name, None)


def judged(*means):
    return [
        {"step": 100 * (i + 1), "cpu": 60.0 * (i + 1), "returns": [mean - 1, mean + 1]} for i, mean in enumerate(means)
    ]


def test_a_return_is_reached_at_the_first_mean_that_is_so_high(time_to_return):
    assert time_to_return.reached(judged(10, 500, 20, 900), 500) == (200, 2.0)
    assert time_to_return.reached(judged(10, 499), 500) is None
    found = [
        {"program": "SBX SAC", "task": "reacher_hard", "seed": seed, "judged": judged(*means)}
        for seed, means in enumerate([(0, 600), (0, 0, 0, 950), (0, 0)])
    ]
    assert list(time_to_return.rows(found)) == [
        ("reacher_hard", "500", "SBX SAC", "2 of 3", "300", "3.0"),
        ("reacher_hard", "900", "SBX SAC", "1 of 3", "400", "4.0"),
    ]
    assert time_to_return.table(found).count("\n") == 3


def test_what_is_there_is_not_run_again_and_what_is_not_installed_is_named(
    time_to_return, tmp_path, monkeypatch, capsys
):
    asked = []

    class Fake:
        def __init__(self, script, arguments, python):
            if arguments[0] == "SBX TD3":
                raise RuntimeError("No module named 'sbx'")
            asked.append(arguments)
            self.step = 0

        def ask(self, command):
            self.step += int(command.split()[1])
            return {"step": self.step, "cpu": 30.0 * self.step / 2500, "wall": 1.0, "returns": [self.step / 10]}

        def close(self):
            pass

    monkeypatch.setattr(time_to_return, "Worker", Fake)
    out = tmp_path / "raw.jsonl"
    words = ["--tasks", "reacher_hard", "--seeds", "0", "--out", str(out), "--peers", sys.executable]
    for programs in (["euda limb"], ["euda limb", "euda joint", "SBX TD3"]):
        monkeypatch.setattr(sys, "argv", ["time_to_return.py", *words, "--programs", *programs])
        time_to_return.main()
    assert [arguments[0] for arguments in asked] == ["euda limb", "euda joint"]
    assert "missing: SBX TD3: No module named 'sbx'" in capsys.readouterr().out
    lines = [json.loads(line) for line in out.read_text().splitlines()]
    assert [one["judged"][-1]["step"] for one in lines] == [10_000, 10_000]  # where the mean is beyond 900
    monkeypatch.setattr(sys, "argv", ["x", *words, "--programs", "SBX SAC", "--peers", str(tmp_path / "nowhere")])
    time_to_return.main()
    assert "missing: SBX SAC: not installed: make bench-peers" in capsys.readouterr().out
