"""What holds for every test: this process keeps its cores, and what one test has compiled the next one reads."""

import gc
import os
import shutil
import signal
import tempfile

import compiled_once
import hypothesis
import pytest

from euda import operating_system
from euda.runs import machine

_COMPILED = "JAX_COMPILATION_CACHE_DIR"
_OURS = "EUDA_TEST_COMPILED"  # set by the process that began the session, for those that it starts
hypothesis.settings.register_profile("euda", deadline=None)  # the machine may have other work
hypothesis.settings.load_profile("euda")
SLOW = {
    "test_agents", "test_averaging", "test_bandit", "test_certificate", "test_cli", "test_exports",
    "test_base", "test_commands_training", "test_discovery", "test_documents", "test_environment", "test_examination",
    "test_group_augmentation", "test_invariance", "test_launch", "test_mend",
    "test_mounted_robots", "test_near", "test_premise", "test_report", "test_results", "test_resume", "test_robots",
    "test_saved", "test_segnn", "test_study_robots", "test_symmetry_export", "test_training", "test_usual_method",
    "test_wheel",
}  # fmt: skip
"""Modules whose tests train, certify, draw or start programs: `make quick` leaves them out."""


def pytest_ignore_collect(collection_path, config):
    """Modules of which `make quick` runs nothing are not even imported; None leaves the others to pytest."""
    return True if config.option.markexpr == "not slow" and collection_path.stem in SLOW else None


def pytest_collection_modifyitems(items):
    """Mark the tests of slow modules."""
    for item in items:
        if item.path.stem in SLOW:
            item.add_marker(pytest.mark.slow)


_COMPILE_FAST = (
    "--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true --xla_cpu_use_fusion_emitters=false"
    " --xla_cpu_parallel_codegen_split_count=1 --xla_cpu_use_onednn=false"
    " --xla_cpu_multi_thread_eigen=false"  # as in programs that tests start: they share what is compiled
)
"""Compiling the updates of tiny networks took most of the time; so it takes a quarter. The same but for rounding."""


def pytest_configure(config):
    """One folder for all processes of a session, those that tests start included; JAX reads it when imported."""
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        # A shell has commands in its background (`&`, nohup) ignore Ctrl-C, and every program they start inherits that;
        # tests send Ctrl-C to programs.
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if _COMPILE_FAST not in os.environ.get("XLA_FLAGS", ""):
        os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} {_COMPILE_FAST}".strip()
    gc.set_threshold(50_000)  # most objects are modules and tests and stay; looking through them took 5 % of the time
    compiled_once.install()
    machine.use_one_thread()  # where all cores are busy, OpenBLAS's threads mostly wait for each other, spinning
    if _COMPILED not in os.environ:
        os.environ[_COMPILED] = os.environ[_OURS] = tempfile.mkdtemp(prefix="euda-compiled-")
        os.environ["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = "0"
        os.environ["XDG_CACHE_HOME"] = os.environ[_OURS]  # certificates that were made before a run
        config.add_cleanup(lambda: shutil.rmtree(os.environ[_OURS], ignore_errors=True))


@pytest.fixture(autouse=True)
def stay_on_all_cores(monkeypatch):
    """Commands that tests call in this process choose a core for it, and must not get one."""
    monkeypatch.setattr(operating_system, "keep_to_core", lambda *cores: True)
    yield
    while machine._taken:
        machine._taken.pop().release()
