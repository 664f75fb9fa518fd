"""A run folder: configurations, locks, checkpoints, metrics; what is refused, and that nothing is touched then."""

import dataclasses
import errno
import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile
import types
from pathlib import Path

import numpy as np
import pytest

import euda
from euda import operating_system
from euda.agents.network_settings import MLPConfig
from euda.agents.settings import DDPGConfig, SACConfig
from euda.errors import EudaError
from euda.replay.settings import AugmentationConfig, GaussianConfig, ReplayConfig
from euda.runs import atomic_files, bases, checkpoint, machine, methods, metrics, run_folder
from euda.runs.atomic_files import StorageError
from euda.runs.checkpoint import Checkpoint
from euda.runs.config import RunConfig
from euda.runs.config_entries import differences
from euda.runs.resolution import resolve
from euda.runs.settings import EvaluationConfig
from euda.schema import Settings

CONFIG = RunConfig("reacher_hard", augmentation=AugmentationConfig("rotate", 0.25), steps=100)


def resolved(method="rotate", share=None, task="reacher_hard", base="paper", **changes):
    shared = {"gaussian": {"stddev": 2.0}, "sac": {"temperature": 9}}
    return resolve(task, method, base, share=share, shared=shared, **changes)


def tree(folder: Path) -> dict[str, bytes | None]:
    return {str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None for path in folder.rglob("*")}


# -- configurations ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", methods.METHODS)
def test_every_method_resolves_to_itself(method):
    config = resolved(method)
    assert methods.METHODS[method].features == config.features
    assert resolved(config.method) == config
    assert config.method == {"joint": "ddpg"}.get(method, method)  # the paper's own name for joint on its base
    assert RunConfig.from_json(json.loads(json.dumps(config.to_json()))) == config


def test_configurations_that_cannot_differ_are_the_same():
    assert resolved("rotate", 0.0) == resolved("limb")
    assert resolved("rotate", 0.0).identity == resolved("limb", 0.0).identity
    assert resolved("rotate") == resolve("reacher_hard", "rotate", "paper")
    assert resolved("ddpg-gn").augmentation.settings == GaussianConfig(stddev=2.0)
    assert resolved("rotate").augmentation.settings == Settings()


def test_identity_is_the_content_but_for_the_steps():
    base = resolved()
    assert dataclasses.replace(base, steps=7).identity == base.identity
    changed = [
        dataclasses.replace(base, seed=1),
        dataclasses.replace(base, architecture=MLPConfig(hidden_size=8)),
        dataclasses.replace(base, learning=DDPGConfig(stddev_steps=100_000)),
        dataclasses.replace(base, replay=ReplayConfig(n_step=1)),
        dataclasses.replace(base, evaluation=EvaluationConfig(episodes=3)),
    ]
    assert len({config.identity for config in [base, *changed]}) == len(changed) + 1


def test_the_base_paper_has_the_paper_s_protocol_and_the_default_is_a_base_of_minutes():
    config = resolved()
    assert (config.steps, config.evaluation.every, config.evaluation.episodes) == (2_000_000, 10_000, 10)
    assert resolved(task="humanoid_run").steps == 5_000_000
    assert resolve("humanoid_run") == resolve("humanoid_run", base=bases.SWIFT, steps=200_000)


def test_a_base_says_how_much_of_a_batch_a_symmetry_changes():
    assert resolved("rotate").augmentation.share == 0.5
    assert resolved("rotate", base="swift").augmentation.share == 1.0
    assert resolved("rotate", 0.25, base="swift").augmentation.share == 0.25
    assert resolved("limb", base="swift", overrides={"augment": "scale"}).augmentation.share == 1.0


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"overrides": {"sac": {"temperature": 2.0}}}, "sac.temperature is not used: this run has agent 'ddpg'"),
        ({"share": 1.5}, "between 0 and 1"),
        ({"share": -0.1}, "between 0 and 1"),
        ({"share": float("nan")}, "between 0 and 1"),
        ({"method": "limb", "share": 0.5}, "no augmentation"),
        ({"steps": 0}, "at least 1"),
        ({"steps": -5}, "at least 1"),
        ({"seed": -1}, "seed must be a whole number between 0 and 4294967295"),
        ({"overrides": {"mlp": {"hidden_size": 2.5}}}, "mlp.hidden_size must be a whole number of at least 1, not 2.5"),
        ({"overrides": {"mlp": {"hidden_size": True}}}, "mlp.hidden_size must be a whole number"),
        ({"overrides": {"ddpg": {"learning_rate": float("nan")}}}, "ddpg.learning_rate must be a finite number"),
        ({"overrides": {"replay": {"capacity": 100}}}, r"capacity must be at least batch_size \(256\), not 100"),
        ({"overrides": {"cone": "round"}}, "unknown cone"),
        ({"overrides": {"episode_steps": 0}}, "at least 1"),
    ],
)
def test_bad_values_are_refused_in_one_sentence(changes, words):
    with pytest.raises(EudaError, match=words):
        resolved(**changes)


