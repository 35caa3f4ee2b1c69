"""Runs a module of Flax, whose weights become constants: ``pip install flax``."""

import numpy as np
from flax import nnx

import tfrt


class Mlp(nnx.Module):
    """Two layers with a norm between."""

    def __init__(self, rngs: nnx.Rngs):
        self.up = nnx.Linear(16, 64, rngs=rngs)
        self.norm = nnx.LayerNorm(64, rngs=rngs)
        self.down = nnx.Linear(64, 3, rngs=rngs)

    def __call__(self, x):
        return self.down(nnx.gelu(self.norm(self.up(x))))


module = Mlp(nnx.Rngs(0))
x = np.random.default_rng(0).standard_normal((5, 16), np.float32)
# The function closes over the weights.
ours = tfrt.from_jax(lambda x: module(x), x)
print(ours)

(y,) = ours(x).values()
np.testing.assert_allclose(y, module(x), rtol=1e-4, atol=1e-5)
print("as Flax:", y.shape)
