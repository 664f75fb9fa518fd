"""A run folder: configurations, locks, checkpoints, metrics; what is refused, and that nothing is touched then."""

import dataclasses
import errno
import json
import os
import sys
import types
from pathlib import Path

import numpy as np
import pytest

from euda.config import AugmentationConfig, DDPGConfig, MLPConfig, ReplayConfig, SACConfig
from euda.errors import EudaError
from euda.study import checkpoint, machine, methods, metrics, run, storage
from euda.study.checkpoint import Checkpoint
from euda.study.settings import EvaluationConfig, RunConfig, differences, resolve
from euda.study.storage import StorageError

CONFIG = RunConfig("reacher_hard", augmentation=AugmentationConfig("rotate", 0.25), steps=100)


def resolved(method="rotate", share=None, task="reacher_hard", **changes):
    options = {"steps": None, "seed": 0, "cone": None, "ddpg": DDPGConfig(), "sac": SACConfig()}
    noise = AugmentationConfig(stddev=2.0)
    return resolve(task, methods.find(method), share, augmentation=noise, **(options | changes))


def tree(folder: Path) -> dict[str, bytes | None]:
    return {str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None for path in folder.rglob("*")}


# -- configurations ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", methods.METHODS)
def test_every_method_resolves_to_itself(method):
    config = resolved(method)
    assert config.method == method
    assert RunConfig.from_json(json.loads(json.dumps(config.to_json()))) == config


def test_configurations_that_cannot_differ_are_the_same():
    assert resolved("rotate", 0.0) == resolved("limb")
    assert resolved("rotate", 0.0).identity == resolved("limb", 0.0).identity
    assert resolved("rotate", sac=SACConfig(temperature=9)).identity == resolved("rotate").identity
    assert resolved("ddpg-gn").augmentation.stddev == 2.0
    assert resolved("rotate").augmentation.stddev == 1.0


def test_identity_is_the_content_but_for_the_steps():
    base = resolved()
    assert dataclasses.replace(base, steps=7).identity == base.identity
    changed = [
        dataclasses.replace(base, seed=1),
        dataclasses.replace(base, mlp=MLPConfig(hidden_size=8)),
        dataclasses.replace(base, learning=DDPGConfig(stddev_steps=100_000)),
        dataclasses.replace(base, replay=ReplayConfig(n_step=1)),
        dataclasses.replace(base, evaluation=EvaluationConfig(episodes=3)),
    ]
    assert len({config.identity for config in [base, *changed]}) == len(changed) + 1


def test_protocol_of_the_paper_is_the_default():
    config = resolved()
    assert (config.steps, config.evaluation.every, config.evaluation.episodes) == (2_000_000, 10_000, 10)
    assert resolved(task="humanoid_run").steps == 5_000_000


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"share": 1.5}, "between 0 and 1"),
        ({"share": -0.1}, "between 0 and 1"),
        ({"share": float("nan")}, "between 0 and 1"),
        ({"method": "limb", "share": 0.5}, "no augmentation"),
        ({"steps": 0}, "at least 1"),
        ({"steps": -5}, "at least 1"),
        ({"seed": -1}, "from 0 to"),
        ({"cone": "round"}, "unknown cone"),
        ({"episode_steps": 0}, "at least 1"),
    ],
)
def test_bad_values_are_refused_in_one_sentence(changes, words):
    with pytest.raises(EudaError, match=words):
        resolved(**changes)


def test_unknown_names_are_refused():
    with pytest.raises(EudaError, match="did you mean 'rotate'"):
        methods.find("rotat")
    with pytest.raises(EudaError, match="unknown agent 'td3'"):
        methods.combine("rotate", "td3", None, None)
    with pytest.raises(EudaError, match="unknown augmentation"):
        resolve("reacher_hard", methods.combine("rotate", None, None, "flip"), 0.5, steps=1, seed=0, cone=None,
                augmentation=AugmentationConfig(), ddpg=DDPGConfig(), sac=SACConfig())  # fmt: skip


def test_any_agent_combines_with_any_augmentation():
    method = methods.combine("rotate", "sac", None, None)
    assert methods.name_of(method) == "sac-limb-rotate"
    assert resolve("reacher_hard", method, 0.5, steps=1, seed=0, cone=None, augmentation=AugmentationConfig(),
                   ddpg=DDPGConfig(), sac=SACConfig()).learning == SACConfig()  # fmt: skip


def test_differences_name_the_fields():
    other = dataclasses.replace(CONFIG, seed=3, mlp=MLPConfig(hidden_size=8))
    assert list(differences(CONFIG.to_json(), other.to_json())) == [
        "mlp.hidden_size: 256 there, 8 asked for",
        "seed: 0 there, 3 asked for",
    ]


# -- folders -----------------------------------------------------------------------------------------------


def test_a_run_is_made_and_found_again(tmp_path):
    with run.opened(tmp_path / "a" / "b", CONFIG) as made:
        assert run.load(made.folder) == made
    assert run.find(tmp_path) == [tmp_path / "a" / "b"]


