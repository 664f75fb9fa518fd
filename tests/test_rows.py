"""Rows from outside the package: each in one file and one row, trained from the command line and from a study."""

import dataclasses
import json
import subprocess
import sys
from pathlib import Path

import pytest

import euda as euda_package
from euda.agents.ddpg import DDPG
from euda.agents.settings import AGENTS, AgentRow, DDPGConfig
from euda.errors import EudaError
from euda.runs import atomic_files, plugins, run_folder
from euda.runs.bases import BASES, Base
from euda.runs.config import RunConfig
from euda.runs.resolution import resolve
from euda.studies.engines import ray
from euda.terminal import cli

FILES = {
    "my_agent": """
import dataclasses
import jax.numpy as jnp
from euda.agents.ddpg import DDPG
from euda.agents.settings import AGENTS, AgentRow, DDPGConfig

@dataclasses.dataclass(frozen=True)
class PlainConfig(DDPGConfig):
    smoothness: float = 0.0
    \"\"\"How much of the smoothing noise is left.\"\"\"

class Plain(DDPG):
    def smoothing(self, key, shape, step):
        return self.config.smoothness * super().smoothing(key, shape, step)

AGENTS["plain"] = AgentRow(Plain, PlainConfig)
""",
    "my_network": """
import dataclasses
from euda.agents.networks import mlp_networks
from euda.agents.network_settings import NETWORKS, MLPConfig, NetworkConfig, NetworkRow

@dataclasses.dataclass(frozen=True)
class NarrowConfig(NetworkConfig):
    units: int = 4
    \"\"\"Units of its only layer.\"\"\"

def narrow(settings, layout, target):
    return mlp_networks(MLPConfig(hidden_size=settings.units, hidden_layers=1))

NETWORKS["narrow"] = NetworkRow(narrow, NarrowConfig)
""",
    "my_augmentation": """
import dataclasses
from euda.replay.settings import AUGMENTATIONS, AugmentationRow
from euda.schema import Settings

@dataclasses.dataclass(frozen=True)
class ShiftConfig(Settings):
    by: float = 0.5
    \"\"\"What is added to every entry.\"\"\"

def shift(settings, layout):
    def change(key, batch):
        s, following = batch.observation + settings.by, batch.next_observation + settings.by
        return batch._replace(observation=s, next_observation=following)

    return change

AUGMENTATIONS["shift"] = AugmentationRow(shift, ShiftConfig)
""",
    "my_task": """
import dataclasses
from euda.tasks.table import TASKS

TASKS["reacher_mine"] = dataclasses.replace(TASKS["reacher_hard"], steps=300)
""",
    "my_method": """
from euda.runs.methods import METHODS, Method

METHODS["mine"] = Method("limb", "shift", agent="plain", network="narrow")
""",
    "my_base": """
from euda.replay.settings import ReplayConfig
from euda.runs.bases import BASES, Base

BASES["small"] = Base(settings=(ReplayConfig(capacity=400, batch_size=8, seed_steps=50),), label="small")
""",
}
OF_RUNS = [name for name in FILES if name not in ("my_method", "my_base")]
"""What a run needs again; its method and its base have become settings."""
IMPORTS = [word for name in FILES for word in ("--import", name)]
SMALL = [
    *("--episode-steps", "50", "--evaluation.every", "150", "--evaluation.episodes", "1", "--quiet"),
    *("--plain.actor-every", "1", "--plain.target-every", "1"),  # one update to trace instead of two
]
STUDY = """
tasks = ["reacher_mine"]
seeds = [1]
[methods.mine]
base = "small"
overrides = {plain = {smoothness = 0.5}, shift.by = 0.25}
[methods.parts]
method = "rotate"
overrides = {agent = "plain", network = "narrow", augment = "shift", replay.seed_steps = 50}
[overrides]
episode_steps = 50
plain = {actor_every = 1, target_every = 1}
narrow.units = 5
evaluation = {every = 150, episodes = 1}
replay = {capacity = 400, batch_size = 8}
"""


