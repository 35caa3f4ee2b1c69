"""The cases of onnx_contrib.py: one operator each, with seeded random operands."""

import dataclasses
import zlib

import numpy
from onnx import TensorProto

F32, F16 = numpy.float32, numpy.float16
KINDS = {"float32": TensorProto.FLOAT, "float16": TensorProto.FLOAT16, "int32": TensorProto.INT32,
         "int8": TensorProto.INT8, "uint8": TensorProto.UINT8, "int64": TensorProto.INT64,
         "int16": TensorProto.INT16, "uint16": TensorProto.UINT16, "float64": TensorProto.DOUBLE,
         "str": TensorProto.STRING, "object": TensorProto.STRING}
MICROSOFT = "com.microsoft"


@dataclasses.dataclass
class Case:
    """A node. An operand is its name, an array or None, and whether it is a constant."""
    operator: str
    label: str
    types: str
    operands: list
    results: list
    kinds: list
    attributes: dict
    domain: str = MICROSOFT
    tolerance: float = 0.0
    # By the name of a result: a dimension, and how much of it is said anything of, for each of dimension 0.
    used: dict = dataclasses.field(default_factory=dict)
    # By the name of an operand or result: its type of 4 bits, in which NumPy has nothing; outside of the node it is of bytes.
    few: dict = dataclasses.field(default_factory=dict)
    # What the definition gives, where ONNX Runtime has no kernel.
    defined: list = None


CASES = []


class Random:
    """Numbers that depend on the operator and the label alone."""

    def __init__(self, operator, label):
        self.random = numpy.random.default_rng(zlib.crc32(f"{operator} {label}".encode()))

    def floats(self, *shape, dtype=F32, scale=1.0, shift=0.0):
        return (self.random.normal(0, 1, shape) * scale + shift).astype(dtype)

    def ints(self, low, high, *shape, dtype=numpy.int32):
        return self.random.integers(low, high, shape).astype(dtype)


def add(operator, label, make, results=("y",), kinds=None, types=(F32,), domain=MICROSOFT, tolerance=0.0, by=None,
        **attributes):
    """Adds a case for each type; `make(random, dtype)` gives operands: an array or a pair with True for a constant. `by` gives
    the results of operands, by the definition."""
    for dtype in types:
        short = {F32: "f32", F16: "f16", numpy.float64: "f64"}.get(dtype, numpy.dtype(dtype).name)
        random = Random(operator, label)
        operands = []
        for index, operand in enumerate(make(random, dtype)):
            value, is_constant = operand if isinstance(operand, tuple) else (operand, False)
            operands.append((f"x{index}", value, is_constant))
        named = [result for result in results if result]
        found = [KINDS[numpy.dtype(dtype).name] if kind is None else KINDS[kind] for kind in (kinds or [None] * len(named))]
        case = Case(operator, f"{label} {short}", short, operands, list(results), found, attributes, domain, tolerance)
        if by:
            case.defined = [by(*[value for _, value, _ in operands])]
        CASES.append(case)


def const(value):
    return value, True


BOTH = (F32, F16)

# Activations.
for shape in [(2, 3, 5), (7,)]:
    add("Gelu", f"{shape}", lambda r, t: [r.floats(*shape, dtype=t, scale=2)], types=BOTH)
    add("QuickGelu", f"{shape}", lambda r, t: [r.floats(*shape, dtype=t, scale=2)], types=BOTH)
    add("QuickGelu", f"{shape} alpha", lambda r, t: [r.floats(*shape, dtype=t)], types=BOTH, alpha=0.7)
    add("FastGelu", f"{shape}", lambda r, t: [r.floats(*shape, dtype=t, scale=2)], types=BOTH)
    add("FastGelu", f"{shape} bias", lambda r, t: [r.floats(*shape, dtype=t), const(r.floats(shape[-1], dtype=t))],
        types=BOTH)
    add("BiasGelu", f"{shape}", lambda r, t: [r.floats(*shape, dtype=t), const(r.floats(shape[-1], dtype=t))], types=BOTH)

# Products.
for flips in [(0, 0), (1, 0), (0, 1), (1, 1)]:
    a = (2, 4, 3) if flips[0] else (2, 3, 4)
    b = (2, 5, 4) if flips[1] else (2, 4, 5)
    add("FusedMatMul", f"batch {flips}", lambda r, t: [r.floats(*a, dtype=t), r.floats(*b, dtype=t)],
        types=(F32, numpy.float64, F16), transA=flips[0], transB=flips[1], alpha=0.5)
    add("FusedMatMul", f"matrix {flips}", lambda r, t: [r.floats(*a[1:], dtype=t), const(r.floats(*b[1:], dtype=t))],
        types=BOTH, transA=flips[0], transB=flips[1])
    for batches in [(1, 0), (0, 1), (1, 1)]:
        # The batch is (2, 6); rows come first where they are turned.
        def operand(rows, columns, is_batch_last, flip):
            own = [rows, columns] if not flip else [columns, rows]
            return (own[0], 2, 6, own[1]) if is_batch_last else (2, 6, own[0], own[1])
        left, right = operand(3, 4, batches[0], flips[0]), operand(4, 5, batches[1], flips[1])
        add("FusedMatMul", f"turned {flips} {batches}", lambda r, t: [r.floats(*left, dtype=t), r.floats(*right, dtype=t)],
            transA=flips[0], transB=flips[1], transBatchA=batches[0], transBatchB=batches[1])
add("FusedMatMul", "vector", lambda r, t: [r.floats(4), r.floats(4, 3)], transA=1)
for name, numbers in [("Relu", {}), ("Tanh", {}), ("Sigmoid", {}), ("LeakyRelu", {"activation_alpha": 0.2}),
                      ("HardSigmoid", {"activation_alpha": 0.3, "activation_beta": 0.4}), ("Elu", {"activation_alpha": 0.7}),
                      ("Softplus", {}), ("Softsign", {}), ("ThresholdedRelu", {"activation_alpha": 0.5})]:
    add("FusedGemm", name, lambda r, t: [r.floats(3, 4), const(r.floats(4, 5)), const(r.floats(5))], activation=name, **numbers)
add("FusedGemm", "all", lambda r, t: [r.floats(4, 3), r.floats(5, 4), r.floats(3, 1)], activation="Relu", alpha=0.5, beta=2.0,
    transA=1, transB=1)
