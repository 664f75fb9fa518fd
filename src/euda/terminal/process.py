"""The process, made fit for a command: one thread, one core, a device; before JAX is imported."""

from __future__ import annotations

from euda.runs import machine


def prepare() -> None:
    """Make this process fit for policies: one thread, the CPU, compilations shared between runs."""
    machine.use_one_thread()
    machine.use_device(None)
    machine.cache_compilations()


def prepare_training(core: str | None, device: str | None, cores: int = 1) -> str:
    """Make this process fit for training, on one core, or on as many as it has use for; says where it runs."""
    where = machine.take_core(core, cores)
    prepare()
    if device is None:
        return where
    machine.use_device(device)
    machine.refuse_missing_device()
    return f"{device}, {where}"
