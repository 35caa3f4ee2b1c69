"""Modules that JAX prints, beside JAX: the same results.

    stablehlo_jax.py COMMAND [--filter WORD] [--keep FOLDER] [--times]

Makes modules by `jax.jit(f).lower(*x).as_text()` and leaves them unchanged: networks of Flax's kind written out, training
steps, random numbers, sorts, loops, decompositions, gathers. `COMMAND run --expect` runs each on inputs drawn from a seed,
and compares what it gives with what JAX gives. --times prints the milliseconds of a call, JAX's and ours.

    pip install jax
    python benches/peers/stablehlo_jax.py target/release/tfrt
"""

import argparse
import pathlib
import re
import subprocess
import sys
import tempfile
import time

import jax
import jax.numpy as jnp
import numpy
from jax import lax

TOLERANCE = "1e-4"
CASES = {}


def case(*shapes, dtype=jnp.float32, tolerance=TOLERANCE):
    """Adds a function with the shapes of its arguments."""

    def add(function):
        CASES[function.__name__] = (function, shapes, dtype, tolerance)
        return function

    return add


def dense(x, w, b):
    return x @ w + b


def norm(x, scale, bias):
    mean = x.mean(-1, keepdims=True)
    variance = ((x - mean) ** 2).mean(-1, keepdims=True)
    return (x - mean) * lax.rsqrt(variance + 1e-6) * scale + bias


def conv(x, w, strides=(1, 1), padding="SAME", groups=1, **more):
    return lax.conv_general_dilated(
        x, w, strides, padding, dimension_numbers=("NHWC", "HWIO", "NHWC"), feature_group_count=groups, **more
    )


@case((8, 784), (784, 128), (128,), (128, 10), (10,))
def mlp(x, w1, b1, w2, b2):
    return jax.nn.softmax(dense(jax.nn.relu(dense(x, w1, b1)), w2, b2))


@case((2, 28, 28, 1), (3, 3, 1, 8), (3, 3, 8, 16), (784, 10))
def cnn_with_pools(x, w1, w2, w3):
    x = jax.nn.relu(conv(x, w1))
    x = lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
    x = jax.nn.relu(conv(x, w2))
    x = lax.reduce_window(x, 0.0, lax.add, (1, 2, 2, 1), (1, 2, 2, 1), "VALID") / 4
    return x.reshape(2, -1) @ w3


@case((1, 16, 16, 8), (3, 3, 8, 8), (8,), (8,), (3, 3, 8, 16), (1, 1, 8, 16))
def residual_block(x, w1, scale, bias, w2, w3):
    y = jax.nn.relu(conv(x, w1) * scale + bias)
    return jax.nn.relu(conv(y, w2, (2, 2)) + conv(x, w3, (2, 2)))


@case((1, 8, 8, 4), (3, 3, 1, 4), (3, 3, 4, 6))
def depthwise_and_transposed(x, w1, w2):
    x = conv(x, w1, groups=4)
    return lax.conv_transpose(x, w2, (2, 2), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))


@case((2, 16, 32), (32, 96), (32, 32), (32,), (32,), (32, 64), (64, 32))
def transformer_block(x, wqkv, wo, scale, bias, w1, w2):
    y = norm(x, scale, bias)
    q, k, v = jnp.split((y @ wqkv).reshape(2, 16, 12, 8), 3, axis=2)
    scores = jnp.einsum("bshd,bthd->bhst", q, k) / jnp.sqrt(8.0)
    mask = jnp.tril(jnp.ones((16, 16), bool))
    weights = jax.nn.softmax(jnp.where(mask, scores, -1e9), axis=-1)
    x = x + jnp.einsum("bhst,bthd->bshd", weights, v).reshape(2, 16, 32) @ wo
    return x + jax.nn.gelu(norm(x, scale, bias) @ w1) @ w2


@case((5, 2, 8), (8, 64), (16, 64), (64,))
def lstm_by_scan(xs, wx, wh, b):
    def step(carry, x):
        h, c = carry
        i, f, g, o = jnp.split(x @ wx + h @ wh + b, 4, axis=-1)
        c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
        h = jax.nn.sigmoid(o) * jnp.tanh(c)
        return (h, c), h

    zero = jnp.zeros((2, 16))
    return lax.scan(step, (zero, zero), xs)[1]


