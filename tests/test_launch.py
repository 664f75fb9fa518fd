"""A study on this machine: workers killed, launches stopped, failures tried again, two launches at once."""

import dataclasses
import io
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time

import pytest
from rich.console import Console
from study_files import TINY, content, write

from euda.errors import EudaError
from euda.runs import run_folder
from euda.runs.cores import Cores
from euda.runs.signals import Stop
from euda.studies import plan, status, study_folder
from euda.studies.engines.local import LocalEngine, explain
from euda.studies.launcher import Ending, Launch
from euda.studies.status import Reader
from euda.studies.study_folder import Study
from euda.terminal import cli, study_display

TWO = TINY.replace("seeds = [0, 1]", "seeds = [0]")
"""A run of each method: a worker takes some seconds."""


class Quiet:
    """Keeps what is said."""

    def __init__(self):
        self.said, self.rows = [], []

    def update(self, rows):
        self.rows = rows

    def say(self, sentence):
        self.said.append(sentence)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    """A study that nobody disturbed."""
    folder = tmp_path_factory.mktemp("undisturbed")
    study = Study(plan.load(write(folder, TWO)), folder / "runs")
    view = Quiet()
    with study_folder.locked(study):
        result = Launch(study, LocalEngine(), view).go(Stop())
    assert (result.finished, result.failures, result.signal) == (2, {}, None), view.said
    assert {row.state for row in view.rows} == {"finished"}
    return study


def contents(study):
    return {planned.folder_name: content(study.folder_of(planned)) for planned in study.plan.runs}


class Killing(LocalEngine):
    """Kills every run's first worker once it has a checkpoint."""

    def __init__(self):
        super().__init__()
        self.killed = set()

    def start(self, planned, folder, log):
        job = super().start(planned, folder, log)
        if planned not in self.killed:
            self.killed.add(planned)
            threading.Thread(target=self.kill, args=(job, folder)).start()
        return job

    def kill(self, job, folder):
        while job.process.poll() is None and not list(folder.glob("checkpoints/*.json")):
            time.sleep(0.002)
        os.kill(job.process.pid, signal.SIGKILL)


def test_a_worker_killed_mid_run_leaves_the_same_bytes(undisturbed, tmp_path):
    turned = plan.load(write(tmp_path, TWO.replace("[methods.limb]\n", "")))
    study, engine, view = Study(turned, tmp_path / "runs"), Killing(), Quiet()
    with study_folder.locked(study):
        result = Launch(study, engine, view).go(Stop())
    assert result.finished == 1, view.said
    assert any("killed by SIGKILL" in sentence for sentence in view.said)
    ((name, found),) = contents(study).items()
    assert found == contents(undisturbed)[name]