def test_unknown_names_are_refused():
    with pytest.raises(EudaError, match="did you mean 'rotate'"):
        methods.find("rotat")
    for what in ("agent", "network", "features", "augment"):
        with pytest.raises(EudaError, match=f"unknown {what}.* 'flip'"):
            resolved("rotate", overrides={what: "flip"})
    with pytest.raises(EudaError, match="unknown base 'papre': did you mean 'paper'"):
        resolved("rotate", base="papre")


def test_any_agent_combines_with_any_augmentation():
    config = resolved("rotate", overrides={"agent": "sac"})
    assert config.method == "sac-limb-rotate"
    assert config.learning == SACConfig(temperature=9)


def test_differences_name_the_fields():
    other = dataclasses.replace(CONFIG, seed=3, architecture=MLPConfig(hidden_size=8))
    assert list(differences(CONFIG.to_json(), other.to_json())) == [
        "architecture.hidden_size: 256 there, 8 asked for",
        "seed: 0 there, 3 asked for",
    ]


# -- folders -----------------------------------------------------------------------------------------------


def test_a_run_is_made_and_found_again(tmp_path):
    with run_folder.opened(tmp_path / "a" / "b", CONFIG) as made:
        assert run_folder.load(made.folder) == made
    assert run_folder.find(tmp_path) == [tmp_path / "a" / "b"]


def test_a_folder_that_is_not_a_run_is_not_touched(tmp_path):
    (tmp_path / "thesis.tex").write_text("years of work")
    before = tree(tmp_path)
    with pytest.raises(EudaError, match="neither empty nor a run"), run_folder.opened(tmp_path, CONFIG):
        pass
    with pytest.raises(EudaError, match="is a file"), run_folder.opened(tmp_path / "thesis.tex", CONFIG):
        pass
    with pytest.raises(EudaError, match="not a run"):
        run_folder.load(tmp_path)
    assert tree(tmp_path) == before


@pytest.mark.parametrize(
    ("other", "words"),
    [
        (dataclasses.replace(CONFIG, seed=1), "seed: 0 there, 1 asked for"),
        (dataclasses.replace(CONFIG, task="cheetah_run"), "task: 'reacher_hard' there"),
    ],
)
def test_another_configuration_is_refused_by_name(tmp_path, other, words):
    with run_folder.opened(tmp_path, CONFIG):
        pass
    before = tree(tmp_path)
    with pytest.raises(EudaError, match=words), run_folder.opened(tmp_path, other):
        pass
    assert tree(tmp_path) == before


def test_another_format_is_refused(tmp_path):
    (tmp_path / "config.json").write_text(json.dumps(CONFIG.to_json() | {"format": 99}))
    with pytest.raises(EudaError, match="format 99"):
        run_folder.load(tmp_path)
    (tmp_path / "config.json").write_text(json.dumps(CONFIG.to_json() | {"colour": "red"}))
    with pytest.raises(EudaError, match="colour"):
        run_folder.load(tmp_path)
    (tmp_path / "config.json").write_text("{")
    with pytest.raises(EudaError, match="damaged"):
        run_folder.load(tmp_path)


def test_more_steps_are_welcome(tmp_path):
    with run_folder.opened(tmp_path, CONFIG):
        pass
    with run_folder.opened(tmp_path, dataclasses.replace(CONFIG, steps=200)) as found:
        assert run_folder.load(tmp_path).config.steps == 100  # it may still be refused
        found.write_config()
    assert run_folder.load(tmp_path).config.steps == 200


def test_two_processes_on_one_run_are_refused(tmp_path):
    with run_folder.opened(tmp_path, CONFIG):
        assert run_folder.is_locked(tmp_path)
        with pytest.raises(EudaError, match="another process"), run_folder.opened(tmp_path, CONFIG):
            pass
    assert not run_folder.is_locked(tmp_path)


def test_a_run_killed_in_its_first_moment_is_begun_again(tmp_path):
    (tmp_path / "lock").touch()
    (tmp_path / "config.json.tmp").write_bytes(b"{")
    with run_folder.opened(tmp_path, CONFIG) as made:
        assert made.config == CONFIG