@pytest.fixture
def tables(monkeypatch):
    """What a test imports is forgotten after it."""
    before = {name: dict(rows) for name, rows in plugins.TABLES.items()}
    monkeypatch.setattr(plugins, "_origins", {})
    monkeypatch.setattr(plugins, "_imported", {})
    yield
    for name in ("quiet_agent", "extension_rows", *FILES):
        sys.modules.pop(name, None)
    for name, rows in plugins.TABLES.items():
        rows.clear()
        rows.update(before[name])


@pytest.fixture
def there(tmp_path):
    for name, text in FILES.items():
        (tmp_path / f"{name}.py").write_text(text)
    (tmp_path / "mine.toml").write_text(STUDY)
    return tmp_path


def euda(folder, *words):
    """The program in a process of its own, where the user keeps the files."""
    command = [sys.executable, "-m", "euda.terminal.cli", *words]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=300)


@pytest.mark.slow
def test_rows_from_outside_train_from_the_command_line_and_from_a_study(there):
    own = ["--method", "mine", "--base", "small", "--narrow.units", "3", "--shift.by", "2"]
    done = euda(there, "train", "reacher_mine", *IMPORTS, *own, "--plain.smoothness", "0.5", "--out", "run", *SMALL)
    assert (done.returncode, done.stderr) == (0, "")
    stored = json.loads((there / "run" / "config.json").read_text())
    assert (stored["task"], stored["steps"]) == ("reacher_mine", 300)
    assert (stored["learning"]["smoothness"], stored["architecture"], stored["augmentation"]["settings"]) == (
        0.5, {"units": 3}, {"by": 2.0}
    )  # fmt: skip
    assert (stored["replay"]["batch_size"], stored["base"], stored["imports"]) == (8, "small", sorted(OF_RUNS))
    done = euda(there, "study", "run", "mine.toml", *IMPORTS, "--workers", "1")
    assert done.returncode == 0, done.stderr
    configs = [json.loads((folder / "config.json").read_text()) for folder in run_folder.find(there / "runs")]
    assert [config["architecture"] for config in configs] == [{"units": 5}] * 2
    again = [word for name in OF_RUNS for word in ("--import", name)]
    assert euda(there, "evaluate", "run", "--episodes", "1", *again).returncode == 0


def test_a_run_says_what_to_import_and_imports_nothing_by_itself(tmp_path, monkeypatch, capsys, tables):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "quiet_agent.py").write_text(FILES["my_agent"] + "print('imported')")
    plugins.load(["quiet_agent"])
    config = resolve("reacher_hard", base="paper", overrides={"agent": "plain"})
    assert config.imports == ("quiet_agent",)
    capsys.readouterr()
    (tmp_path / "run").mkdir()
    atomic_files.write_json(tmp_path / "run" / run_folder.CONFIG, config.to_json())
    assert run_folder.load(tmp_path / "run").config == config
    del AGENTS["plain"], sys.modules["quiet_agent"]
    assert cli.main(["evaluate", "run"]) == 2
    out, error = capsys.readouterr()
    assert out == ""
    assert error == (
        "euda: cannot use the run 'run': it uses code of quiet_agent, which is imported only if you name it: add"
        " --import quiet_agent\n"
    )
    changed = config.to_json() | {"imports": ["os; rm"]}
    with pytest.raises(EudaError, match="imports must be names of modules, not 'os; rm'"):
        RunConfig.from_json(changed)


def test_modules_imported_from_python_are_known_by_what_makes_their_rows(monkeypatch):
    monkeypatch.setitem(AGENTS, "derived", AgentRow(DDPG, Derived))
    mine = resolve("reacher_hard", base="paper", overrides={"agent": "derived"})
    plain = resolve("reacher_hard", base="paper")
    assert (mine.imports, plain.imports) == ((__name__,), ())
    assert "imports" not in plain.to_json()
    assert dataclasses.replace(plain, imports=("a",)).identity == plain.identity


