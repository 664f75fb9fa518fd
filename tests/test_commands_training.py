"""The commands about runs, as a user types them."""

import errno
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from euda import schema
from euda.body.rendering import Renderer
from euda.errors import RenderingError
from euda.runs import machine, run_folder, settings
from euda.tasks.base_env import LimbEnv
from euda.terminal import cli, flags, training_commands

TINY = [
    *("--steps", "60", "--episode-steps", "30", "--checkpoint-every", "20", "--mlp.hidden-size", "8"),
    *("--replay.capacity", "100", "--replay.batch-size", "4", "--replay.seed-steps", "30"),
    *("--base", "paper", "--ddpg.exploration-steps", "20", "--evaluation.every", "30", "--evaluation.episodes", "2"),
    *("--ddpg.actor-every", "1", "--ddpg.target-every", "1"),  # one update to trace instead of two
]


@pytest.fixture(autouse=True)
def leave_this_process_alone(monkeypatch):
    monkeypatch.setattr(machine, "use_one_thread", lambda: None)


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "reacher"
    assert cli.main(["train", "reacher_hard", "--share", "0.25", "--out", str(folder), "--quiet", *TINY]) == 0
    return folder


def refused(capsys, *arguments: str) -> str:
    """The one sentence that a command ends with."""
    assert cli.main([str(argument) for argument in arguments]) == 2
    error = capsys.readouterr().err.strip()
    assert error.startswith("euda: ")
    assert "\n" not in error
    assert "Traceback" not in error
    return error


def test_train_makes_a_run_with_everything_in_it(finished):
    names = {path.name for path in finished.iterdir()}
    assert names >= {"config.json", "provenance.json", "metrics.jsonl", "policy.safetensors", "tensorboard", "replay"}
    assert run_folder.load(finished).config.augmentation.share == 0.25


def test_train_goes_on_and_says_how_it_ended(finished, capsys):
    assert cli.main(["train", "reacher_hard", "--share", "0.25", "--out", str(finished), *TINY]) == 0
    assert "finished 60 steps" in capsys.readouterr().out


def test_dry_run_prints_the_configuration_and_writes_nothing(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert (
        cli.main(
            [
                "train",
                "humanoid_run",
                "--base",
                "paper",
                "--method",
                "sac",
                "--augment",
                "rotate",
                "--features",
                "limb",
                "--dry-run",
            ]
        )
        == 0
    )
    printed = json.loads(capsys.readouterr().out)
    assert (printed["agent"], printed["features"], printed["augmentation"]["name"]) == ("sac", "limb", "rotate")
    assert (printed["steps"], printed["augmentation"]["share"]) == (5_000_000, 0.5)
    assert os.listdir(tmp_path) == []


def test_every_field_of_the_configuration_is_a_documented_flag(capsys):
    assert cli.main(["train", "--help-all"]) == 0
    text = capsys.readouterr().out
    shown = {flag.name: flag for flag in flags.flags_of(training_commands.train) if flag.metavar is None}
    for group, kind in settings.groups().items():
        for name in schema.hints(kind):
            assert {f"{group}.{name}".replace("_", "-"), name.replace("_", "-")} & shown.keys(), (group, name)
    for name, flag in shown.items():
        assert f"--{name}" in text
        assert flag.words, f"--{name} has no help"


def test_help_fits_two_screens_and_explains_the_rest_by_group(capsys):
    assert cli.main(["train", "--help"]) == 0
    brief = capsys.readouterr().out
    assert len(brief.splitlines()) <= 70
    assert all(word in brief for word in ("--method", "segnn-single", "--ddpg.", "stddev-steps", "as --ddpg., and"))
    assert cli.main(["train", "--help", "robot"]) == 0
    robot = capsys.readouterr().out
    assert "--fall-below NUMBER" in robot
    assert "--method" not in robot
    assert cli.main(["train", "--help", "robt"]) == 2
    assert "unknown group of flags 'robt': did you mean 'robot'?" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["reacher_hard", "--share", "1.5"], "between 0 and 1"),
        (["reacher_hard", "--share", "-0.5"], "between 0 and 1"),
        (["reacher_hard", "--share", "half"], "half"),
        (["reacher_hard", "--method", "rotat"], "did you mean 'rotate'"),
        (["reacher_hard", "--methud", "rotate"], "--methud"),
        (["reacher_hrd"], "did you mean 'reacher_hard'"),
        (["reacher_hard", "--steps", "0"], "steps must be a whole number of at least 1"),
        (["reacher_hard", "--steps", "-3"], "steps must be a whole number of at least 1"),
        (["reacher_hard", "--steps", "many"], "many"),
        (["reacher_hard", "--agent", "ppo"], "unknown agent"),
        (["reacher_hard", "--features", "pixels"], "unknown features"),
        (["reacher_hard", "--augment", "flip"], "unknown augmentation"),
        (["reacher_hard", "--core", "4096"], "core 4096 is not available"),
        (["reacher_hard", "--replay.capacity", "0"], "capacity must be"),
        (["reacher_hard", "--evaluation.episodes", "0"], "episodes must be a whole number of at least 1"),
        (["reacher_hard", "--base", "paper", "--ddpg.learning-rate", "-1"], "learning_rate must be"),
        (["reacher_hard", "--method", "canonical", "--features", "joint"], "no frame of its own in these observations"),
        (["reacher_hard", "--action-repeat", "3"], "action_repeat 3 must divide episode_steps, which is 1000"),
        ([], "train what? Name a task (see euda tasks), an MJCF file, or an environment with --env"),
    ],
)
def test_bad_arguments_are_one_sentence_and_write_nothing(tmp_path, monkeypatch, capsys, arguments, words):
    monkeypatch.chdir(tmp_path)
    assert words in refused(capsys, "train", *arguments)
    assert os.listdir(tmp_path) == []


