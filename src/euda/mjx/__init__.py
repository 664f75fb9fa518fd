"""The same observations and symmetries in simulators that run on JAX: MJX, MuJoCo Playground, Brax.

    observe = euda.mjx.observe(env)                      # of an euda environment, or of a LimbObservation
    x = jax.jit(jax.vmap(observe, (None, 0)))(mjx_model, batch_of_data)

An extra: `pip install 'euda[mjx]'`.
"""

from euda.mjx.observe import observe as observe