add("FusedGemm", "no bias", lambda r, t: [r.floats(3, 4), r.floats(4, 5)], activation="Tanh")
for name, numbers in [("Relu", None), ("Tanh", None), ("Sigmoid", None), ("LeakyRelu", [0.1]), ("Clip", [-0.5, 0.7]),
                      ("HardSigmoid", [0.25, 0.4])]:
    extra = {} if numbers is None else {"activation_params": numbers}
    add("FusedConv", name, lambda r, t: [r.floats(2, 3, 6, 5), const(r.floats(4, 3, 3, 3)), const(r.floats(4))],
        activation=name, pads=[1, 1, 1, 1], **extra)
add("FusedConv", "summand", lambda r, t: [r.floats(1, 4, 5, 5), const(r.floats(4, 2, 3, 3)), const(r.floats(4)),
    r.floats(1, 4, 3, 3)], activation="Relu", group=2)
add("FusedConv", "summand, no bias", lambda r, t: [r.floats(1, 4, 7, 7), const(r.floats(4, 4, 3, 3)), None,
    r.floats(1, 4, 3, 3)], activation="Relu", strides=[2, 2])
add("FusedConv", "same", lambda r, t: [r.floats(1, 2, 7, 7), const(r.floats(3, 2, 3, 3))], activation="Relu",
    auto_pad="SAME_UPPER", dilations=[2, 2])

# Normalisation.
for domain in ("", MICROSOFT):
    for shape in [(2, 3, 8), (4, 6)]:
        add("SimplifiedLayerNormalization", f"'{domain}' {shape}",
            lambda r, t: [r.floats(*shape, dtype=t), const(r.floats(shape[-1], dtype=t))], types=BOTH, domain=domain)
    add("SimplifiedLayerNormalization", f"'{domain}' deviation", lambda r, t: [r.floats(2, 3, 8), const(r.floats(3, 8))],
        results=("y", "d"), domain=domain, axis=1, epsilon=1e-3)
for bias in (False, True):
    for shape in [(2, 3, 8), (3, 8)]:
        for skip in {shape, (1, *shape[1:]) if len(shape) == 3 else shape, shape[-2:]}:
            add("SkipLayerNormalization", f"{shape} {skip} {bias}", lambda r, t: [
                r.floats(*shape, dtype=t), r.floats(*skip, dtype=t), const(r.floats(8, dtype=t)), const(r.floats(8, dtype=t)),
                const(r.floats(8, dtype=t)) if bias else None], types=BOTH, epsilon=1e-5)
            add("SkipSimplifiedLayerNormalization", f"{shape} {skip} {bias}", lambda r, t: [
                r.floats(*shape, dtype=t), r.floats(*skip, dtype=t), const(r.floats(8, dtype=t)),
                const(r.floats(8, dtype=t)) if bias else None], types=BOTH)
    add("SkipLayerNormalization", f"sum {bias}", lambda r, t: [
        r.floats(2, 3, 8, dtype=t), r.floats(2, 3, 8, dtype=t), const(r.floats(8, dtype=t)), None,
        const(r.floats(8, dtype=t)) if bias else None], results=("y", "", "", "s"), types=BOTH)
    add("SkipSimplifiedLayerNormalization", f"sum {bias}", lambda r, t: [
        r.floats(2, 3, 8, dtype=t), r.floats(2, 3, 8, dtype=t), const(r.floats(8, dtype=t)),
        const(r.floats(8, dtype=t)) if bias else None], results=("y", "", "", "s"), types=BOTH, epsilon=1e-6)


def embeddings(r, t, segments, mask, places):
    mask = numpy.array([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]], numpy.int32) if mask else None
    return [r.ints(0, 11, 2, 5), r.ints(0, 2, 2, 5) if segments else None, const(r.floats(11, 8, dtype=t)),
            const(r.floats(7, 8, dtype=t)), const(r.floats(2, 8, dtype=t)) if segments else None, const(r.floats(8, dtype=t)),
            const(r.floats(8, dtype=t)), mask, r.ints(0, 7, *places) if places else None]


for segments in (False, True):
    for mask in (False, True):
        for places in (None, (2, 5), (1, 5)):
            add("EmbedLayerNormalization", f"{segments} {mask} {places}",
                lambda r, t: embeddings(r, t, segments, mask, places), results=("y", "m"), kinds=(None, "int32"), types=BOTH,
                epsilon=1e-6)
add("EmbedLayerNormalization", "sum", lambda r, t: embeddings(r, t, True, True, None), results=("y", "m", "s"),
    kinds=(None, "int32", None))

# Rotary embeddings.
for interleaved in (0, 1):
    for places in [(1,), (2, 3)]:
        position = lambda r: numpy.array([4], numpy.int64) if places == (1,) else r.ints(0, 12, *places, dtype=numpy.int64)
        tables = lambda r, t, half: [const(r.floats(16, half, dtype=t)), const(r.floats(16, half, dtype=t))]
        add("RotaryEmbedding", f"flat {interleaved} {places}", lambda r, t: [r.floats(2, 3, 16, dtype=t), position(r),
            *tables(r, t, 4)], types=BOTH, interleaved=interleaved)
        add("RotaryEmbedding", f"heads {interleaved} {places}", lambda r, t: [r.floats(2, 2, 3, 8, dtype=t), position(r),
            *tables(r, t, 4)], types=BOTH, interleaved=interleaved)
        add("RotaryEmbedding", f"part {interleaved} {places}", lambda r, t: [r.floats(2, 3, 16, dtype=t), position(r),
            *tables(r, t, 2)], types=BOTH, interleaved=interleaved, num_heads=2, rotary_embedding_dim=4)
add("RotaryEmbedding", "scale", lambda r, t: [r.floats(2, 3, 16), numpy.array([0], numpy.int64), const(r.floats(16, 4)),
    const(r.floats(16, 4))], scale=2.0)

# Attention.
MASKS = {
    "none": lambda r, s, t: None,
    "ends": lambda r, s, t: numpy.array([2, t], numpy.int32),
    "starts": lambda r, s, t: numpy.array([t - 1, t, 1, 0], numpy.int32),
    "keys": lambda r, s, t: numpy.array([[1] * (t - 1) + [0], [0] + [1] * (t - 1)], numpy.int32),
    "rows": lambda r, s, t: r.ints(0, 2, 2, s, t) | numpy.eye(s, t, dtype=numpy.int32),
    "whole": lambda r, s, t: numpy.tril(numpy.ones((2, 1, 8, 8), numpy.int32)),
    "nothing seen": lambda r, s, t: numpy.array([[0] * t, [1] * t], numpy.int32),
}