def test_a_run_and_a_checkpoint_of_another_base_are_refused(finished, tmp_path, capsys):
    other = ["train", "reacher_hard", "--base", "swift", "--steps", "60", "--episode-steps", "30"]
    sentence = refused(capsys, *other, "--out", finished)
    assert "another configuration (base: 'paper' there, 'swift' asked for; agent: 'ddpg' there, 'sac'" in sentence
    tiny = [word.replace("--ddpg.", "--sac.").replace("paper", "swift") for word in TINY]
    folder = tmp_path / "run"
    assert cli.main([*other, *tiny, "--out", str(folder), "--quiet"]) == 0
    capsys.readouterr()
    for path in folder.glob("checkpoints/*"):
        path.unlink()
    for path in finished.glob("checkpoints/*"):
        (folder / "checkpoints" / path.name).write_bytes(path.read_bytes())
    before = (folder / "metrics.jsonl").read_bytes()
    sentence = refused(capsys, *other, *tiny, "--steps", "90", "--out", folder)
    assert "the checkpoint of step 60 in" in sentence
    assert "does not fit this run (" in sentence
    assert "of another base, method or robot; start elsewhere with --out" in sentence
    assert (folder / "metrics.jsonl").read_bytes() == before


def test_folders_that_do_not_fit_are_refused(finished, tmp_path, capsys):
    (tmp_path / "letter.txt").write_text("dear")
    assert "neither empty nor a run" in refused(capsys, "train", "reacher_hard", "--out", tmp_path, *TINY)
    assert "seed: 0 there, 1 asked for" in refused(
        capsys, "train", "reacher_hard", "--share", "0.25", "--seed", "1", "--out", finished, *TINY
    )
    assert "task: 'reacher_hard' there" in refused(
        capsys, "train", "cheetah_run", "--share", "0.25", "--out", finished, *TINY
    )
    assert os.listdir(tmp_path) == ["letter.txt"]


def test_a_read_only_disk_is_one_sentence(tmp_path, capsys, monkeypatch):
    def read_only(*args, **kwargs):
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    monkeypatch.setattr(Path, "mkdir", read_only)
    assert "the disk is read-only" in refused(capsys, "train", "reacher_hard", "--out", tmp_path / "x", *TINY)