def test_a_folder_that_is_not_a_run_is_not_touched(tmp_path):
    (tmp_path / "thesis.tex").write_text("years of work")
    before = tree(tmp_path)
    with pytest.raises(EudaError, match="neither empty nor a run"), run.opened(tmp_path, CONFIG):
        pass
    with pytest.raises(EudaError, match="is a file"), run.opened(tmp_path / "thesis.tex", CONFIG):
        pass
    with pytest.raises(EudaError, match="not a run"):
        run.load(tmp_path)
    assert tree(tmp_path) == before


@pytest.mark.parametrize(
    ("other", "words"),
    [
        (dataclasses.replace(CONFIG, seed=1), "seed: 0 there, 1 asked for"),
        (dataclasses.replace(CONFIG, task="cheetah_run"), "task: 'reacher_hard' there"),
    ],
)
def test_another_configuration_is_refused_by_name(tmp_path, other, words):
    with run.opened(tmp_path, CONFIG):
        pass
    before = tree(tmp_path)
    with pytest.raises(EudaError, match=words), run.opened(tmp_path, other):
        pass
    assert tree(tmp_path) == before


def test_another_format_is_refused(tmp_path):
    (tmp_path / "config.json").write_text(json.dumps(CONFIG.to_json() | {"format": 99}))
    with pytest.raises(EudaError, match="format 99"):
        run.load(tmp_path)
    (tmp_path / "config.json").write_text(json.dumps(CONFIG.to_json() | {"colour": "red"}))
    with pytest.raises(EudaError, match="colour"):
        run.load(tmp_path)
    (tmp_path / "config.json").write_text("{")
    with pytest.raises(EudaError, match="damaged"):
        run.load(tmp_path)


def test_more_steps_are_welcome(tmp_path):
    with run.opened(tmp_path, CONFIG):
        pass
    with run.opened(tmp_path, dataclasses.replace(CONFIG, steps=200)):
        pass
    assert run.load(tmp_path).config.steps == 200


def test_two_processes_on_one_run_are_refused(tmp_path):
    with run.opened(tmp_path, CONFIG):
        assert run.is_locked(tmp_path)
        with pytest.raises(EudaError, match="another process"), run.opened(tmp_path, CONFIG):
            pass
    assert not run.is_locked(tmp_path)


def test_a_run_killed_in_its_first_moment_is_begun_again(tmp_path):
    (tmp_path / "lock").touch()
    (tmp_path / "config.json.tmp").write_bytes(b"{")
    with run.opened(tmp_path, CONFIG) as made:
        assert made.config == CONFIG


def test_provenance_names_no_folder_and_no_host(tmp_path, monkeypatch):
    monkeypatch.setattr(
        sys, "argv", ["/somewhere/bin/euda", "train", "reacher_hard", "--out", str(tmp_path), f"--x={tmp_path}/y"]
    )
    with run.opened(tmp_path, CONFIG) as made:
        made.record_session(0)
        made.record_session(40)
    text = (tmp_path / "provenance.json").read_text()
    assert [session["from_step"] for session in made.provenance()] == [0, 40]
    assert str(tmp_path.parent) not in text
    assert os.uname().nodename not in text
    assert made.provenance()[0]["packages"]["jax"]


def test_a_run_that_moves_to_other_versions_says_so(tmp_path, monkeypatch):
    with run.opened(tmp_path, CONFIG) as made:
        assert made.record_session(0) == []
        assert made.record_session(10) == []
        monkeypatch.setattr(machine, "_version", lambda name: "99" if name == "jax" else None)
        assert any(change.startswith("jax ") and change.endswith("now 99") for change in made.record_session(20))


# -- checkpoints -------------------------------------------------------------------------------------------


def make_checkpoint(step: int) -> Checkpoint:
    arrays = {"a/x": np.arange(6.0).reshape(2, 3).T * step, "a/scalar": np.array(step), "flag": np.array(True)}
    return Checkpoint(step, arrays, {"big": 2**127 + step, "third": 1 / 3})


def test_checkpoints_come_back_exactly_and_two_are_kept(tmp_path):
    for step in (10, 20, 30):
        checkpoint.save(tmp_path, make_checkpoint(step))
    found, damaged = checkpoint.newest(tmp_path)
    assert found is not None
    assert damaged == []
    wanted = make_checkpoint(30)
    assert (found.step, found.values) == (30, wanted.values)
    for name, array in wanted.arrays.items():
        assert found.arrays[name].dtype == array.dtype
        np.testing.assert_array_equal(found.arrays[name], array, strict=True)
    assert len(list(tmp_path.iterdir())) == 4
    assert checkpoint.without_prefix("a", found.arrays).keys() == {"x", "scalar"}


def damage_truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-7])


def damage_flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def damage_empty(path: Path) -> None:
    path.write_bytes(b"")


def damage_remove(path: Path) -> None:
    path.unlink()


