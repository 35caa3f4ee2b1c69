"""Writes dynamic.stablehlo: modules with extents that are known only when they run, with the results that JAX gives.

    python tests/stablehlo/write_dynamic.py > tests/stablehlo/dynamic.stablehlo

A case is what `jax.export` prints of a function whose arguments have a symbolic extent `b`; behind it stand modules that
return arguments of several extents, and the results that JAX gives for them. `crates/tfrt/tests/library/stablehlo.rs` runs
all and compares. Needs `pip install jax`.
"""

import re

import jax
import jax.numpy as jnp
import numpy
from jax import export, lax
from jax._src.interpreters import mlir
from jaxlib.mlir import ir

jax.config.update("jax_enable_x64", True)

EXTENTS = (1, 2, 5)
F, I = jnp.float32, jnp.int32


def window(x, init, function, sizes, strides=None, padding="VALID", **more):
    return lax.reduce_window(x, init, function, sizes, strides or (1,) * len(sizes), padding, **more)


def conv(x, w, strides=(1,), padding=((2, 2),), **more):
    return lax.conv_general_dilated(x, w, strides, padding, dimension_numbers=("NWC", "WIO", "NWC"), **more)


def hermitian(x):
    """Returns Hermitian matrices, positive definite, made of any."""
    x = x + 1j * jnp.roll(x, 1, -1)
    return x @ jnp.conj(jnp.swapaxes(x, -1, -2)) + 4 * jnp.eye(x.shape[-1], dtype=x.dtype)


def lower_median(keys, values):
    return lax.sort((keys, values, values * 2), dimension=0, num_keys=2)