def attention(r, t, mask, past, bias, added):
    s, total = 4, 4 + past
    return [r.floats(2, s, 6, dtype=t), const(r.floats(6, 24, dtype=t)), const(r.floats(24, dtype=t)) if bias else None,
            MASKS[mask](r, s, total), r.floats(2, 2, 2, past, 4, dtype=t) if past else None,
            r.floats(*added, s, total, dtype=t) if added else None]


for mask in MASKS:
    for past in (0, 3):
        for causal in (0, 1):
            add("Attention", f"{mask} {past} {causal}", lambda r, t: attention(r, t, mask, past, True, None),
                results=("y", "p") if past else ("y",), num_heads=2, unidirectional=causal)
for added in [(2, 2), (1, 2), (1, 1)]:
    add("Attention", f"added {added}", lambda r, t: attention(r, t, "keys", 0, True, added), num_heads=2)
add("Attention", "no bias", lambda r, t: attention(r, t, "none", 0, False, None), results=("y", "p"), num_heads=2)
add("Attention", "scale and filter", lambda r, t: attention(r, t, "ends", 0, True, None), num_heads=2, scale=0.3,
    mask_filter_value=-2.5)
add("Attention", "sizes", lambda r, t: [r.floats(2, 4, 6), const(r.floats(6, 28)), const(r.floats(28))], num_heads=2,
    qkv_hidden_sizes=[8, 8, 12])
add("Attention", "f16", lambda r, t: attention(r, t, "none", 0, True, None), types=(F16,), num_heads=2)


