"""Writes modules.stablehlo: small modules, each with the results that JAX gives.

    python tests/stablehlo/write.py > tests/stablehlo/modules.stablehlo

A module is what JAX prints of a function of constants; behind its own results it returns what they are to be, as
constants. `crates/tfrt/tests/library/stablehlo.rs` runs all and compares. Needs `pip install jax`.
"""

import re

import jax
import jax.numpy as jnp
import numpy
from jax import lax

jax.config.update("jax_enable_x64", True)

X = numpy.array([[1.5, -2.25, 0.0], [3.0, 0.5, -0.75]], numpy.float32)
Y = numpy.array([[0.5, 2.0, -1.0], [1.0, -4.0, 0.25]], numpy.float32)
N = numpy.array([[7, -3, 0], [12, 5, -8]], numpy.int32)
M = numpy.array([[2, 3, -1], [-5, 4, 3]], numpy.int32)
U = numpy.array([1, 255, 4096, 3_000_000_000], numpy.uint32)
B = numpy.array([[True, False, True], [False, False, True]])
C = (X + 1j * Y).astype(numpy.complex64)
T = numpy.arange(24, dtype=numpy.float32).reshape(2, 3, 4)
I = numpy.arange(1 * 5 * 5 * 2, dtype=numpy.float32).reshape(1, 5, 5, 2) % 7 - 3
W = numpy.arange(3 * 3 * 2 * 4, dtype=numpy.float32).reshape(3, 3, 2, 4) % 5 - 2

UNARY = "abs ceil cos exp expm1 floor is_finite log1p logistic neg round sign sin tan tanh square".split()
BINARY = "add sub mul div max min rem atan2 nextafter".split()
INTEGERS = "add sub mul div max min rem bitwise_and bitwise_or bitwise_xor shift_left shift_right_arithmetic".split()


def conv(x, w, numbers=("NHWC", "HWIO", "NHWC"), strides=(1, 1), padding="SAME", **more):
    return lax.conv_general_dilated(x, w, strides, padding, dimension_numbers=numbers, **more)