SENSES = """
from euda.agents.settings import NOISES
from euda.body.features import FEATURES, FeatureRow
from euda.body.joint_features import joint_readings
from euda.tasks.rewards import REWARDS, RewardRow

FEATURES["bare"] = FeatureRow(lambda robot, senses: joint_readings(robot, ()), "joints alone")
REWARDS["calm"] = RewardRow(lambda robot: lambda: -float(abs(robot.data.qvel).sum()), "rest")
NOISES["silent"] = None
"""


def test_features_rewards_and_noise_from_outside(tmp_path, monkeypatch, capsys, tables):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "quiet_agent.py").write_text(SENSES)
    robot = str(Path(euda_package.__file__).parent / "examples" / "tripod.xml")
    words = ["--reward", "calm", "--features", "bare", "--base", "paper", "--ddpg.noise", "silent", "--dry-run"]
    assert cli.main(["train", robot, "--import", "quiet_agent", *words]) == 0
    stored = json.loads(capsys.readouterr().out)
    assert (stored["features"], stored["robot"]["reward"], stored["imports"]) == ("bare", "calm", ["quiet_agent"])
    assert cli.main(["layout", robot, "--features", "bare", "--import", "quiet_agent"]) == 0
    assert "joint_angles" in capsys.readouterr().out
    for group, row in (("ddpg", "bursts, silent."), ("robot", "reach, stand, calm.")):
        cli.main(["train", "--help", group, "--import", "quiet_agent"])
        assert row in " ".join(capsys.readouterr().out.replace("│", " ").split())
    assert cli.main(["tasks", "--import", "quiet_agent"]) == 0
    header, *rows = capsys.readouterr().out.splitlines()
    assert "bare" in header.split()
    assert {len(row.split()) for row in rows} == {len(header.split())}


def extension(folder, text):
    """An installed package with an entry point."""
    (folder / "extension_rows.py").write_text(text)
    info = folder / "extension-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: extension\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[euda]\nmine = extension_rows\n")


def test_installed_extensions_need_no_flag(tmp_path, monkeypatch, capsys, tables):
    extension(tmp_path, FILES["my_task"])
    monkeypatch.syspath_prepend(tmp_path)
    assert cli.main(["train", "reacher_mine", "--dry-run"]) == 0
    assert json.loads(capsys.readouterr().out)["imports"] == ["extension_rows"]


def test_an_extension_that_fails_is_one_sentence(tmp_path, monkeypatch, capsys, tables):
    extension(tmp_path, "raise SystemExit('no licence')")
    monkeypatch.syspath_prepend(tmp_path)
    assert cli.main(["tasks"]) == 2
    assert capsys.readouterr().err == "euda: the installed extension 'mine' fails: SystemExit: no licence\n"


def test_an_interrupt_during_imports_is_no_traceback(there):
    (there / "waits.py").write_text("import os, signal, time\nos.kill(os.getpid(), signal.SIGINT)\ntime.sleep(60)")
    done = euda(there, "tasks", "--import", "waits")
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "euda: interrupted\n")


def test_a_node_of_a_cluster_imports_what_the_user_named(tmp_path, monkeypatch):
    (tmp_path / "says_so.py").write_text("open('imported', 'w').close(); raise RuntimeError('from here')")
    log = tmp_path / "log"
    code, said = ray.train("{}", str(tmp_path / "run"), str(log), str(tmp_path), ["says_so"])
    assert (tmp_path / "imported").is_file()
    assert (code, said) == (2, "--import 'says_so': cannot import 'says_so': RuntimeError: from here")


