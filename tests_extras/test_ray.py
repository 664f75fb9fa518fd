"""A study on a real Ray cluster of several nodes, one of them killed mid-study."""

import os
import signal
import threading
import time

import pytest

# Nothing is sent anywhere; and the switch that keeps Ray on loopback on other systems does so here too.
os.environ |= {"RAY_USAGE_STATS_ENABLED": "0", "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0"}
import ray
from ray.cluster_utils import Cluster
from study_files import TINY, content, write

from euda.errors import EudaError
from euda.runs import run_folder
from euda.runs.signals import Stop
from euda.studies import plan, study_folder
from euda.studies.engines.local import LocalEngine
from euda.studies.engines.ray import RayEngine
from euda.studies.launcher import Launch
from euda.studies.study_folder import Study
from euda.terminal import cli

pytestmark = pytest.mark.filterwarnings("ignore")  # Ray's own


class Quiet:
    def __init__(self):
        self.said = []

    def update(self, rows):
        self.rows = rows

    def say(self, sentence):
        self.said.append(sentence)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    """A head without CPUs and two nodes with one each, all on loopback."""
    os.environ["JAX_COMPILATION_CACHE_DIR"] = str(tmp_path_factory.mktemp("cache"))
    os.environ["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = "0"
    small = {"object_store_memory": 80_000_000}
    head = {"num_cpus": 0, "include_dashboard": False, "node_ip_address": "127.0.0.1", **small}
    cluster = Cluster(initialize_head=True, head_node_args=head)
    cluster.nodes_to_kill = [cluster.add_node(num_cpus=1, **small) for _ in range(2)]
    cluster.wait_for_nodes()
    yield cluster
    ray.shutdown()
    cluster.shutdown()


def launch(study, engine):
    view = Quiet()
    with study_folder.locked(study):
        result = Launch(study, engine, view).go(Stop())
    return result, view


def contents(study):
    return {planned.folder_name: content(study.folder_of(planned)) for planned in study.plan.runs}


def test_a_cluster_that_loses_a_node_ends_with_every_run_complete_and_the_same(cluster, tmp_path):
    text = TINY.replace("steps = 120", "steps = 600")
    undisturbed = Study(plan.load(write(tmp_path, text)), tmp_path / "local")
    assert launch(undisturbed, LocalEngine())[0].finished == 4

    study = Study(undisturbed.plan, tmp_path / "ray")

    def kill_a_node():
        while len(list(study.runs.glob("*/*/checkpoints/*.json"))) < 2:
            time.sleep(0.01)
        cluster.remove_node(cluster.nodes_to_kill[0], allow_graceful=False)
        cluster.add_node(num_cpus=1, object_store_memory=80_000_000)  # as clusters do

    killer = threading.Thread(target=kill_a_node)
    killer.start()
    result, view = launch(study, RayEngine(cluster.address))
    killer.join(60)
    assert result.finished == 4, view.said
    assert any("failed, trying again" in sentence for sentence in view.said), view.said
    assert contents(study) == contents(undisturbed)


def test_a_study_asked_to_stop_saves_and_goes_on(cluster, tmp_path):
    study = Study(plan.load(write(tmp_path, TINY.replace("steps = 120", "steps = 100000"))), tmp_path / "runs")
    stop, view = Stop(), Quiet()

    def ask():
        while not list(study.runs.glob("*/*/checkpoints/*.json")):
            time.sleep(0.01)
        stop.request(signal.SIGINT)

    asking = threading.Thread(target=ask)
    asking.start()
    with study_folder.locked(study):
        result = Launch(study, RayEngine(cluster.address), view).go(stop)
    asking.join(30)
    assert (result.finished, result.failures, result.signal) == (0, {}, signal.SIGINT)
    deadline = time.monotonic() + 20
    while any(run_folder.is_locked(study.folder_of(planned)) for planned in study.plan.runs):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    begun = [f for f in study.runs.glob("*/*") if (f / "checkpoints").is_dir() and list(f.glob("checkpoints/*.json"))]
    newest, damaged = run_folder.load(begun[0]).newest_checkpoint()
    assert newest is not None
    assert damaged == []


def test_the_command_runs_a_study_on_the_cluster(cluster, tmp_path, capsys):
    path = write(tmp_path, TINY.replace("seeds = [0, 1]", "seeds = [0]"))
    arguments = ["study", "run", str(path), "--runs", str(tmp_path / "runs"), "--on", "ray"]
    assert cli.main([*arguments, "--address", cluster.address]) == 0
    assert "2 of 2 runs are complete" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("address", "words"),
    [("127.0.0.1:9", "no Ray cluster answers"), ("nonsense", "HOST:PORT"), ("ray://127.0.0.1:9", "no Ray cluster")],
)
def test_an_address_where_nobody_answers_is_one_sentence(tmp_path, capsys, address, words):
    path = write(tmp_path)
    begin = time.monotonic()
    assert (
        cli.main(["study", "run", str(path), "--runs", str(tmp_path / "r"), "--on", "ray", "--address", address]) == 2
    )
    error = capsys.readouterr().err.strip()
    assert words in error
    assert "\n" not in error
    assert time.monotonic() - begin < 20


def test_workers_must_be_positive():
    with pytest.raises(EudaError, match="at least 1"):
        RayEngine(None, 0)