def test_evaluate_repeats_what_training_recorded(finished, capsys):
    last = [event for event in run_folder.load(finished).events() if event["event"] == "eval"][-1]
    assert cli.main(["evaluate", str(finished), "--episodes", "2", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {
        "step": 60,
        "return_mean": last["return_mean"],
        "returns": last["returns"],
    }
    assert cli.main(["evaluate", str(finished), "--episodes", "3", "--seed", "7"]) == 0
    assert "mean of 3 episodes" in capsys.readouterr().out


def test_commands_on_what_is_not_a_run_are_refused(finished, tmp_path, capsys):
    assert "not a run" in refused(capsys, "evaluate", tmp_path)
    assert "not a run" in refused(capsys, "video", tmp_path, "--out", tmp_path / "x.mp4")
    assert "no folder" in refused(capsys, "runs", tmp_path / "nowhere")
    assert ".mp4 file" in refused(capsys, "video", finished, "--out", tmp_path / "x.gif")
    assert "even sizes" in refused(capsys, "video", finished, "--out", tmp_path / "x.mp4", "--width", "33")
    assert "at least 1" in refused(capsys, "evaluate", finished, "--episodes", "0")


def test_runs_are_listed_with_progress_and_state(finished, capsys):
    (finished.parent / "broken").mkdir(exist_ok=True)
    (finished.parent / "broken" / "config.json").write_text("{}")
    assert cli.main(["runs", str(finished.parent)]) == 0
    text = capsys.readouterr().out
    assert "rotate 0.25" in text
    assert "finished" in text
    assert "unreadable" in text
    assert cli.main(["runs", str(finished), "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)
    assert (row["task"], row["step"], row["steps"], row["state"]) == ("reacher_hard", 60, 60, "finished")


def can_draw() -> bool:
    import mujoco

    try:
        Renderer(mujoco.MjModel.from_xml_string("<mujoco/>"), 16, 16).close()
    except RenderingError:
        return False
    return True


@pytest.mark.skipif(not can_draw(), reason="no OpenGL here")
def test_video_is_an_mp4_file(finished, tmp_path, capsys):
    path = tmp_path / "new folder" / "film.mp4"
    assert cli.main(["video", str(finished), "--out", str(path), "--width", "64", "--height", "48"]) == 0
    assert path.read_bytes()[4:8] == b"ftyp"
    assert os.listdir(path.parent) == ["film.mp4"]
    assert "wrote" in capsys.readouterr().out


@pytest.mark.skipif(not can_draw(), reason="no OpenGL here")
def test_a_film_ends_where_the_simulation_blows_up(finished, tmp_path, capsys, caplog, monkeypatch):
    step, rewards = LimbEnv.step, []

    def fails_at_the_fourth(self, action):
        if len(rewards) == 3:
            self.data.qvel[:] = 1e12
        observation, reward, *ends = step(self, action)
        rewards.append(reward + 1)
        return observation, reward + 1, *ends

    monkeypatch.setattr(LimbEnv, "step", fails_at_the_fourth)
    path = tmp_path / "film.mp4"
    assert cli.main(["video", str(finished), "--out", str(path), "--width", "64", "--height", "48"]) == 0
    assert path.read_bytes()[4:8] == b"ftyp"
    assert len(rewards) == 3
    assert f"return {sum(rewards):.1f}" in capsys.readouterr().out
    assert "in 1 of 1 episodes the simulation blew up" in caplog.text


def test_ctrl_c_saves_and_says_how_to_go_on(tmp_path):
    """The real program, in a process of its own."""
    tiny = ["1000000" if word == "60" else word for word in TINY]
    command = [
        sys.executable,
        "-m",
        "euda.terminal.cli",
        "train",
        "reacher_hard",
        "--out",
        str(tmp_path / "run"),
        *tiny,
    ]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 120
    while not list((tmp_path / "run").glob("checkpoints/checkpoint-*.json")) and time.monotonic() < deadline:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    out, error = process.communicate(timeout=60)
    assert process.returncode == 130
    assert error == ""
    assert "everything is saved; resume with: euda train reacher_hard --out" in out
    newest, _ = run_folder.load(tmp_path / "run").newest_checkpoint()
    assert newest is not None
    assert f"stopped at step {newest.step}" in out


def test_commands_do_not_load_jax_before_it_is_needed():
    script = "import sys, euda.terminal.cli; sys.exit('jax' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0


def test_libraries_that_are_already_loaded_are_found():
    script = "import numpy; from euda.runs.machine import _loaded; print(len(_loaded('openblas')))"
    done = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)
    assert int(done.stdout) >= 1


def test_trackers_are_made_only_when_asked_for():
    assert len(training_commands._sinks(True, None, None)) == 1
    assert len(training_commands._sinks(False, "project", "experiment")) == 2