def test_help_has_the_flags_of_rows_from_outside(there, monkeypatch, capsys, tables):
    monkeypatch.chdir(there)
    cli.main(["train", "--help", *IMPORTS])
    brief = capsys.readouterr().out
    for words in ("--plain.", "smoothness", "--narrow.", "units", "--shift.", "by"):
        assert words in brief
    assert "td3, plain." in brief
    assert len(brief.splitlines()) <= 75
    cli.main(["train", "--help-all", *IMPORTS])
    whole = capsys.readouterr().out
    for words in (
        "--plain.smoothness NUMBER",
        "How much of the smoothing noise is left.",
        "--shift.by",
        "(default: 4)",
    ):
        assert words in whole


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--import", "no_such_module"], "cannot import 'no_such_module'"),
        (["--import"], "--import has no value"),
        (["--import", "leaves"], "SystemExit"),
    ],
)
def test_modules_that_cannot_be_imported_are_one_sentence(there, words, says, monkeypatch, capsys, tables):
    monkeypatch.chdir(there)
    (there / "leaves.py").write_text("raise SystemExit(0)")
    assert cli.main(["tasks", *words]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert says in error


@dataclasses.dataclass(frozen=True)
class Derived(DDPGConfig):
    own: float = 1.0


def test_settings_that_are_derived_from_others_keep_their_overrides(monkeypatch):
    monkeypatch.setitem(AGENTS, "derived", AgentRow(DDPG, Derived))
    chosen = {"agent": "derived", "derived": {"learning_rate": 3e-4, "own": 2.0}}
    assert resolve("reacher_hard", base="paper", overrides=chosen).learning == Derived(learning_rate=3e-4, own=2.0)
    with pytest.raises(EudaError, match=r"ddpg\.learning_rate is not used: this run has agent 'derived'"):
        resolve("reacher_hard", base="paper", overrides={"agent": "derived", "ddpg": {"learning_rate": 3e-4}})
    monkeypatch.setitem(BASES, "mine", Base(settings=(DDPGConfig(actor_every=7),), label="mine"))
    assert resolve("reacher_hard", base="mine", overrides={"agent": "derived"}).learning == Derived(actor_every=7)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["train", "reacher_hard", "--steps", "1.5"], "steps must be a whole number of at least 1, not '1.5'"),
        (["train", "reacher_hard", "--methud", "limb"], "unknown flag --methud: did you mean --method?"),
        (["train", "reacher_hard", "--steps"], "--steps has no value"),
        (["train", "reacher_hard", "limb"], "'limb' is an unexpected argument"),
        (["train", "--direction", "1", "0", "robot.xml"], "up to the next flag: write 'robot.xml' before it"),
        (["certify", "--direction", "1", "0", "robot.xml"], "up to the next flag: write 'robot.xml' before it"),
        (["layout", "--direction", "1", "0", "walker_run"], "up to the next flag: write 'walker_run' before it"),
        (["train", "reacher_hard", "--mlp.hidden-size", "2.5"], "mlp.hidden_size must be a whole number"),
        (["certify", "reacher_hard", "--tolerance", "nan"], "tolerance must be a finite number"),
        (["study", "fly"], "unknown command 'study fly'"),
    ],
)
def test_what_cannot_be_meant_is_one_sentence(words, says, capsys):
    assert cli.main(words) == 2
    out, error = capsys.readouterr()
    assert out == ""
    assert says in error
    assert error.count("\n") == 1


def test_whole_numbers_may_have_an_exponent(capsys):
    assert cli.main(["train", "reacher_hard", "--steps", "1e5", "--dry-run"]) == 0
    assert json.loads(capsys.readouterr().out)["steps"] == 100_000


def test_importing_euda_loads_neither_a_parser_nor_jax():
    script = "import sys, euda; print([name for name in ('tyro', 'jax', 'pydantic') if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_the_example_is_written_where_the_user_works(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert cli.main(["example"]) == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["tripod.toml", "tripod.xml"]
    assert cli.main(["study", "show", "tripod.toml", "--no-measure"]) == 0
    assert "4 runs" in capsys.readouterr().out
    assert cli.main(["example"]) == 2
    assert "there already: nothing was written" in capsys.readouterr().err