def cases():
    for name in UNARY:
        yield name, (lambda f=getattr(lax, name): f(X))
    for name in ("sqrt", "rsqrt", "cbrt", "log"):
        yield name, (lambda f=getattr(lax, name): f(abs(X) + 0.25))
    for name in BINARY:
        yield name, (lambda f=getattr(lax, name): f(X, Y))
    for name in INTEGERS:
        yield f"{name} of integers", (lambda f=getattr(lax, name): f(N, abs(M) if "shift" in name else M))
    for name in ("eq", "ne", "lt", "le", "gt", "ge"):
        yield name, (lambda f=getattr(lax, name): f(N, M))
        if name in ("lt", "ge"):
            yield f"{name} of floats", (lambda f=getattr(lax, name): f(X, Y))
    yield "pow", lambda: lax.pow(abs(X), Y)
    yield "integer_pow", lambda: lax.integer_pow(X, 3)
    yield "population_count", lambda: lax.population_count(U)
    yield "clz", lambda: lax.clz(U)
    yield "shift_right_logical", lambda: lax.shift_right_logical(U, numpy.uint32(3))
    yield "bitwise_not", lambda: lax.bitwise_not(N)
    yield "logic", lambda: ((B & ~B[::-1]) | (B ^ True), jnp.any(B, 0), jnp.all(B, 1))
    for kind in (jnp.float16, jnp.bfloat16, jnp.float64, jnp.int8, jnp.uint8, jnp.int64, bool):
        yield f"convert to {numpy.dtype(kind)}", lambda kind=kind: jnp.asarray(abs(N)).astype(kind)
    yield "bitcast_convert", lambda: lax.bitcast_convert_type(X, jnp.int32)
    yield "bitcast_convert to bytes", lambda: lax.bitcast_convert_type(U, jnp.uint8)
    yield "reduce_precision", lambda: lax.reduce_precision(X * 1.001, 5, 4)
    yield "clamp", lambda: lax.clamp(numpy.float32(-1), X, Y + 2)
    yield "select", lambda: lax.select(B, X, Y)
    yield "complex arithmetic", lambda: (C * C, C / (C + 2), C - 1, jnp.conj(C))
    yield "complex functions", lambda: (jnp.exp(C), jnp.abs(C), jnp.sqrt(C), jnp.sin(C), jnp.log(C + 3))
    yield "real and imaginary parts", lambda: (lax.real(C), lax.imag(C), lax.complex(X, Y))
    yield "broadcast_in_dim", lambda: lax.broadcast_in_dim(X.T, (3, 4, 2), (0, 2))
    yield "reshape and transpose", lambda: (T.reshape(4, 6), jnp.transpose(T, (2, 0, 1)))
    yield "slice", lambda: T[:, 1:3, ::2]
    yield "reverse", lambda: lax.rev(T, (0, 2))
    yield "pad", lambda: lax.pad(X, numpy.float32(9), ((1, 0, 1), (-1, 2, 0)))
    yield "concatenate", lambda: jnp.concatenate([X, Y, X], 1)
    yield "iota", lambda: (lax.iota(jnp.int32, 5), lax.broadcasted_iota(jnp.float32, (2, 3), 1))
    yield "dynamic_slice", lambda: lax.dynamic_slice(T, (1, 2, -1), (1, 2, 3))
    yield "dynamic_update_slice", lambda: lax.dynamic_update_slice(T, T[:1, :2, :2] + 100, (1, 2, 1))
    yield "gather of rows", lambda: jnp.asarray(T)[:, jnp.array([2, 0, 2])]
    yield "gather of elements", lambda: jnp.take_along_axis(jnp.asarray(X), jnp.array([[2, 0], [1, 1]]), 1)
    yield "gather outside", lambda: jnp.asarray(X).at[jnp.array([0, 5])].get(mode="clip")
    yield "gather of windows", lambda: jax.vmap(lambda i: lax.dynamic_slice(T[0], (i, i), (2, 2)))(jnp.array([0, 1]))
    for name in ("add", "multiply", "min", "max", "set"):
        f = lambda name=name: getattr(jnp.asarray(X).at[jnp.array([1, 0, 1 if name != "set" else 7])], name)(Y[:1])
        yield f"scatter {name}", f
    yield "scatter_add of integers", lambda: jnp.asarray(N).at[:, jnp.array([0, 2])].add(M[:, :2])
    yield "scatter apply", lambda: jnp.asarray(X).at[jnp.array([1])].apply(jnp.sin)
    for name in ("sum", "prod", "max", "min", "mean", "argmax", "argmin"):
        yield f"reduce {name}", lambda name=name: getattr(jnp, name)(T[:, ::-1] - 7, axis=1)
    yield "reduce of integers", lambda: (jnp.sum(N, 1), jnp.prod(M), jnp.max(N), jnp.min(M, 0))
    yield "reduce by any body", lambda: lax.reduce(T / 16, numpy.float32(0), lambda a, b: a + b + a * b, (2,))
    yield "reduce_window max", lambda: lax.reduce_window(I, numpy.float32(-numpy.inf), lax.max, (1, 3, 3, 1), (1, 2, 2, 1), "SAME")
    yield "reduce_window add", lambda: lax.reduce_window(I, numpy.float32(0), lax.add, (1, 2, 2, 1), (1, 1, 1, 1), "VALID")
    yield "reduce_window of a long window", lambda: lax.reduce_window(jnp.arange(40.0), 0.0, lax.add, (33,), (2,), "VALID")
    yield "cumulative sums", lambda: (jnp.cumsum(T, 1), lax.cummax(jnp.asarray(X), 1), lax.cumprod(jnp.asarray(Y), 0, reverse=True))
    yield "gradient of a pool", lambda: jax.grad(
        lambda x: lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID").sum()
    )(I + jnp.arange(50.0).reshape(I.shape) / 100)
    yield "dot", lambda: X @ Y.T
    yield "dot of batches", lambda: jnp.einsum("bij,bkj->bik", T, T[:, :2])
    yield "dot of any dimensions", lambda: jnp.einsum("abc,cdb->ad", T, T.transpose(2, 0, 1))
    yield "dot of integers", lambda: N @ M.T
    yield "dot of halves", lambda: jnp.matmul(jnp.asarray(X, jnp.bfloat16), jnp.asarray(Y.T, jnp.bfloat16))
    yield "dot of complex numbers", lambda: C @ C.T
    yield "convolution", lambda: conv(I, W)
    yield "convolution with strides", lambda: conv(I, W, strides=(2, 1), padding=((1, 2), (0, 1)))
    yield "convolution with dilations", lambda: conv(I, W, padding=((1, 2), (0, 1)), rhs_dilation=(2, 1), lhs_dilation=(1, 2))
    yield "convolution of groups", lambda: conv(I, W[:, :, :1], feature_group_count=2)
    yield "convolution, channels first", lambda: conv(I.transpose(0, 3, 1, 2), W, ("NCHW", "HWIO", "NHWC"))
    yield "convolution of groups of the batch", lambda: conv(jnp.concatenate([I, -I]), W, batch_group_count=2)
    yield "convolution along one dimension", lambda: conv(I[0], W[0], ("NWC", "WIO", "NWC"), (1,))
    yield "transposed convolution", lambda: lax.conv_transpose(I, W, (2, 2), "SAME")
    yield "sort", lambda: (jnp.sort(X, 1), jnp.sort(N, 0), -jnp.sort(-X))
    yield "argsort", lambda: (jnp.argsort(X, 1), jnp.argsort(N.reshape(-1)))
    yield "sort by two keys", lambda: lax.sort((jnp.array([2, 1, 2, 1, 0]), jnp.array([3, 9, 1, 4, 7]), jnp.arange(5)), num_keys=2)
    yield "top_k", lambda: lax.top_k(X, 2)
    yield "while", lambda: lax.while_loop(lambda s: s[0] < 5, lambda s: (s[0] + 1, s[1] * 2), (0, jnp.asarray(X)))
    yield "fori", lambda: lax.fori_loop(0, 4, lambda i, x: x + i, jnp.asarray(X))
    yield "scan", lambda: lax.scan(lambda c, x: (c + x, c * x), jnp.zeros((3, 4)), jnp.asarray(T))
    yield "cond", lambda: lax.cond(jnp.sum(X) > 1, lambda x: x + 1, lambda x: x - 1, X)
    yield "switch", lambda: [lax.switch(i, [lambda x: x, lambda x: -x, lambda x: x * 3], X) for i in (0, 1, 9)]
    yield "calls", lambda: jax.jit(lambda x: jax.nn.relu(x) + jax.nn.softmax(x))(X)
    yield "random bits", lambda: jax.random.bits(jax.random.PRNGKey(3), (5,))
    yield "random normal", lambda: jax.random.normal(jax.random.PRNGKey(4), (2, 3))
    yield "rng_bit_generator", lambda: lax.rng_bit_generator(jnp.array([1, 2, 3, 4], jnp.uint32), (6,))[1] * 0
    yield "fft", lambda: (jnp.fft.fft(C), jnp.fft.ifft(C), jnp.fft.rfft(X), jnp.fft.irfft(C, 4), jnp.fft.fft2(C))
    yield "cholesky", lambda: jnp.linalg.cholesky(X @ X.T + 3 * numpy.eye(2, dtype=numpy.float32))
    yield "triangular_solve", lambda: jax.scipy.linalg.solve_triangular(
        numpy.array([[2.0, 0], [1, 4]], numpy.float32), X, lower=True
    )
    yield "inverse", lambda: jnp.linalg.inv(numpy.array([[2.0, 1, 0], [1, 3, 1], [0, 1, 4]]))
    yield "special functions", lambda: (lax.erf(X), lax.erfc(X), lax.lgamma(abs(X) + 1), lax.erf_inv(X / 4), lax.digamma(abs(X) + 1))
    yield "Bessel function", lambda: tuple(
        lax.bessel_i1e(numpy.array([0, -0.5, 3, 7.9, -8, 8.1, 30, -1000, numpy.inf, numpy.nan], kind))
        for kind in (numpy.float32, numpy.float64)
    )
    yield "hyperbolic functions", lambda: (jnp.sinh(X), jnp.cosh(X), jnp.arcsinh(X), jnp.arctanh(X / 4), jnp.arcsin(X / 4))
    yield "layer norm", lambda: (T - T.mean(-1, keepdims=True)) * lax.rsqrt(T.var(-1, keepdims=True) + 1e-5)
    yield "gelu", lambda: (jax.nn.gelu(X), jax.nn.gelu(X, approximate=False))
    yield "attention", lambda: jax.nn.softmax(T @ T.transpose(0, 2, 1) / 20) @ T


