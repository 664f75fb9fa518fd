"""The demonstration: two runs that differ in nothing but symmetry, what is said of them, and that both go on."""

import dataclasses
import os
import signal
import subprocess
import sys
import time

import pytest

from euda.body.rendering import Renderer
from euda.errors import RenderingError
from euda.runs import run_folder
from euda.studies.study_folder import Study
from euda.terminal import cli, demo, demo_display

STEPS = 600
TINY = [
    *("--steps", str(STEPS), "--episode-steps", "30", "--checkpoint-every", "30", "--mlp.hidden-size", "8"),
    *("--replay.capacity", "1000", "--replay.batch-size", "4", "--replay.seed-steps", "30"),
    *("--evaluation.every", "300", "--evaluation.episodes", "2"),
    *("--sac.actor-every", "1", "--sac.target-every", "1"),  # one update to trace instead of two
]


def can_draw():
    import mujoco

    try:
        Renderer(mujoco.MjModel.from_xml_string("<mujoco/>"), 16, 16).close()
    except RenderingError:
        return False
    return True


def test_the_two_runs_differ_in_symmetry_alone():
    without, with_ = (planned.config for planned in demo.plan_of(seed=3).runs)
    assert (without.uses_symmetry, with_.uses_symmetry) == (False, True)
    assert dataclasses.replace(with_, frame=without.frame) == without
    assert (with_.seed, with_.method, without.method) == (3, "canonical", "limb")
    assert with_.steps % with_.evaluation.every == 0


@pytest.mark.parametrize(
    ("without", "with_", "words"),
    [
        ([0, 390], [0, 950], "With symmetry the return was 900 or more after 10 steps; without it never was in 10"),
        ([0, 950], [0, 390], "here symmetry did not help"),
        ([0, 390], [0, 300], "Neither run came to 900 in 10 steps: 300 with symmetry, 390 without."),
        ([0, 0, 950], [0, 930, 20], "after 10 steps, without it after 20: sooner (20 and 950 at the end)"),
        ([0, 950, 950], [0, 0, 930], "after 20 steps, without it after 10: later"),
        ([0, 950], [0, 930], "no difference"),
    ],
)
def test_it_says_what_happened_whatever_happened(without, with_, words):
    said = demo.told(*([(10 * i, value) for i, value in enumerate(run)] for run in (without, with_)))
    assert words in said
    assert said.endswith("This is one seed; results/README.md has many.")


def test_curves_in_one_line():
    assert demo_display.sparkline([0, 250, 500, 1000, 2000, -5], 1000) == "▁▂▄██▁"


@pytest.mark.slow
@pytest.mark.skipif(not can_draw(), reason="no OpenGL here")
def test_what_ctrl_c_stopped_goes_on_and_is_drawn_filmed_and_told(tmp_path, capsys, monkeypatch):
    """The real program in a process of its own; then the same command here, to the end."""
    monkeypatch.setattr(demo, "FILMED", {"steps": 3, "width": 64, "height": 48})
    words = ["demo", "--out", str(tmp_path), *TINY]
    command = [sys.executable, "-m", "euda.terminal.cli", *words, "--workers", "1"]  # the other run has yet to begin
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 240
    while not list(tmp_path.glob("*/*/checkpoints/checkpoint-*.json")) and time.monotonic() < deadline:
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    out, error = process.communicate(timeout=120)
    assert (process.returncode, error) == (130, "")
    assert "stopped, everything is saved; the same command resumes" in out
    assert any(0 < state.step < STEPS for state in states(tmp_path))
    assert not any(state.is_running for state in states(tmp_path))
    assert cli.main(words) == 0
    said = capsys.readouterr().out
    assert "without symmetry  step    300" in said
    assert f"Neither run came to 900 in {STEPS} steps" in said
    assert "euda train quadruped_run" in said
    for name in ("learning.png", "without-symmetry.mp4", "with-symmetry.mp4"):
        assert (tmp_path / name).stat().st_size > 500
    assert [state.is_finished for state in states(tmp_path)] == [True, True]


def states(folder):
    return [run_folder.status(run_folder.load(found)) for found in run_folder.find(folder)]


def test_bad_input_is_one_sentence_and_writes_nothing(tmp_path, capsys):
    cores = len(os.sched_getaffinity(0))
    for words, sentence in (
        (["--workers", "99"], f"workers must be from 1 to {cores}"),
        (["--base", "swft"], "unknown base 'swft'"),
        (["--steps", "0"], "steps must be a whole number of at least 1"),
    ):
        out = tmp_path / words[0]
        assert cli.main(["demo", "--out", str(out), *words]) == 2
        error = capsys.readouterr().err
        assert sentence in error
        assert error.count("\n") == 1
        assert not list(out.glob("*/*"))
    assert Study(demo.plan_of(), tmp_path).plan.name == "demo"