def heads(r, t, mask=None, past=0, bias=False, added=None, keys=4, width=12, form="flat"):
    s, total = 4, keys + past
    q = r.floats(2, s, 8, dtype=t)
    k, v = r.floats(2, keys, 8, dtype=t), r.floats(2, keys, width, dtype=t)
    if form == "cached":
        k, v = r.floats(2, 2, keys, 4, dtype=t), r.floats(2, 2, keys, width // 2, dtype=t)
    if form == "packed":
        q, k, v = r.floats(2, s, 2, 3, 4, dtype=t), None, None
    if form == "pair":
        k, v = r.floats(2, keys, 2, 2, 4, dtype=t), None
    if form != "flat" and form != "cached":
        width = 8
    return [q, k, v, const(r.floats(16 + width, dtype=t)) if bias else None,
            None if mask is None else MASKS[mask](r, s, total), r.floats(*added, s, total, dtype=t) if added else None,
            r.floats(2, 2, past, 4, dtype=t) if past else None, r.floats(2, 2, past, width // 2, dtype=t) if past else None]


for mask in (None, "ends", "keys", "rows"):
    for past in (0, 3):
        for bias in (False, True):
                add("MultiHeadAttention", f"{mask} {past} {bias}",
                lambda r, t: heads(r, t, mask, past, bias, width=8 if past else 12),
                results=("y", "k", "v") if past else ("y",), types=BOTH if mask is None else (F32,), num_heads=2)


def attended(q, k, v, bias=None):
    """The attention of two heads of width 4, of queries, keys and values in one of their forms."""
    if k is None:
        q, k, v = (q[:, :, :, index].reshape(2, 4, 8) for index in range(3))
    elif v is None:
        k, v = (k[:, :, :, index].reshape(2, 4, 8) for index in range(2))
    if bias is not None:
        q, k, v = q + bias[:8], k + bias[8:16], v + bias[16:]
    q, k, v = (x.reshape(2, 4, 2, 4).transpose(0, 2, 1, 3).astype(numpy.float64) for x in (q, k, v))
    scores = numpy.exp(q @ k.transpose(0, 1, 3, 2) / 2)
    y = scores / scores.sum(-1, keepdims=True) @ v
    return y.transpose(0, 2, 1, 3).reshape(2, 4, 8).astype(F32)


for form in ("cached", "packed", "pair"):
    for bias in (False, True):
        add("MultiHeadAttention", f"{form} {bias}", lambda r, t: heads(r, t, None, 0, bias, width=8, form=form),
            by=None if form == "cached" else lambda q, k, v, b, *_: attended(q, k, v, b), num_heads=2)
for added in [(2, 2), (1, 2), (1, 1)]:
    add("MultiHeadAttention", f"added {added}", lambda r, t: heads(r, t, "keys", 0, True, added), num_heads=2)
add("MultiHeadAttention", "other length", lambda r, t: heads(r, t, None, 0, True, keys=7), results=("y", "k", "v"), num_heads=2)
add("MultiHeadAttention", "causal", lambda r, t: heads(r, t, None, 3, True, width=8), results=("y", "k", "v"), num_heads=2,
    unidirectional=1)
add("MultiHeadAttention", "scores", lambda r, t: heads(r, t, "keys", 0, True), results=("y", "", "", "q"), num_heads=2)
add("MultiHeadAttention", "scale and filter", lambda r, t: heads(r, t, "ends", 0, True), num_heads=2, scale=0.3,
    mask_filter_value=-2.5)

# Small integers.
U8, I8 = numpy.uint8, numpy.int8


def whole(r, t, *shape):
    return r.ints(0, 256, *shape, dtype=t) if t == U8 else r.ints(-128, 128, *shape, dtype=t)


def scale(value):
    return const(numpy.array(value, F32))


def zero(t, value):
    return const(numpy.array(value if t == U8 else value - 128, t))


BYTES = (U8, I8)
for operator, step in [("QLinearAdd", 0.08), ("QLinearMul", 0.09)]:
    for shape in [(2, 3, 8), (3, 1), (8,), ()]:
        add(operator, f"{shape}", lambda r, t: [whole(r, t, 2, 3, 8), scale(0.05), zero(t, 120), whole(r, t, *shape),
            scale(0.03), zero(t, 131), scale(step), zero(t, 125)], types=BYTES)
    add(operator, "constant", lambda r, t: [whole(r, t, 2, 3), scale(0.05), zero(t, 120), const(whole(r, t, 2, 3)),
        scale(0.03), zero(t, 131), scale(step), zero(t, 125)], types=BYTES)
    add(operator, "no zeros", lambda r, t: [whole(r, t, 2, 3), scale(0.05), None, whole(r, t, 2, 3), scale(0.03), None,
        scale(step), zero(t, 130)], types=BYTES)
for operator, extra in [("QLinearSigmoid", {}), ("QLinearLeakyRelu", {"alpha": 0.1}), ("QLinearLeakyRelu", {})]:
    step = 1 / 256 if operator == "QLinearSigmoid" else 0.04
    add(operator, f"{extra}", lambda r, t: [whole(r, t, 2, 30), scale(0.05), zero(t, 120), scale(step), zero(t, 3)],
        types=BYTES, **extra)
    add(operator, f"no zeros {extra}", lambda r, t: [whole(r, t, 2, 30), scale(0.05), None, scale(step), zero(t, 9)],
        types=BYTES, **extra)
for axis in (0, 1, -1):
    add("QLinearConcat", f"{axis}", lambda r, t: [scale(0.06), zero(t, 120), whole(r, t, 2, 3, 4), scale(0.05), zero(t, 110),
        whole(r, t, 2, 3, 4), scale(0.06), zero(t, 120), const(whole(r, t, 2, 3, 4)), scale(0.02), zero(t, 7)], types=BYTES,
        axis=axis)
for last in (0, 1):
    shape = (2, 5, 6, 3) if last else (2, 3, 5, 6)
    for extra in [{}, {"pads": [1, 0, 1, 1]}, {"pads": [1, 0, 1, 1], "count_include_pad": 1}, {"ceil_mode": 1},
                  {"auto_pad": "SAME_LOWER"}]:
        add("QLinearAveragePool", f"{last} {extra}", lambda r, t: [whole(r, t, *shape), scale(0.05), zero(t, 120), scale(0.03),
            zero(t, 130)], types=BYTES, channels_last=last, kernel_shape=[3, 2], strides=[2, 1], **extra)
    add("QLinearAveragePool", f"{last} no zeros", lambda r, t: [whole(r, t, *shape), scale(0.05), None, scale(0.03),
        zero(t, 99)], types=BYTES, channels_last=last, kernel_shape=[2, 2])
    # A quarter of the means lie in the middle between two steps.
    add("QLinearAveragePool", f"{last} ties", lambda r, t: [whole(r, t, *shape), scale(0.0537), zero(t, 120), scale(0.0537),
        zero(t, 120)], types=BYTES, channels_last=last, kernel_shape=[2, 2], strides=[2, 2])
    add("QLinearGlobalAveragePool", f"{last}", lambda r, t: [whole(r, t, *shape), scale(0.05), zero(t, 120), scale(0.02),
        zero(t, 130)], types=BYTES, channels_last=last)
for extra in [{}, {"pads": [1, 0, 1, 1]}, {"ceil_mode": 1}, {"auto_pad": "SAME_UPPER"}, {"dilations": [2, 1]}]:
    add("NhwcMaxPool", f"{extra}", lambda r, t: [whole(r, t, 2, 5, 6, 3)], types=BYTES, kernel_shape=[2, 3], strides=[2, 1],
        **extra)
for last in (0, 1):
    for columns in (False, True):
        for bias in (False, True):
            for extra in [{}, {"pads": [1, 0, 1, 1], "strides": [2, 1]}, {"group": 2}]:
                def conv(r, t):
                    n_own = 4 // extra.get("group", 1)
                    steps = const(r.random.uniform(0.01, 0.05, 6).astype(F32)) if columns else scale(0.02)
                    return [whole(r, t, *((2, 5, 6, 4) if last else (2, 4, 5, 6))), scale(0.03), zero(t, 117),
                            const(whole(r, I8, 6, n_own, 3, 2)), steps, const(numpy.zeros(6 if columns else (), I8)),
                            scale(0.9), zero(t, 128), const(r.ints(-3000, 3000, 6)) if bias else None]
                add("QLinearConv", f"{last} {columns} {bias} {extra}", conv, types=BYTES, channels_last=last,
                    kernel_shape=[3, 2], **extra)
for opset in (11, 13):
    for axis in (1, 2, -1):
        add("QLinearSoftmax", f"{opset} {axis}", lambda r, t: [whole(r, t, 2, 3, 7), scale(0.05), zero(t, 120),
            scale(1 / 256), zero(t, 0)], types=BYTES, opset=opset, axis=axis)
    add("QLinearSoftmax", f"{opset} default", lambda r, t: [whole(r, t, 3, 7), scale(0.02), None, scale(1 / 128),
        zero(t, 10)], types=BYTES, opset=opset)
add("QLinearReduceMean", "rows", lambda r, t: [whole(r, t, 2, 3, 7), scale(0.05), zero(t, 120), scale(0.03), zero(t, 128)],
    types=BYTES, axes=[1], keepdims=1, by=lambda x, s, z, t, y: numpy.clip(numpy.rint(
        ((x.astype(F32) - z) * s).mean(1, keepdims=True) / t) + y, numpy.iinfo(x.dtype).min, numpy.iinfo(x.dtype).max
    ).astype(x.dtype))
add("QLinearWhere", "all", lambda r, t: [r.ints(0, 2, 2, 3, 4, dtype=bool), whole(r, t, 2, 3, 4), scale(0.05), zero(t, 120),
    whole(r, t, 3, 1), scale(0.03), zero(t, 100), scale(0.05), zero(t, 115)], types=BYTES)
for flips in [(0, 0), (1, 0), (0, 1)]:
    for bias in (False, True):
        for given in (False, True):
            for columns in (False, True):
                def gemm(r, t):
                    steps = const(r.random.uniform(0.01, 0.05, 5).astype(F32)) if columns else scale(0.02)
                    zeros = const(whole(r, t, 5)) if columns else zero(t, 130)
                    return [whole(r, t, *((4, 3) if flips[0] else (3, 4))), scale(0.03), zero(t, 117),
                            const(whole(r, t, *((5, 4) if flips[1] else (4, 5)))), steps, zeros,
                            const(r.ints(-3000, 3000, 5)) if bias else None, scale(0.1) if given else None,
                            zero(t, 128) if given else None]
                add("QGemm", f"{flips} {bias} {given} {columns}", gemm, kinds=(None if given else "float32",), types=BYTES,
                    transA=flips[0], transB=flips[1], alpha=0.5 if bias else 1.0)
for columns in (False, True):
    for zeros in (False, True):
        for bias in (False, True):
            def right(r, t):
                return [const(r.random.uniform(0.01, 0.05, 5).astype(F32)) if columns else scale(0.02)]
            def zero_of(r, t):
                return (const(whole(r, t, 5)) if columns else zero(t, 130)) if zeros else None
            add("MatMulIntegerToFloat", f"{columns} {zeros} {bias}", lambda r, t: [whole(r, U8, 2, 3, 4),
                const(whole(r, t, 4, 5)), scale(0.03), *right(r, t), zero(U8, 120) if zeros else None, zero_of(r, t),
                const(r.floats(5)) if bias else None], kinds=("float32",), types=BYTES)
            add("DynamicQuantizeMatMul", f"{columns} {zeros} {bias}", lambda r, t: [r.floats(2, 3, 4),
                const(whole(r, t, 4, 5)), *right(r, t), zero_of(r, t), const(r.floats(5)) if bias else None],
                kinds=("float32",), types=BYTES)
for mask in ("none", "ends", "keys", "starts", "rows"):
    for past in (0, 3):
        for causal in (0, 1):
            add("QAttention", f"{mask} {past} {causal}", lambda r, t: [whole(r, U8, 2, 4, 6), const(whole(r, t, 6, 24)),
                const(r.floats(24)), scale(0.02), scale(0.01), MASKS[mask](r, 4, 4 + past), zero(U8, 125), zero(t, 128),
                r.floats(2, 2, 2, past, 4) if past else None], results=("y", "p") if past else ("y",),
                kinds=("float32",) * (2 if past else 1), types=BYTES, num_heads=2, unidirectional=causal)
add("QAttention", "columns", lambda r, t: [whole(r, U8, 2, 4, 6), const(whole(r, t, 6, 24)), const(r.floats(24)), scale(0.02),
    const(r.random.uniform(0.01, 0.02, 24).astype(F32)), None, zero(U8, 125), const(numpy.zeros(24, t))], kinds=("float32",),
    types=BYTES, num_heads=2)
for segments in (False, True):
    for mask in (False, True):
        add("QEmbedLayerNormalization", f"{segments} {mask}", lambda r, t: [
            r.ints(0, 11, 2, 5), r.ints(0, 2, 2, 5) if segments else None, const(whole(r, t, 11, 8)), const(whole(r, t, 7, 8)),
            const(whole(r, t, 2, 8)) if segments else None, const(whole(r, t, 8)), const(whole(r, t, 8)),
            numpy.array([[1, 1, 1, 0, 0], [1] * 5], numpy.int32) if mask else None, scale(0.02), scale(0.01),
            scale(0.03) if segments else None, scale(0.01), scale(0.015), zero(t, 128), zero(t, 120),
            zero(t, 127) if segments else None, zero(t, 100), zero(t, 131)], results=("y", "m"), kinds=("float32", "int32"),
            types=BYTES)
for t in (U8, I8, numpy.uint16, numpy.int16):
    low = numpy.iinfo(t).min // 2 + 40
    for columns in (False, True):
        shape = (3,) if columns else ()
        extra = {"axis": 1} if columns else {}
        add("QuantizeLinear", f"{columns}", lambda r, t: [r.floats(2, 3, 4, scale=3), const(r.random.uniform(
            0.01, 0.1, shape).astype(F32)), const(r.ints(low, low + 9, *shape, dtype=t))], types=(t,), **extra)
        add("DequantizeLinear", f"{columns}", lambda r, t: [r.ints(numpy.iinfo(t).min, numpy.iinfo(t).max, 2, 3, 4, dtype=t),
            const(r.random.uniform(0.01, 0.1, shape).astype(F32)), const(r.ints(low, low + 9, *shape, dtype=t))], types=(t,),
            kinds=("float32",), **extra)
add("QuantizeLinear", "no zero", lambda r, t: [r.floats(2, 3, 4, scale=3), scale(0.1)], types=(U8,))
add("DequantizeLinear", "no zero", lambda r, t: [r.ints(0, 100, 2, 3, 4, dtype=t), scale(0.1)],
    types=(U8, I8, numpy.int32), kinds=("float32",))

# Attention with a cache.


def group(r, t, length, past, room, packed=False, heads=4, kv=2, width=16, rotary=False, places=False, lengths=None,
          bias=False, sink=False, norms=False):
    total = length + past
    # Several that follow others are taken of one sequence alone.
    batch = 1 if past and length > 1 else 2
    lengths = numpy.array(lengths if lengths is not None else [total - 1] * batch, numpy.int32)
    query = r.floats(batch, length, (heads + 2 * kv) * width if packed else heads * width, dtype=t)
    new = [None, None] if packed else [r.floats(batch, length, kv * width, dtype=t) for _ in range(2)]
    cache = [r.floats(batch, kv, room, width, dtype=t) for _ in range(2)]
    tables = [const(r.floats(32, width // 2, dtype=t)) for _ in range(2)] if rotary else [None, None]
    position = numpy.tile(numpy.arange(past, total, dtype=numpy.int64), (batch, 1)) if places else None
    return [query, *new, *cache, lengths, const(numpy.array([total], numpy.int32)), *tables, position,
            r.floats(batch, heads, length, total, dtype=t) if bias else None, const(r.floats(heads, dtype=t)) if sink else None,
            None, None, const(r.floats(width, dtype=t)) if norms else None, const(r.floats(width, dtype=t)) if norms else None]


def add_group(label, extra=None, types=(F32,), results=("y", "k", "v"), **options):
    start = len(CASES)
    add("GroupQueryAttention", label, lambda r, t: group(r, t, **options), results=results, types=types,
        num_heads=options.get("heads", 4), kv_num_heads=options.get("kv", 2), **(extra or {}))
    for case in CASES[start:]:
        lengths = case.operands[5][1] + 1
        case.used = {"k": (2, lengths), "v": (2, lengths)}
        if label.startswith("padded"):
            case.used["y"] = 1, lengths


for rotary in (False, True):
    own = {"do_rotary": int(rotary)}
    for packed in (False, True):
        for name, sizes in [("first", (5, 0, 0)), ("first in room", (5, 0, 12)), ("next", (1, 6, 6)),
                            ("next in room", (1, 6, 12)), ("several", (3, 4, 12))]:
            options = dict(zip(("length", "past", "room"), sizes))
            add_group(f"{name} {rotary} {packed}", own, types=BOTH, rotary=rotary, packed=packed, **options)
            add_group(f"{name} {rotary} {packed} window", {**own, "local_window_size": 3}, rotary=rotary, packed=packed,
                      **options)
    add_group(f"shorter {rotary}", own, length=1, past=6, room=12, lengths=[3, 6], rotary=rotary)
    add_group(f"padded {rotary}", own, length=5, past=0, room=12, lengths=[2, 4], rotary=rotary)
add_group("interleaved", {"do_rotary": 1, "rotary_interleaved": 1}, length=1, past=6, room=12, rotary=True)
add_group("places", {"do_rotary": 1}, length=2, past=4, room=12, rotary=True, places=True)
add_group("cap", {"softcap": 2.0, "scale": 0.7}, length=3, past=4, room=12, types=BOTH)
add_group("smooth", {"smooth_softmax": 1}, length=3, past=4, room=12)
add_group("smooth and cap", {"smooth_softmax": 1, "softcap": 1.5, "local_window_size": 2}, length=3, past=4, room=12)
add_group("sinks", length=3, past=4, room=12, sink=True, types=BOTH)
add_group("bias", length=3, past=4, room=12, bias=True)
add_group("bias and sinks", length=3, past=4, room=12, bias=True, sink=True)
add_group("norms", {"do_rotary": 1}, length=3, past=4, room=12, norms=True, rotary=True)
add_group("one head", length=1, past=4, room=12, heads=4, kv=1)
for kind in (1, 2):
    add_group(f"scores {kind}", {"qk_output": kind}, length=3, past=4, room=7, results=("y", "k", "v", "q"))

# Integers of a few bits.


def packed(r, bits, n, k, block, zeros, flat=False):
    blocks = -(-k // block)
    codes = r.ints(0, 256, n, blocks, block * bits // 8, dtype=U8)
    scales = r.random.uniform(0.01, 0.1, (n, blocks)).astype(F32)
    packed_zeros = r.ints(0, 256, n, -(-blocks * bits // 8), dtype=U8)
    return codes, scales.ravel() if flat else scales, packed_zeros.ravel() if flat and zeros else packed_zeros if zeros else None


def add_bits(label, rows, bits, n, k, block, zeros=False, bias=False, floats=False, types=(F32,), flat=False, **extra):
    def make(r, t):
        codes, scales, points = packed(r, bits, n, k, block, zeros, flat)
        if floats:
            points = r.random.uniform(0, 15, scales.shape).astype(t)
        return [r.floats(*rows, k, dtype=t), const(codes), const(scales.astype(t)),
                None if points is None else const(points), None, const(r.floats(n, dtype=t)) if bias else None]
    add("MatMulNBits", label, make, types=types, K=k, N=n, bits=bits, block_size=block, **extra)


for bits in (2, 4, 8):
    for zeros in (False, True):
        add_bits(f"{bits} {zeros}", (2, 3), bits, 24, 64, 32, zeros, types=BOTH)
        add_bits(f"{bits} {zeros} one row", (1, 1), bits, 40, 96, 16, zeros, types=BOTH)
        add_bits(f"{bits} {zeros} ragged", (5,), bits, 7, 70, 16, zeros)
        add_bits(f"{bits} {zeros} bias", (3,), bits, 8, 128, 128, zeros, bias=True)
        add_bits(f"{bits} {zeros} flat", (3,), bits, 8, 64, 16, zeros, flat=True)
add_bits("float zeros", (3,), 4, 8, 64, 32, floats=True)
add_bits("level 1", (3,), 4, 8, 64, 32, accuracy_level=1)
# With zero points, too, ONNX Runtime takes 8 for all of them.
add("MatMulNBits", "groups", lambda r, t: [r.floats(3, 64), *[x if x is None else const(x) for x in packed(r, 4, 8, 64, 16, False)],
    const(r.random.permutation(numpy.repeat(numpy.arange(4), 16)).astype(numpy.int32))], K=64, N=8, bits=4, block_size=16)


def small(values, kind):
    """A tensor of integers of 4 bits, two in a byte."""
    import onnx
    flat = values.astype(numpy.uint8).ravel() & 15
    flat = numpy.append(flat, [0] * (flat.size % 2)).astype(U8)
    return onnx.TensorProto(data_type=kind, dims=values.shape, raw_data=(flat[::2] | flat[1::2] << 4).tobytes())


def named(tensor, name="x0"):
    tensor.name = name
    return tensor


for zeros in (False, True):
    for places in [(3,), (2, 3), ()]:
        for t in (TensorProto.INT4, TensorProto.UINT4):
            low = -8 if t == TensorProto.INT4 else 0
            def make(r, dtype):
                data = named(small(r.ints(low, low + 16, 9, 32), t))
                points = named(small(r.ints(low, low + 16, 9, 2), t), "x3")
                return [const(data), r.ints(-9, 9, *places, dtype=numpy.int64), const(r.random.uniform(
                    0.01, 0.1, (9, 2)).astype(dtype)), const(points) if zeros else None]
            add("GatherBlockQuantized", f"{zeros} {places} {t}", make, types=BOTH, block_size=16)
            CASES[-1].types = CASES[-2].types = f"{'i4' if low else 'u4'}"
        for bits in (4, 8):
            def make(r, dtype):
                return [const(r.ints(0, 256, 9, 32 * bits // 8, dtype=U8)), r.ints(0, 9, *places),
                        const(r.random.uniform(0.01, 0.1, (9, 2)).astype(dtype)),
                        const(r.ints(0, 256, 9, 2 * bits // 8, dtype=U8)) if zeros else None]
            add("GatherBlockQuantized", f"{zeros} {places} {bits} bits", make, types=BOTH, block_size=16, bits=bits)
            CASES[-1].types = CASES[-2].types = f"u8 ({bits} bits)"
add("GatherBlockQuantized", "columns", lambda r, t: [const(r.ints(0, 256, 6, 16, dtype=U8)), r.ints(0, 6, 2),
    const(r.random.uniform(0.01, 0.1, (6, 2)).astype(t))], block_size=16, quantize_axis=-1)


# Along axis 1 of (2, 5, 7): one scale for all, one for each place, and, of the standard alone, one for each block of 2.
SCALES = {"all": ((), {}), "columns": ((5,), {"axis": 1}), "rows": ((2,), {"axis": 0}), "last": ((7,), {"axis": -1}),
          "blocks": ((2, 3, 7), {"axis": 1, "block_size": 2}), "last blocks": ((2, 5, 2), {"axis": 2, "block_size": 4})}
for t, name in ((TensorProto.INT4, "i4"), (TensorProto.UINT4, "u4")):
    low, byte = (-8, I8) if name == "i4" else (0, U8)
    for domain in (MICROSOFT, ""):
        for form, (shape, extra) in SCALES.items():
            for points in ("zeros", "no zeros") if domain == "" or name == "u4" else ("zeros",):
                if "block_size" in extra and domain:
                    continue

                def zeros(r, index):
                    made = named(small(r.ints(low, low + 16, *shape), t), f"x{index}")
                    return const(made) if points == "zeros" else None

                def steps(r, dtype):
                    return const(r.random.uniform(0.1, 0.4, shape).astype(dtype))

                label = f"{name} '{domain}' {form} {points}"
                types = BOTH if domain == "" else (F32,)
                start = len(CASES)
                if points == "zeros" or domain == "":
                    own = {} if points == "zeros" else {"output_dtype": t}
                    add("QuantizeLinear", label, lambda r, dtype: [r.floats(2, 5, 7, dtype=dtype), steps(r, dtype),
                        zeros(r, 2)], types=types, domain=domain, kinds=(numpy.dtype(byte).name,), **extra, **own)
                add("DequantizeLinear", label, lambda r, dtype: [r.ints(low, low + 16, 2, 5, 7, dtype=byte),
                    steps(r, dtype), zeros(r, 2)], types=types, domain=domain, **extra)
                add("DequantizeLinear", f"{label}, constant", lambda r, dtype: [const(named(small(
                    r.ints(low, low + 16, 2, 5, 7), t))), steps(r, dtype), zeros(r, 2)], types=types, domain=domain, **extra)
                for case in CASES[start:]:
                    case.types = name
                    if "constant" not in case.label:
                        case.few["y" if case.operator == "QuantizeLinear" else "x0"] = t


# Recurrent layers.


def lstm(r, t, directions, columns=False, bias=True, states=False, lens=False, peepholes=False, signed=False):
    n, inputs, length, batch = 5, 4, 6, 3
    kind = I8 if signed else U8
    scales = (directions, 4 * n) if columns else (directions,)
    zeros = numpy.full(scales, 0 if signed or columns else 128, kind)
    return [r.floats(length, batch, inputs), const(whole(r, kind, directions, inputs, 4 * n)),
            const(whole(r, kind, directions, n, 4 * n)), const(r.floats(directions, 8 * n)) if bias else None,
            numpy.array([6, 3, 4], numpy.int32) if lens else None, r.floats(directions, batch, n) if states else None,
            r.floats(directions, batch, n) if states else None, const(r.floats(directions, 3 * n)) if peepholes else None,
            const(r.random.uniform(0.004, 0.006, scales).astype(F32)), const(zeros),
            const(r.random.uniform(0.004, 0.006, scales).astype(F32)), const(zeros)]


for direction in ("forward", "reverse", "bidirectional"):
    both = 2 if direction == "bidirectional" else 1
    for name, extra in [("plain", {}), ("columns", {"columns": True, "signed": True}), ("signed", {"signed": True}),
                        ("no bias", {"bias": False}), ("states", {"states": True}), ("lengths", {"lens": True}),
                        ("peepholes", {"peepholes": True}), ("all", {"states": True, "lens": True, "peepholes": True})]:
        add("DynamicQuantizeLSTM", f"{direction} {name}", lambda r, t: lstm(r, t, both, **extra), results=("y", "h", "c"),
            hidden_size=5, direction=direction)
add("DynamicQuantizeLSTM", "clip", lambda r, t: lstm(r, t, 1), hidden_size=5, clip=0.5)
add("DynamicQuantizeLSTM", "coupled", lambda r, t: lstm(r, t, 1), hidden_size=5, input_forget=1)
add("DynamicQuantizeLSTM", "functions", lambda r, t: lstm(r, t, 1), hidden_size=5,
    activations=["HardSigmoid", "Relu", "Tanh"])

# Other tensors.


def pairs(x):
    """Complex numbers as pairs of floats."""
    return numpy.stack([x.real, x.imag], -1).astype(F32)


for upper in (0, 1):
    for k in (None, 1, -2):
        add("Trilu", f"{upper} {k}", lambda r, t: [r.floats(2, 4, 5, dtype=t), None if k is None else numpy.array(
            k, numpy.int64)], types=(F32, numpy.float64), upper=upper)
for shape in [(3, 3), (2, 4, 4), (1, 1)]:
    add("Inverse", f"{shape}", lambda r, t: [r.floats(*shape, dtype=t)], types=(F32, numpy.float64))
    # ONNX Runtime rounds each step.
    add("Inverse", f"{shape}", lambda r, t: [r.floats(*shape, dtype=t)], types=(F16,), tolerance=1e-2)
for t in (F32, numpy.int32, numpy.int64, numpy.float64):
    add("Range", "step", lambda r, t: [numpy.array([2], t), numpy.array([9], t), numpy.array([3], t)], types=(t,))
    add("Range", "none", lambda r, t: [numpy.array(2, t), numpy.array(9, t)], types=(t,))
for mode in ("constant", "reflect", "edge"):
    add("Pad", f"{mode}", lambda r, t: [r.floats(3, 4, dtype=t), const(numpy.array([1, 0, 2, 1], numpy.int64)),
        numpy.array([1.5], t) if mode == "constant" else None], types=(F32, numpy.float64), mode=mode)
add("Pad", "row", lambda r, t: [r.floats(3, 4), const(numpy.array([[1, 0, 2, 1]], numpy.int64))])
add("Pad", "less", lambda r, t: [r.floats(3, 4), const(numpy.array([-1, 0, 2, -1], numpy.int64))])
for axis in (0, 1, -1, 2):
    add("ExpandDims", f"{axis}", lambda r, t: [r.floats(3, 4), const(numpy.array(axis, numpy.int32))])
for t in (F32, numpy.int64):
    add("GatherND", "rows", lambda r, t: [r.floats(3, 4, 2, scale=9, dtype=t), r.ints(0, 3, 5, 2)], types=(t,))
    add("GatherND", "rows of i64", lambda r, t: [r.floats(3, 4, 2, scale=9, dtype=t), r.ints(0, 3, 5, 1, dtype=numpy.int64)],
        types=(t,))
for mode in ("bilinear", "nearest", "bicubic"):
    for padding in ("zeros", "border", "reflection"):
        for corners in (0, 1):
            add("GridSample", f"{mode} {padding} {corners}", lambda r, t: [r.floats(2, 3, 5, 4), r.floats(2, 3, 3, 2)],
                mode=mode, padding_mode=padding, align_corners=corners,
                # Beyond the border ONNX Runtime differs from the reference of the standard.
                tolerance=0.2 if (mode, padding) == ("bicubic", "border") else 0.0)
for sides in (1, 0):
    whole_of = numpy.fft.rfft if sides else numpy.fft.fft
    add("Rfft", f"{sides}", lambda r, t: [r.floats(2, 8)], signal_ndim=1, onesided=sides,
        by=lambda x: pairs(whole_of(x)))
    add("Irfft", f"{sides}", lambda r, t: [pairs(whole_of(r.floats(2, 8)))], signal_ndim=1, onesided=sides,
        by=lambda x: (numpy.fft.irfft if x.shape[1] == 5 else numpy.fft.ifft)(x[..., 0] + 1j * x[..., 1]).real.astype(F32))
add("Rfft", "two", lambda r, t: [r.floats(3, 4, 6)], signal_ndim=2, by=lambda x: pairs(numpy.fft.rfft2(x)))
for name in ("none", "silu"):
    for bias in (False, True):
        for past in (False, True):
            add("CausalConvWithState", f"{name} {bias} {past}", lambda r, t: [r.floats(2, 3, 6, dtype=t),
                const(r.floats(3, 1, 4, dtype=t)), const(r.floats(3, dtype=t)) if bias else None,
                r.floats(2, 3, 3, dtype=t) if past else None], results=("y", "p"), types=BOTH, activation=name)
for rule in ("linear", "gated", "delta", "gated_delta"):
    for past in (False, True):
        add("LinearAttention", f"{rule} {past}", lambda r, t: [r.floats(2, 5, 16, dtype=t), r.floats(2, 5, 8, dtype=t),
            r.floats(2, 5, 8, dtype=t), r.floats(2, 2, 4, 4, dtype=t) if past else None,
            -abs(r.floats(2, 5, 2, dtype=t)) if "gated" in rule else None,
            r.random.uniform(0, 1, (2, 5, 2)).astype(t) if "delta" in rule else None], results=("y", "p"),
            update_rule=rule, q_num_heads=4, kv_num_heads=2)


def experts(r, t, bias, third=False, rows=(7,), wide=1):
    n, hidden, inner = 4, 6, 5
    return [r.floats(*rows, hidden, dtype=t), r.floats(int(numpy.prod(rows)), n, dtype=t),
            const(r.floats(n, inner * wide, hidden, dtype=t)), const(r.floats(n, inner * wide, dtype=t)) if bias else None,
            const(r.floats(n, hidden, inner, dtype=t)), const(r.floats(n, hidden, dtype=t)) if bias else None,
            const(r.floats(n, inner, hidden, dtype=t)) if third else None,
            const(r.floats(n, inner, dtype=t)) if third and bias else None]


for name in ("relu", "gelu", "silu", "identity"):
    for bias in (False, True):
        for normal in (0, 1):
            add("MoE", f"{name} {bias} {normal}", lambda r, t: experts(r, t, bias), types=BOTH, activation_type=name, k=2,
                normalize_routing_weights=normal)
add("MoE", "one, batch", lambda r, t: experts(r, t, True, rows=(2, 3)), activation_type="relu", k=1)


def mixed(x, scores, first, one, second, other, third, more):
    """The mixture of the two best experts, whose activation `silu` is multiplied by a third layer."""
    scores = numpy.exp(scores.astype(numpy.float64))
    scores /= scores.sum(1, keepdims=True)
    y = numpy.zeros(x.shape)
    for row, expert in ((row, expert) for row in range(len(x)) for expert in numpy.argsort(-scores[row])[:2]):
        inner = first[expert] @ x[row] + one[expert]
        inner = inner / (1 + numpy.exp(-inner)) * (third[expert] @ x[row] + more[expert])
        y[row] += scores[row, expert] * (second[expert] @ inner + other[expert])
    return y.astype(x.dtype)


add("MoE", "third", lambda r, t: experts(r, t, True, True), by=mixed, activation_type="silu", k=2)
for fused in (1, 2):
    add("MoE", f"swiglu {fused}", lambda r, t: experts(r, t, True, wide=2), activation_type="swiglu", k=2,
        swiglu_fusion=fused, activation_alpha=1.702, activation_beta=1.0, swiglu_limit=7.0)

# Texts.
TEXTS = ["This is the first document.", "", "Zwölf Boxkämpfer: 12 und 3.5, isn't it?", "a_b  c\n\td", "ab abc abcd abab", "\u0663 x{1}"]


def texts(*shape):
    return lambda r, t: [numpy.resize(numpy.array(TEXTS, object), shape)]


for shape in [(6,), (2, 3), (3, 1)]:
    for mark in (0, 1):
        for label, attributes in [
            ("words", {"tokenexp": "[a-zA-Z0-9_]+"}),
            ("characters", {"tokenexp": "."}),
            ("characters between", {"separators": [""]}),
            ("between", {"separators": [" ", "[,.:]", "\n"]}),
            ("between the longest", {"separators": ["ab|abc", "is"]}),
            ("long words", {"tokenexp": r"\w+", "mincharnum": 3}),
            ("long parts", {"separators": [r"\s+"], "mincharnum": 3}),
            ("the longest", {"tokenexp": "a|ab|abc"}),
            ("letters", {"tokenexp": r"\pL+|\p{Nd}"}),
            ("ASCII", {"tokenexp": r"\b\w\S*"}),
            ("no case", {"tokenexp": "(?i)THIS|ZWÖLF|X\\{[0-9]}"}),
            ("brackets", {"tokenexp": "[[a&&b{]+|[[:digit:]]"}),
            ("quoted", {"tokenexp": r"\Q.\E|x{|\x{62}"}),
            ("nothing", {"tokenexp": "q+"}),
            ("perhaps nothing", {"tokenexp": "b*"}),
        ]:
            add("Tokenizer", f"{label} {shape} {mark}", texts(*shape), types=(object,), mark=mark, pad_value="#",
                **{"mincharnum": 1, **attributes})