def test_provenance_names_no_folder_and_no_host(tmp_path, monkeypatch):
    monkeypatch.setattr(
        sys, "argv", ["/somewhere/bin/euda", "train", "reacher_hard", "--out", str(tmp_path), f"--x={tmp_path}/y"]
    )
    with run_folder.opened(tmp_path, CONFIG) as made:
        made.record_session(0)
        made.record_session(40)
    text = (tmp_path / "provenance.json").read_text()
    assert [session["from_step"] for session in made.provenance()] == [0, 40]
    assert str(tmp_path.parent) not in text
    assert not re.search(rf"\b{re.escape(os.uname().nodename)}\b", text)  # as a word: a host may be called vm
    assert made.provenance()[0]["packages"]["jax"]


def test_a_run_that_moves_to_other_versions_says_so(tmp_path, monkeypatch):
    with run_folder.opened(tmp_path, CONFIG) as made:
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


def signed(body: dict) -> str:
    """A manifest with a right checksum, as anybody can write it."""
    digest = hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()
    return json.dumps(body | {"manifest_sha256": digest})


GOOD = {
    "format": checkpoint.FORMAT,
    "step": 10,
    "arrays": "0000000010-0123456789ab.safetensors",
    "sha256": "0" * 64,
    "values": {},
}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[]", "damaged: entries are missing"),
        ('"x"', "damaged: entries are missing"),
        ('{"format": 1}', "damaged: entries are missing"),
        ("[" * 100_000, "damaged: it is not JSON"),
        (json.dumps(GOOD), "damaged: its checksum does not fit"),
        (signed(GOOD | {"format": 99}), f"has format 99, this euda reads {checkpoint.FORMAT}"),
        (signed(GOOD | {"values": {"seconds": float("nan")}}), "damaged: it holds what no checkpoint has"),
        (signed(GOOD | {"step": 11}), "step cannot be right"),
        (signed(GOOD | {"step": "10"}), "step cannot be right"),
        (signed(GOOD | {"step": True}), "step cannot be right"),
        (signed(GOOD | {"step": 10**400}), "step cannot be right"),
        (signed(GOOD | {"arrays": 5}), "arrays cannot be right"),
        (signed(GOOD | {"arrays": "../secret.safetensors"}), "arrays cannot be right"),
        (signed(GOOD | {"arrays": "a\0b"}), "arrays cannot be right"),
        (signed(GOOD | {"arrays": ["/etc/passwd"], "values": 0}), "arrays, values cannot be right"),
        (signed(GOOD | {"sha256": None}), "cannot read"),
    ],
)
def test_a_hostile_manifest_is_one_sentence(tmp_path, text, says):
    """Whoever can write a manifest can give it a right checksum."""
    path = tmp_path / "checkpoint-0000000010.json"
    path.write_text(text)
    with pytest.raises(StorageError, match=re.escape(says)):
        checkpoint.load(path)
    found, (reason,) = checkpoint.newest(tmp_path)
    assert found is None
    assert says in reason


@pytest.mark.parametrize("kind", ["BF16", "XX", "F32"])
def test_arrays_that_cannot_be_are_one_sentence(tmp_path, kind):
    header = json.dumps({"x": {"dtype": kind, "shape": [2**40], "data_offsets": [0, 2**41]}}).encode()
    content = len(header).to_bytes(8, "little") + header
    with pytest.raises(StorageError, match="damaged"):
        checkpoint.arrays_of(tmp_path / "x", content)
    content = content.replace(str(2**40).encode(), b"4").replace(str(2**41).encode(), b"8") + bytes(8)
    content = (len(content) - 16).to_bytes(8, "little") + content[8:]
    with pytest.raises(StorageError, match="damaged"):
        checkpoint.arrays_of(tmp_path / "x", content)


def test_only_names_that_euda_gives_are_manifests(tmp_path):
    for name in ("checkpoint-²0.json", "checkpoint-x.json", "checkpoint--1.json"):
        (tmp_path / name).write_text("{}")
    assert checkpoint.manifests(tmp_path) == []


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
    atomic_files.write_atomically(path, b"old")
    monkeypatch.setattr(os, "replace", lambda *args: (_ for _ in ()).throw(OSError(errno.ENOSPC, "full")))
    with pytest.raises(StorageError, match="the disk is full"):
        atomic_files.write_atomically(path, b"new")
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


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"[]",
        b"[" * 100_000,
        b'{"event": "eval", "step": 1, "seconds": 1.0}',
        b'{"event": "eval", "step": 1, "seconds": 1.0, "return_mean": "high"}',
        b'{"event": "eval", "step": 1, "seconds": 1.0, "return_mean": NaN}',
        b'{"event": "end", "step": -1, "seconds": 1.0}',
        b'{"event": "end", "step": true, "seconds": 1.0}',
        b'{"event": "end", "step": 1, "seconds": null}',
    ],
)
def test_lines_that_are_no_events_are_left_out(tmp_path, line):
    with run_folder.opened(tmp_path, CONFIG) as made:
        pass
    made.metrics_path.write_bytes(line + b"\n" + json.dumps(event(2)).encode() + b"\n")
    assert [entry["step"] for entry in made.events()] == [2]
    assert run_folder.status(made).best_return == 1.5