@case((1, 1, 16), (1, 8, 2, 8), (16, 48), (16, 16))
def decode_step_with_cache(x, cache, wqkv, wo):
    q, k, v = jnp.split((x @ wqkv).reshape(1, 1, 6, 8), 3, axis=2)
    keys = lax.dynamic_update_slice(cache, k, (0, 3, 0, 0))
    values = lax.dynamic_update_slice(cache * 0.5, v, (0, 3, 0, 0))
    scores = jnp.einsum("bshd,bthd->bhst", q, keys)
    scores = jnp.where(jnp.arange(8) <= 3, scores, -1e9)
    out = jnp.einsum("bhst,bthd->bshd", jax.nn.softmax(scores), values)
    return out.reshape(1, 1, 16) @ wo, keys


@case((8, 16), (16, 16), (16, 4), (8, 4))
def training_step_of_mlp(x, w1, w2, y):
    def loss(w1, w2):
        return jnp.mean((jnp.tanh(x @ w1) @ w2 - y) ** 2)

    value, (g1, g2) = jax.value_and_grad(loss, (0, 1))(w1, w2)
    return value, w1 - 0.1 * g1, w2 - 0.1 * g2


@case((2, 8, 8, 1), (3, 3, 1, 4), (64, 3), (2, 3))
def training_step_of_cnn(x, w1, w2, y):
    def loss(w1, w2):
        z = jax.nn.relu(conv(x, w1))
        z = lax.reduce_window(z, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
        return -jnp.mean(jnp.sum(y * jax.nn.log_softmax(z.reshape(2, -1) @ w2), -1))

    value, (g1, g2) = jax.value_and_grad(loss, (0, 1))(w1, w2)
    return value, w1 - 0.1 * g1, w2 - 0.1 * g2


@case((4,))
def random_normal_and_uniform(x):
    key = jax.random.PRNGKey(7)
    first, second = jax.random.split(key)
    return x + jax.random.normal(first, (4,)), jax.random.uniform(second, (3, 4))


@case((3, 17))
def sorts(x):
    return jnp.sort(x), jnp.argsort(x, axis=0), lax.top_k(x, 4), jnp.cumsum(x, axis=1)


@case((6,))
def while_and_cond(x):
    def body(state):
        i, x = state
        return i + 1, lax.cond(i % 2 == 0, lambda x: x * 1.5, lambda x: x - 0.25, x)

    return lax.while_loop(lambda state: state[0] < 7, body, (0, x))[1]


@case((5, 5), (5,))
def inverse_and_cholesky(a, b):
    positive = a @ a.T + 5 * jnp.eye(5)
    return jnp.linalg.inv(positive), jnp.linalg.cholesky(positive), jnp.linalg.solve(positive, b)


@case((4, 16))
def real_transform(x):
    y = jnp.fft.rfft(x)
    return jnp.abs(y), jnp.fft.irfft(y * 2.0)


@case((10, 4), (6, 4))
def scatters_and_gathers(x, updates):
    at = jnp.array([1, 3, 3, 9, 0, 5])
    return x.at[at].add(updates), x[at], jax.ops.segment_sum(updates, jnp.array([0, 0, 1, 2, 2, 1]), 3)


@case((4, 8))
def special_functions(x):
    y = jnp.clip(x, -0.9, 0.9)
    return lax.erf(x), jax.scipy.special.gammaln(jnp.abs(x) + 0.5), jnp.sinh(x), lax.erf_inv(y)


@case((8, 16), (16, 8), dtype=jnp.bfloat16, tolerance="2e-2")
def product_of_halves(x, w):
    return (x @ w).astype(jnp.float32)


# Beyond the first ones.


@case((3, 4, 5))
def reductions(x):
    return x.sum((0, 2)), x.max(1), x.argmax(2), x.argmin(0), x.prod(1), (x > 0).any(1), (x > -1).all(0)


@case((6, 7))
def statistics(x):
    return x.std(0), x.var(1), jnp.median(x, axis=1), jax.nn.logsumexp(x, axis=0)


@case((4, 6))
def integers_and_bits(x):
    n = (x * 100).astype(jnp.int32)
    u = n.astype(jnp.uint32)
    return n // 7, n % 7, u >> 3, n >> 2, u ^ (u << 5), lax.population_count(u), lax.clz(u)


@case((3, 5), (3, 5))
def complex_numbers(x, y):
    z = lax.complex(x, y)
    w = jnp.exp(z) * z / (z + 2)
    return w.real, w.imag, jnp.abs(jnp.sqrt(z)), jnp.angle(z)


@case((2, 3, 9))
def associative_scan(x):
    return lax.associative_scan(jnp.multiply, x, axis=2), lax.cummax(x, axis=2), jnp.cumprod(x, axis=1)


@case((7, 3))
def sorts_by_two_keys(x):
    a = jnp.round(x[:, 0])
    return lax.sort((a, x[:, 1], x[:, 2]), num_keys=2)


@case((2, 10, 10, 3))
def resized_and_padded(x):
    y = lax.pad(x, 0.5, ((0, 0, 0), (1, -1, 2), (2, 1, 0), (0, 0, 0)))
    return y, jax.image.resize(x, (2, 5, 5, 3), "bilinear"), x[:, ::-1, 1:8:3]


@case((5, 8), (3, 8))
def distances(x, y):
    return jax.vmap(lambda a: jax.vmap(lambda b: jnp.sum((a - b) ** 2))(y))(x)


@case((6, 6))
def triangular(a):
    lower = jnp.tril(a) + 4 * jnp.eye(6)
    x = jax.scipy.linalg.solve_triangular(lower, a, lower=True)
    y = jax.scipy.linalg.solve_triangular(lower, a, lower=True, trans=1)
    return x, y, jnp.linalg.det(lower), jnp.trace(a), jnp.diag(a)


@case((12,))
def switches(x):
    def one(i, x):
        return lax.switch(i % 3, [lambda x: x + 1, lambda x: x * 2, jnp.sin], x)

    return lax.fori_loop(0, 5, one, x), jnp.roll(x, 3), jnp.interp(x, jnp.arange(4.0), jnp.array([0.0, 2.0, 1.0, 5.0]))


def run(command, folder, name, times):
    function, shapes, dtype, tolerance = CASES[name]
    draw = numpy.random.default_rng(len(name))
    inputs = [jnp.asarray(draw.normal(size=shape) / max(1, shape[0]) ** 0.25, dtype) for shape in shapes]
    jitted = jax.jit(function, keep_unused=True)
    text = jitted.lower(*inputs).as_text()
    folder = folder / name
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "model.mlir").write_text(text)
    outputs = jax.tree_util.tree_leaves(jitted(*inputs))
    results = re.search(r"@main\((.*?)\) -> \(?(.*?)\)? \{\n", text, re.S).group(2)
    names = re.findall(r'jax.result_info = "([^"]*)"', results)
    arguments = [str(command), "run", str(folder / "model.mlir"), "--tolerance", tolerance]
    for index, value in enumerate(inputs):
        path = folder / f"arg{index}.npy"
        numpy.save(path, numpy.asarray(value, numpy.float32) if dtype == jnp.bfloat16 else numpy.asarray(value))
        arguments += ["--input", f"arg{index}={path}"]
    for index, value in enumerate(outputs):
        path = folder / f"out{index}.npy"
        numpy.save(path, numpy.asarray(value))
        arguments += ["--expect", f"{names[index] or f'result{index}'}={path}"]
    done = subprocess.run(arguments, capture_output=True, text=True)
    line = (done.stderr or done.stdout).strip().splitlines()
    verdict = "equal" if done.returncode == 0 else f"DIFFERS: {line[0] if line else done.returncode}"
    if times and done.returncode == 0:
        jitted(*inputs)[0]
        rounds = []
        for _ in range(50):
            start = time.perf_counter()
            jax.block_until_ready(jitted(*inputs))
            rounds.append(time.perf_counter() - start)
        verdict += f"  JAX {sorted(rounds)[25] * 1e3:.3f} ms"
    print(f"{name:28} {len(text.splitlines()):5} lines  {verdict}", flush=True)
    return done.returncode == 0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("command", type=pathlib.Path)
    parser.add_argument("--filter", default="")
    parser.add_argument("--keep", type=pathlib.Path)
    parser.add_argument("--times", action="store_true")
    options = parser.parse_args()
    names = [name for name in CASES if options.filter in name]
    with tempfile.TemporaryDirectory() as folder:
        folder = options.keep or pathlib.Path(folder)
        passed = sum(run(options.command, folder, name, options.times) for name in names)
    print(f"{passed} of {len(names)} modules give what JAX gives")
    sys.exit(passed < len(names))


main()