def test_ctrl_c_stops_cleanly_and_the_same_command_goes_on(undisturbed, tmp_path, capsys):
    runs = tmp_path / "runs"
    command = [
        sys.executable, "-m", "euda.terminal.cli", "study", "run", str(write(tmp_path, TWO)), "--runs", str(runs)
    ]  # fmt: skip
    # one worker: when the first run has a checkpoint, the process of the other has yet to begin
    slow = [*command, "--workers", "1"]
    process = subprocess.Popen(slow, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def wait_for(pattern):
        while process.poll() is None and not list(runs.glob(pattern)):
            time.sleep(0.01)

    wait_for(".studies/tiny/launch.json")
    assert cli.main(command[3:]) == 2
    assert f"is being run already, by process {process.pid}" in capsys.readouterr().err
    wait_for("*/*/checkpoints/*.json")
    process.send_signal(signal.SIGINT)
    out, errors = process.communicate(timeout=60)
    study = Study(undisturbed.plan, runs)
    assert process.returncode == 130, (out, errors)
    assert "the same command resumes" in out
    assert not any(run_folder.is_locked(study.folder_of(planned)) for planned in study.plan.runs)
    assert not all(status.is_complete(planned, study.folder_of(planned)) for planned in study.plan.runs)
    assert cli.main(command[3:]) == 0
    assert contents(study) == contents(undisturbed)


class Failing:
    """An engine whose runs fail at once, some of them always."""

    slots = 2

    def __init__(self, always):
        self.always, self.started = always, []

    def start(self, planned, folder, log):
        self.started.append(planned.name)
        return Failed()

    def close(self):
        self.is_closed = True


class Failed:
    """A job that failed."""

    def poll(self):
        return Ending(False, "the moon is full")

    def stop(self):
        raise AssertionError

    kill = stop


def test_failures_are_tried_twice_again_and_then_named_while_the_rest_goes_on(tmp_path, capsys):
    study, engine, view = Study(plan.load(write(tmp_path)), tmp_path / "runs"), Failing(True), Quiet()
    with study_folder.locked(study):
        result = Launch(study, engine, view).go(Stop())
    assert {engine.started.count(planned.name) for planned in study.plan.runs} == {3}
    assert set(result.failures.values()) == {"the moon is full"}
    assert engine.is_closed
    assert study.failures() == result.failures
    arguments = [str(tmp_path / "tiny.toml"), "--runs", str(tmp_path / "runs")]
    assert cli.main(["study", "status", *arguments]) == 0
    printed = capsys.readouterr().out
    assert "4 failed" in printed
    assert "the moon is full" in printed


def test_a_run_that_cannot_work_is_named_with_its_reason(undisturbed, tmp_path):
    """A real worker in a folder that is somebody else's, beside a run that is complete."""
    study, view = Study(undisturbed.plan, tmp_path), Quiet()
    shutil.copytree(undisturbed.folder_of(study.plan.runs[1]), study.folder_of(study.plan.runs[1]))
    folder = study.folder_of(study.plan.runs[0])
    folder.mkdir(parents=True)
    (folder / "letter.txt").write_text("dear")
    with study_folder.locked(study):
        result = Launch(study, LocalEngine(), view).go(Stop())
    assert result.finished == 1
    ((identity, reason),) = result.failures.items()
    assert identity == study.plan.runs[0].config.identity
    assert "neither empty nor a run" in reason
    assert (folder / "letter.txt").read_text() == "dear"


def test_finished_runs_are_skipped_by_this_and_other_studies(undisturbed, tmp_path):
    text = TWO.replace("[methods.limb]", "").replace("steps = 120", "steps = 90")
    other = Study(plan.load(write(tmp_path, text, "other")), undisturbed.runs)
    view = Quiet()
    with study_folder.locked(other):
        result = Launch(other, Failing(True), view).go(Stop())
    assert (result.finished, result.failures) == (1, {})  # longer than asked for is enough
    assert view.said == ["1 of 1 runs are complete already"]


def test_a_changed_study_says_which_runs_no_longer_belong(undisturbed, tmp_path, capsys):
    path = write(tmp_path, TWO.replace("[methods.limb]\n", ""))
    arguments = ["study", "run", str(path), "--runs", str(undisturbed.runs)]
    assert cli.main(arguments) == 2
    error = capsys.readouterr().err
    assert error.count("reacher_hard/limb-seed") == 1
    assert "--changed" in error
    assert cli.main(["study", "status", *arguments[2:]]) == 0
    assert "no longer in the study file: reacher_hard/limb-seed0" in capsys.readouterr().out
    assert len(undisturbed.strangers()) == 0
    assert all(undisturbed.folder_of(planned).is_dir() for planned in undisturbed.plan.runs)


def test_a_lock_is_held_once_and_a_stale_one_is_recognised(tmp_path):
    study = Study(plan.load(write(tmp_path)), tmp_path / "runs")
    with study_folder.locked(study) as sentence:
        assert sentence is None
        assert study_folder.is_running(study)
        with pytest.raises(EudaError, match=f"by process {os.getpid()} since"), study_folder.locked(study):
            pass
    assert not study_folder.is_running(study)
    (study.folder / "launch.json").write_text(json.dumps({"process": 99, "since": "long ago"}))
    with study_folder.locked(study) as sentence:
        assert sentence == "the previous launch ended abruptly (by process 99 since long ago); its runs are resumed"


def test_a_worker_ends_with_the_launch_that_started_it(undisturbed, tmp_path):
    """Even one that was killed."""
    text = TINY.replace("steps = 120", "steps = 1000000")
    path, runs = write(tmp_path, text), tmp_path / "runs"
    command = [
        sys.executable,
        "-m",
        "euda.terminal.cli",
        "study",
        "run",
        str(path),
        "--runs",
        str(runs),
        "--workers",
        "1",
    ]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while process.poll() is None and not list(runs.glob("*/*/checkpoints/*.json")):
        time.sleep(0.01)
    process.kill()
    process.wait()
    study = Study(plan.load(path), runs)
    deadline = time.monotonic() + 20
    while any(run_folder.is_locked(study.folder_of(planned)) for planned in study.plan.runs):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    with study_folder.locked(study) as sentence:
        assert sentence is not None


@pytest.mark.parametrize("workers", [0, -1, 4096])
def test_workers_are_as_many_as_cores_at_most(workers):
    with pytest.raises(EudaError, match="one for each core"):
        LocalEngine(workers)


def test_two_launches_take_different_cores_while_there_are_enough(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {2, 5, 7})
    one, two = Cores(1, tmp_path / "cores"), Cores(1, tmp_path / "cores")
    assert (one.numbers, two.numbers) == ([2], [5])
    assert Cores(2, tmp_path / "cores").numbers == [2, 7]  # one must be shared
    one.release()
    assert Cores(1, tmp_path / "cores").numbers == [2]
    (tmp_path / "file").write_text("")
    assert Cores(2, tmp_path / "file").numbers == [2, 5]  # nothing can be claimed there


def test_address_without_ray_is_refused(tmp_path, capsys):
    assert cli.main(["study", "run", str(write(tmp_path)), "--address", "x:1", "--runs", str(tmp_path)]) == 2
    assert "--on ray" in capsys.readouterr().err


def test_endings_are_explained(tmp_path):
    log = tmp_path / "log"
    assert explain(-9, log) == "killed by SIGKILL"
    assert explain(143, log) == "stopped by SIGTERM"
    assert explain(3, log) == "it ended with exit code 3 and no word"
    log.write_text("Traceback\nValueError: no\n\n")
    assert explain(1, log) == "ValueError: no"


def test_progress_follows_a_file_that_grows_and_is_cut_back(undisturbed, tmp_path):
    planned = undisturbed.plan.runs[0]
    source = undisturbed.folder_of(planned)
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / "config.json").write_bytes((source / "config.json").read_bytes())
    reader, path = Reader(), folder / "metrics.jsonl"
    lines = (source / "metrics.jsonl").read_bytes().splitlines(keepends=True)
    assert reader.progress(planned, folder, {}).step == 0
    path.write_bytes(b"".join(lines[:4]) + lines[4][:10])
    first = reader.progress(planned, folder, {})
    path.write_bytes(b"".join(lines))
    assert reader.progress(planned, folder, {}).state == "finished"
    path.write_bytes(b"".join(lines[:4]))
    again = reader.progress(planned, folder, {})
    assert (again.step, again.last_return, again.state) == (first.step, first.last_return, "stopped")
    assert status.is_complete(planned, source)