@pytest.mark.parametrize("text", ["[]", "{}", '{"sessions": 3}', '{"sessions": ["x"]}'])
def test_a_provenance_that_is_none_is_one_sentence(tmp_path, text):
    with run_folder.opened(tmp_path, CONFIG) as made:
        (tmp_path / "provenance.json").write_text(text)
        with pytest.raises(StorageError, match="damaged: it has no list of sessions"):
            made.record_session(0)


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


@pytest.fixture
def three_cores(monkeypatch, tmp_path):
    """A machine with three cores, and where this process was told to stay."""
    kept = []
    monkeypatch.setattr(operating_system, "cores", lambda: [2, 5, 7])
    monkeypatch.setattr(operating_system, "keep_to_core", lambda *cores: kept.extend(cores) or True)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return kept


def test_a_run_takes_a_core_that_no_other_has_and_says_so(three_cores):
    assert machine.take_core() == "on core 2 of 3"
    assert machine.take_core("7") == "on core 7 of 3"
    assert machine.take_core() == "on core 5 of 3"
    assert machine.take_core() == "on any of 3 cores, because none is free of other runs"
    assert machine.take_core("5") == "on core 5 of 3"  # who names one shares it
    assert machine.take_core("any") == "on any of 3 cores"
    assert three_cores == [2, 7, 5, 5]


def test_a_run_that_has_use_for_two_cores_takes_those_that_are_free(three_cores):
    assert machine.take_core(wanted=2) == "on cores 2 and 5 of 3"
    assert machine.take_core(wanted=2) == "on core 7 of 3"
    assert machine.take_core(wanted=2) == "on any of 3 cores, because none is free of other runs"
    assert machine.take_core("5", wanted=2) == "on core 5 of 3"  # who names one gets one
    assert three_cores == [2, 5, 7, 5]


@pytest.mark.parametrize("name", ["9999", "-1", "two", ""])
def test_a_core_that_does_not_exist_is_refused(three_cores, name):
    with pytest.raises(EudaError, match=f"core {name} is not available: valid are 2, 5, 7 and any"):
        machine.take_core(name)
    assert three_cores == []


def test_a_system_that_chooses_cores_itself_is_told_so(three_cores, monkeypatch):
    monkeypatch.setattr(operating_system, "keep_to_core", lambda *cores: False)
    assert machine.take_core() == "on a core that the system chooses"
    with pytest.raises(EudaError, match="leave --core 2 out"):
        machine.take_core("2")


UNTOUCHED = """
import os, threading
import gymnasium, jax  # which set variables of their own
before = dict(os.environ), os.sched_getaffinity(0), threading.active_count()
import euda
euda.make("reacher_hard").reset(seed=0)
short = {"steps": 4, "episode_steps": 2, "evaluation": {"every": 4, "episodes": 1}, "mlp": {"hidden_size": 8}}
euda.train("reacher_hard", out="run", **short)
assert (dict(os.environ), os.sched_getaffinity(0), threading.active_count()) == before
assert jax.config.jax_platforms == os.environ.get("JAX_PLATFORMS")
assert jax.config.jax_default_device is None
"""


def test_a_process_that_imports_euda_and_trains_is_left_as_it_is(tmp_path):
    """Neither import nor training changes its threads, cores, default device or environment variables."""
    ours = {"JAX_PLATFORMS", "XLA_FLAGS", "OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "NPROC"}
    environment = {key: value for key, value in os.environ.items() if key not in ours}
    subprocess.run([sys.executable, "-c", UNTOUCHED], cwd=tmp_path, env=environment, check=True)


def test_a_device_that_is_not_there_is_one_sentence(tmp_path):
    with pytest.raises(EudaError, match=r"cannot compute on device 'quantum' here \(.*quantum.*\)"):
        euda.train("reacher_hard", out=tmp_path / "run", device="quantum")
    assert not (tmp_path / "run").exists()
    with pytest.raises(EudaError, match="comes too late"):
        euda.train("reacher_hard", out=tmp_path / "run", one_thread=True)


def test_the_device_of_the_command_line_is_the_named_one_then_the_environments_then_the_cpu(monkeypatch):
    monkeypatch.delenv("JAX_PLATFORMS", raising=False)
    for name, wanted in ((None, "cpu"), ("tpu", "tpu"), (None, "tpu"), ("cuda", "cuda")):
        machine.use_device(name)
        assert os.environ["JAX_PLATFORMS"] == wanted