def element(value):
    """Returns the name of a type, and the elements as text."""
    names = {"bool": "i1", "float16": "f16", "bfloat16": "bf16", "complex64": "complex<f32>", "complex128": "complex<f64>"}
    name = str(value.dtype)
    kind = names.get(name) or re.sub("^uint", "ui", re.sub("^int", "i", re.sub("^float", "f", name)))
    data = value.astype(numpy.uint8) if name == "bool" else value
    if value.size == 0:
        return kind, "dense<>"
    if name == "bool":
        return kind, "dense<" + nested(value, lambda one: "true" if one else "false") + ">"
    return kind, 'dense<"0x' + numpy.ascontiguousarray(data).tobytes().hex().upper() + '">'


def nested(value, show):
    if value.ndim == 0:
        return show(value[()])
    return "[" + ", ".join(nested(one, show) for one in value) + "]"


def main():
    chunks = []
    for name, function in cases():
        try:
            text = jax.jit(function).lower().as_text()
        except Exception as error:
            raise SystemExit(f"{name}: {error}") from error
        results = [numpy.asarray(value) for value in jax.tree_util.tree_leaves(jax.jit(function)())]
        head, rest = text.split("@main() -> ", 1)
        signature, rest = rest.split(" {\n", 1)
        body, tail = rest.split("\n    return ", 1)
        returned, tail = tail.split("\n", 1)
        values, types = returned.split(" : ", 1)
        for index, value in enumerate(results):
            kind, elements = element(value)
            ty = "tensor<" + "".join(f"{size}x" for size in value.shape) + f"{kind}>"
            body += f"\n    %expected_{index} = stablehlo.constant {elements} : {ty}"
            values += f", %expected_{index}"
            types += f", {ty}"
        chunk = f"{head}@main() -> ({types}) {{\n{body}\n    return {values} : {types}\n{tail}"
        chunks.append(f"// {name}\n{chunk}")
    print("\n// -----\n".join(chunks), end="")


main()