def test_views_show_every_run(undisturbed):
    rows = Reader().look(undisturbed)
    out = io.StringIO()
    console = Console(file=out, force_terminal=True, width=120, height=20)
    with study_display.LiveView(console, 2) as view:
        view.update(rows)
        view.say("something [happened]")
    printed = out.getvalue()
    assert "something [happened]" in printed
    assert "rotate 25 %" in printed
    assert "2 runs: 2 finished" in printed
    assert "… 1 more" in "".join(str(cell) for cell in study_display.table(rows, 2, room=1).columns[0].cells)


def test_without_a_terminal_every_run_has_a_line_at_once_and_then_every_minute(undisturbed, monkeypatch):
    rows = [dataclasses.replace(row, state="running", step=row.steps // 2) for row in Reader().look(undisturbed)]
    now, out = [1000.0], io.StringIO()
    monkeypatch.setattr(study_display.time, "monotonic", lambda: now[0])
    view = study_display.make(2, Console(file=out, width=200))
    for now[0] in (1000.0, 1030.0, 1061.0):
        view.update(rows)
    lines = out.getvalue().splitlines()
    assert sum(rows[0].planned.name in line and " 50% of " in line for line in lines) == 2
    assert sum(line.startswith("2 runs: 2 running") for line in lines) == 2