@pytest.mark.parametrize("damage", [damage_truncate, damage_flip, damage_empty, damage_remove])
@pytest.mark.parametrize("pattern", ["checkpoint-*20.json", "*20-*.safetensors"])
def test_a_damaged_checkpoint_is_detected_and_the_previous_one_used(tmp_path, damage, pattern):
    checkpoint.save(tmp_path, make_checkpoint(10))
    checkpoint.save(tmp_path, make_checkpoint(20))
    (path,) = tmp_path.glob(pattern)
    damage(path)
    found, damaged = checkpoint.newest(tmp_path)
    assert found is not None
    assert found.step == 10
    assert len(damaged) == (0 if damage is damage_remove and path.suffix == ".json" else 1)


def test_a_hostile_checkpoint_fails_and_runs_nothing(tmp_path):
    checkpoint.save(tmp_path, make_checkpoint(10))
    (path,) = tmp_path.glob("checkpoint-*.json")
    for content in (
        '{"format": 1}',
        "[]",
        '"x"',
        '{"format": 1, "step": 1, "arrays": "/etc/passwd", "sha256": "", "values": 0}',
    ):
        path.write_text(content)
        with pytest.raises(StorageError, match="damaged"):
            checkpoint.load(path)


@pytest.mark.parametrize("function", ["write", "fsync", "replace", "open"])
@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO])
def test_a_crash_at_any_call_of_a_save_leaves_the_last_checkpoint(tmp_path, monkeypatch, function, code):
    """Fails the first call, then the second, …, until a save goes through."""
    checkpoint.save(tmp_path, make_checkpoint(10))
    original, calls, allowed = getattr(os, function), 0, 0
    for allowed in range(50):
        calls = 0

        def failing(*args, allowed=allowed, **kwargs):
            nonlocal calls
            calls += 1
            if calls > allowed:
                raise OSError(code, os.strerror(code))
            return original(*args, **kwargs)

        with monkeypatch.context() as patch:
            patch.setattr(os, function, failing)
            try:
                checkpoint.save(tmp_path, make_checkpoint(20))
                break
            except StorageError:
                pass
        found, _ = checkpoint.newest(tmp_path)
        assert found is not None
        assert found.step in (10, 20)
    assert allowed >= 2
    found, damaged = checkpoint.newest(tmp_path)
    assert found is not None
    assert (found.step, damaged) == (20, [])


def test_an_atomic_write_is_the_old_or_the_new_file(tmp_path, monkeypatch):
    path = tmp_path / "x"
    storage.write_atomically(path, b"old")
    monkeypatch.setattr(os, "replace", lambda *args: (_ for _ in ()).throw(OSError(errno.ENOSPC, "full")))
    with pytest.raises(StorageError, match="the disk is full"):
        storage.write_atomically(path, b"new")
    assert tree(tmp_path) == {"x": b"old"}


# -- metrics -----------------------------------------------------------------------------------------------


def event(step: int) -> dict:
    return {"event": "eval", "step": step, "seconds": 0.5, "return_mean": 1.5, "returns": [1.0, 2.0]}


def test_metrics_are_cut_back_to_the_checkpoint(tmp_path):
    path = tmp_path / "metrics.jsonl"
    lines = metrics.JsonLines(path, 0)
    lines.write(event(0))
    size = lines.size
    lines.write(event(1))
    lines.close()
    with path.open("ab") as file:
        file.write(b'{"event": "ev')
    assert [e["step"] for e in metrics.read(path)] == [0, 1]
    lines = metrics.JsonLines(path, size)
    lines.write(event(2))
    lines.close()
    assert [e["step"] for e in metrics.read(path)] == [0, 2]
    with pytest.raises(StorageError, match="damaged"):
        metrics.JsonLines(path, 10_000)


def test_tensorboard_files_name_no_host_and_can_be_read(tmp_path):
    sink = metrics.TensorBoard(tmp_path / "tb", 5)
    sink.write(event(6))
    sink.close()
    (path,) = (tmp_path / "tb").iterdir()
    assert os.uname().nodename not in path.name
    assert b"eval/return_mean" in path.read_bytes()


class FakeTracker(types.ModuleType):
    """Stands for both wandb and mlflow."""

    def __init__(self):
        super().__init__("fake")
        self.calls = []

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)

        def record(*args, **kwargs):
            self.calls.append((name, args, kwargs))
            return self

        return record


@pytest.mark.parametrize(("name", "sink"), [("wandb", metrics.WeightsAndBiases), ("mlflow", metrics.MLflow)])
def test_trackers_are_used_when_installed_and_named_when_not(monkeypatch, name, sink):
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(EudaError, match=rf"euda\[{name}\]"):
        sink("project", "run", CONFIG.to_json())
    fake = FakeTracker()
    monkeypatch.setitem(sys.modules, name, fake)
    tracker = sink("project", "run", CONFIG.to_json())
    tracker.write(event(3))
    tracker.close()
    logged = [(args, kwargs) for call, args, kwargs in fake.calls if call in ("log", "log_metrics")]
    assert logged == [(({"eval/seconds": 0.5, "eval/return_mean": 1.5},), {"step": 3})]


# -- the machine -------------------------------------------------------------------------------------------


def test_a_core_that_does_not_exist_is_refused():
    with pytest.raises(EudaError, match="core 9999 is not available"):
        machine.pin(9999)