# Names, functions, and their arguments: extents, of which `b` is unknown, and types.
CASES = [
    ("perceptron", lambda x, w: jax.nn.softmax(jax.nn.relu(x @ w) @ w.T), [("b, 4", F), ("4, 8", F)]),
    ("layer norm", lambda x: (x - x.mean(-1, keepdims=True)) / jnp.sqrt(x.var(-1, keepdims=True) + 1e-5), [("b, 6", F)]),
    ("attention", lambda q, k: jax.nn.softmax(jnp.einsum("bqhd,bkhd->bhqk", q, k)), [("b, 3, 2, 4", F), ("b, 5, 2, 4", F)]),
    ("attention of unknown length", lambda x: jax.nn.softmax(jnp.einsum("qhd,khd->hqk", x, x)), [("b, 2, 4", F)]),
    ("product of all", lambda x, y: jnp.einsum("bij,bij->", x, y), [("b, 2, 3", F), ("b, 2, 3", F)]),
    ("argmax along others", lambda x: (jnp.argmax(x, 1), jnp.argmin(x, 1)), [("b, 7", F)]),
    ("argmax along it", lambda x: (jnp.argmax(x, 0), jnp.argmin(x)), [("b, 3", F)]),
    ("variance", lambda x: (x.var(0), x.mean(), x.max(0)), [("b, 3", F)]),
    ("sums of any body", lambda x: lax.reduce((x, x * 2), (F(0), F(1)), lambda a, b: (a[0] + b[0], a[1] * b[1] + a[0] * 0), (0,)), [("b, 3", F)]),
    ("sort along others", lambda x: (jnp.sort(x), jnp.argsort(x, descending=True)), [("b, 7", F)]),
    ("sort along it", lambda x: (jnp.sort(x, 0), jnp.argsort(x, 0)), [("b, 2", F)]),
    ("sort by two keys", lower_median, [("b", I), ("b", F)]),
    ("rows", lambda x, i: (x[i], jnp.take(x, i, axis=1, mode="clip"), x[:, 1:3]), [("b, 4", F), ("3", I)]),
    ("elements", lambda x, i: jnp.take_along_axis(x, i, 1), [("b, 4", F), ("b, 2", I)]),
    ("windows", lambda x, i: jax.vmap(lambda x, i: lax.dynamic_slice(x, (i,), (2,)))(x, i), [("b, 4", F), ("b", I)]),
    ("an embedding", lambda table, ids: table[ids].sum(1), [("9, 4", F), ("b, 3", I)]),
    ("sums at places", lambda x, i, y: x.at[i].add(y), [("b, 4", F), ("3", I), ("3, 4", F)]),
    ("others at places", lambda x, i, y: (x.at[:, i].set(y), x.at[:, i].max(y), x.at[:, i].multiply(y)), [("b, 4", F), ("2", I), ("b, 2", F)]),
    ("sums of segments", lambda x, i: jax.ops.segment_sum(x, i, num_segments=4), [("b, 2", F), ("b", I)]),
    ("updates", lambda x, y, i: jax.vmap(lambda x, y, i: lax.dynamic_update_slice(x, y, (i,)))(x, y, i), [("b, 5", F), ("b, 2", F), ("b", I)]),
    ("pools of images", lambda x: window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1)), [("b, 4, 4, 2", F)]),
    ("sums in windows", lambda x: window(x, F(0), lax.add, (2, 2), (1, 2), ((1, 1), (0, 1))), [("b, 6", F)]),
    ("sums in long windows", lambda x: (jnp.cumsum(x, 1), window(x, F(0), lax.add, (1, 40), (2, 1), ((0, 0), (39, 0)))), [("b, 40", F)]),
    ("windows with gaps", lambda x: window(x, F(0), lax.add, (3, 2), padding=((2, 3), (0, 0)), window_dilation=(2, 1), base_dilation=(2, 1)), [("b, 4", F)]),
    ("pads", lambda x: lax.pad(x, F(9), ((1, 2, 1), (-1, 0, 2))), [("b, 4", F)]),
    ("pads of its length", lambda x: jnp.pad(x, ((x.shape[0], 1), (0, 0))), [("b, 4", F)]),
    ("convolution", lambda x, w: jax.nn.relu(conv(x, w)), [("b, 8, 3", F), ("3, 3, 4", F)]),
    ("convolution along it", lambda x, w: conv(x, w, (2,)), [("1, b, 3", F), ("4, 3, 2", F)]),
    ("convolution with gaps", lambda x, w: conv(x, w, lhs_dilation=(2,)), [("1, b, 3", F), ("4, 3, 2", F)]),
    ("gradient of a pool", jax.grad(lambda x: (window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1)) ** 2).sum()), [("b, 4, 4, 2", F)]),
    ("numbers and reshapes", lambda x: (jnp.arange(x.shape[0]) * 2, x.reshape(-1), x.reshape(2, -1), jnp.concatenate([x, x + 1])), [("b, 4", F)]),
    ("complex numbers", lambda x: (jnp.fft.fft(x), jnp.abs(x.astype(jnp.complex64) * 1j)), [("b, 4", F)]),
    ("triangular systems", lambda a, b: lax.linalg.triangular_solve(a + 4 * jnp.eye(3, dtype=a.dtype), b, left_side=True, lower=True), [("b, 3, 3", F), ("b, 3, 2", F)]),
    ("a loop", lambda x: lax.fori_loop(0, 3, lambda _, x: jnp.sin(x) + x, x), [("b, 4", F)]),
    ("triangle", lambda x: jnp.tril(x @ x.T), [("b, 3", F)]),
    ("pools padded to their length", lambda x: window(x, -jnp.inf, lax.max, (1, 3, 1), (1, 2, 1), "SAME"), [("2, b, 3", F)]),
    ("sums padded to their length", lambda x: (window(x, F(0), lax.add, (2, 4), (2, 3), "SAME"), window(x, F(0), lax.add, (40, 1), padding="SAME")), [("b, 6", F)]),
    ("cumulative functions along it", lambda x: (jnp.cumsum(x, 0), lax.cummax(x, 0), lax.cumprod(x, 0, reverse=True)), [("b, 3", F)]),
    ("cumulative functions of any body", lambda x: lax.cumlogsumexp(x, 0), [("b, 3", F)]),
    ("cumulative sums of complex numbers", lambda x: jnp.cumsum(x.astype(jnp.complex64) * (1 + 2j), 0), [("b, 3", F)]),
    ("filters of unknown length", lambda x, w: (conv(x, w, padding="SAME"), conv(x, w, (2,), ((7, 7),))), [("2, 6, 3", F), ("b, 3, 2", F)]),
    ("filters of unknown number", lambda x, w: conv(x, w), [("b, 6, 3", F), ("3, 3, b", F)]),
    ("half of the elements", lambda x: lax.top_k(x, (x.shape[1] + 1) // 2), [("3, b", F)]),
    ("all integers in order", lambda x: lax.top_k(x, x.shape[0])[0], [("b", I)]),
    ("factors of complex matrices", lambda x: [jnp.linalg.cholesky(hermitian(x), upper=upper) for upper in (False, True)], [("b, 3, 3", F)]),
]


def constant(value):
    """Returns the elements as text, and the type."""
    kinds = {"bool": "i1", "complex64": "complex<f32>", "complex128": "complex<f64>"}
    name = str(value.dtype)
    kind = kinds.get(name) or re.sub("^uint", "ui", re.sub("^int", "i", re.sub("^float", "f", name)))
    elements = f'"0x{numpy.ascontiguousarray(value).tobytes().hex().upper()}"'
    return elements, "tensor<" + "".join(f"{size}x" for size in value.shape) + f"{kind}>"


def drawn(shape, dtype, b, draw):
    sizes = [b if size == "b" else int(size) for size in shape.split(", ")]
    if dtype == I:
        return draw.integers(-1, 4, sizes).astype(numpy.int32)
    return numpy.round(draw.normal(size=sizes) * 4) / 4 + 0.125 * (draw.integers(0, 2, sizes)).astype(numpy.float32)


def main():
    cases = []
    for name, function, arguments in CASES:
        scope = export.SymbolicScope()
        structs = [
            jax.ShapeDtypeStruct(export.symbolic_shape(shape, scope=scope), dtype) for shape, dtype in arguments
        ]
        jitted = jax.jit(function, keep_unused=True)
        with mlir.make_ir_context():
            # Without locations.
            modules = [str(ir.Module.parse(export.export(jitted)(*structs).mlir_module()))]
        draw = numpy.random.default_rng(len(name))
        for b in EXTENTS:
            inputs = [drawn(shape, dtype, b, draw).astype(dtype) for shape, dtype in arguments]
            outputs = [numpy.asarray(value) for value in jax.tree_util.tree_leaves(jitted(*inputs))]
            lines, types = [], []
            for index, value in enumerate([*inputs, *outputs]):
                elements, ty = constant(value)
                lines.append(f"    %{index} = stablehlo.constant dense<{elements}> : {ty}")
                types.append(ty)
            names = ", ".join(f"%{index}" for index in range(len(types)))
            body = "\n".join(lines)
            types = ", ".join(types)
            modules.append(f"func.func @main() -> ({types}) {{\n{body}\n    return {names} : {types}\n}}\n")
        cases.append(f"// {name}\n" + "// -----\n".join(modules))
    print("// =====\n".join(cases), end="")


main()
