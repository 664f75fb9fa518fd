"""Functions compiled for one use: without the optimisations that take longer than what they save."""

import jax


def compiled(function, *arguments):
    """What the function gives."""
    options = {"xla_backend_optimization_level": 0, "xla_llvm_disable_expensive_passes": True}
    return jax.jit(function).lower(*arguments).compile(compiler_options=options)(*arguments)
