"""Models of Keras, JAX and PyTorch, where these are installed."""

import numpy as np
import pytest

import tfrt

X = np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4)


def test_models_of_keras():
    keras = pytest.importorskip("keras")
    pytest.importorskip("tensorflow")
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(5, activation="gelu"), keras.layers.Dense(2)])
    ours = tfrt.from_keras(model)
    (y,) = ours(X).values()
    np.testing.assert_allclose(y, model(X), rtol=1e-5, atol=1e-6)


def test_functions_of_jax():
    jax = pytest.importorskip("jax")
    weights = np.ones((4, 2), np.float32)

    def layer(w, x):
        return jax.nn.softmax(jax.numpy.tanh(x @ w))

    ours = tfrt.from_jax(layer, weights, X)
    (y,) = ours(weights, X).values()
    np.testing.assert_allclose(y, layer(weights, X), rtol=1e-5)
    (y,) = tfrt.from_jax(jax.jit(lambda x: x + 1), jax.ShapeDtypeStruct((3, 4), np.float32))(X).values()
    np.testing.assert_array_equal(y, X + 1)


def test_modules_of_torch():
    torch = pytest.importorskip("torch")
    module = torch.nn.Sequential(torch.nn.Linear(4, 5), torch.nn.ReLU(), torch.nn.Linear(5, 2)).eval()
    ours = tfrt.from_torch(module, torch.from_numpy(X))
    (y,) = ours(X).values()
    np.testing.assert_allclose(y, module(torch.from_numpy(X)).detach().numpy(), rtol=1e-5, atol=1e-6)
