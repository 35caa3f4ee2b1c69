"""Runs a function of JAX without XLA: ``pip install jax``."""

import jax
import jax.numpy as jnp
import numpy as np

import tfrt


def attention(q, k, v):
    """Causal attention of one head, of tensors [tokens, features]."""
    scores = q @ k.T / jnp.sqrt(q.shape[-1])
    seen = jnp.tril(jnp.ones(scores.shape, bool))
    return jax.nn.softmax(jnp.where(seen, scores, -jnp.inf)) @ v


q, k, v = np.random.default_rng(0).standard_normal((3, 16, 8), np.float32)
# The same as writing jax.jit(attention).lower(q, k, v).as_text() to attention.mlir, and then tfrt.Model("attention.mlir").
ours = tfrt.from_jax(attention, q, k, v)
print(ours)

(out,) = ours(q, k, v).values()
np.testing.assert_allclose(out, attention(q, k, v), rtol=1e-4, atol=1e-6)
print("as JAX:", out.shape)
