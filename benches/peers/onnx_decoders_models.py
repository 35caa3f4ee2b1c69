"""Seeded decoders of `onnx_decoders.py`, in the layouts that exporters write.

What differs between the layouts of one network is the graph alone: the weights are the same, so that tokens are.
"""

import dataclasses

import numpy
import onnx
from onnx import TensorProto, helper, numpy_helper

LEAST = float(numpy.finfo(numpy.float32).min)
MOST_PLACES = 2048


@dataclasses.dataclass
class Size:
    layers: int
    heads: int
    kv_heads: int
    width: int
    inner: int
    words: int

    @property
    def hidden(self):
        return self.heads * self.width


SIZES = {"small": Size(4, 8, 4, 32, 512, 1000), "medium": Size(8, 8, 4, 64, 1408, 8000)}


class Weights:
    """Weights by name, drawn when they are first asked for: in whatever order, they are the same."""

    def __init__(self):
        self.known = {}

    def __call__(self, name, *extents, scale=None):
        if name not in self.known:
            random = numpy.random.default_rng(list(name.encode()))
            scale = extents[0] ** -0.5 if scale is None else scale
            self.known[name] = (random.standard_normal(extents) * scale).astype(numpy.float32)
        return self.known[name]

    def norm(self, name, n):
        return 1 + self(name, n, scale=0.1)


class Graph:
    """A graph that grows by a node at a time."""

    def __init__(self, size, seed=1):
        self.size, self.weights = size, Weights()
        self.nodes, self.constants, self.inputs, self.outputs = [], {}, [], []

    def add(self, operator, *operands, n=1, domain="", **attributes):
        names = [f"{operator}_{len(self.nodes)}_{index}" for index in range(n)]
        operands = [self.constant(value) if not isinstance(value, str) else value for value in operands]
        self.nodes.append(helper.make_node(operator, operands, names, name=f"/{operator}_{len(self.nodes)}", domain=domain, **attributes))
        return names[0] if n == 1 else names

    def constant(self, value):
        if isinstance(value, (int, list)):
            value = numpy.array(value, numpy.int64)
        elif isinstance(value, float):
            value = numpy.array(value, numpy.float32)
        key = (value.dtype.str, value.shape, value.tobytes())
        return self.constants.setdefault(key, (f"constant_{len(self.constants)}", value))[0]

    def input(self, name, extents, kind=TensorProto.INT64):
        self.inputs.append(helper.make_tensor_value_info(name, kind, extents))
        return name

    def output(self, value, name, extents, kind=TensorProto.FLOAT):
        self.nodes.append(helper.make_node("Identity", [value], [name]))
        self.outputs.append(helper.make_tensor_value_info(name, kind, extents))

    def model(self, opset, contrib=False):
        constants = [numpy_helper.from_array(value, name) for name, value in self.constants.values()]
        graph = helper.make_graph(self.nodes, "decoder", self.inputs, self.outputs, constants)
        imports = [helper.make_opsetid("", opset)] + [helper.make_opsetid("com.microsoft", 1)] * contrib
        return helper.make_model(graph, opset_imports=imports, ir_version=11 if opset >= 24 else 10)

    def pasts(self, layer, width=None, room="past_sequence_length"):
        extents = ["batch_size", self.size.kv_heads, room, width or self.size.width]
        return [self.input(f"past_key_values.{layer}.{part}", extents, TensorProto.FLOAT) for part in ("key", "value")]

    def presents(self, layer, values, width=None, room="total_sequence_length"):
        extents = ["batch_size", self.size.kv_heads, room, width or self.size.width]
        for part, value in zip(("key", "value"), values):
            self.output(value, f"present.{layer}.{part}", extents)

    def logits(self, x):
        self.output(x, "logits", ["batch_size", "sequence_length", self.size.words])

    def extent(self, value, axis):
        return self.add("Gather", self.add("Shape", value), axis, axis=0)

    def list(self, *extents):
        parts = [self.add("Unsqueeze", part, [0]) if isinstance(part, str) else self.constant([part]) for part in extents]
        return self.add("Concat", *parts, axis=0)

    def heads(self, x, n, ids):
        shape = self.list(self.extent(ids, 0), self.extent(ids, 1), n, self.size.width)
        return self.add("Transpose", self.add("Reshape", x, shape), perm=[0, 2, 1, 3])

    def joined(self, x, ids):
        turned = self.add("Transpose", x, perm=[0, 2, 1, 3])
        shape = self.list(self.extent(ids, 0), self.extent(ids, 1), self.size.hidden)
        return self.add("Reshape", turned, shape)

    def product(self, x, name, *extents, **options):
        return self.add("MatMul", x, self.weights(name, *extents, **options))

    def rms(self, x, name):
        mean = self.add("ReduceMean", self.add("Pow", x, 2.0), axes=[-1], keepdims=1)
        root = self.add("Sqrt", self.add("Add", mean, 1e-5))
        normal = self.add("Mul", x, self.add("Div", 1.0, root))
        return self.add("Mul", self.weights.norm(name, self.size.hidden), normal)

    def angles(self, places):
        """Cosines and sines of places, `[batch, 1, length, width]`."""
        steps = frequencies(self.size.width)[None, :, None]
        shape = self.list(self.extent(places, 0), -1, 1)
        steps = self.add("Expand", steps, self.add("Where", self.add("Equal", shape, -1), [1], shape))
        turned = self.add("Cast", self.add("Unsqueeze", places, [1]), to=TensorProto.FLOAT)
        angles = self.add("Transpose", self.add("MatMul", steps, turned), perm=[0, 2, 1])
        both = self.add("Concat", angles, angles, axis=-1)
        return [self.add("Unsqueeze", self.add(kind, both), [1]) for kind in ("Cos", "Sin")]

    def rotated(self, x, angles):
        cosines, sines = angles
        half = self.add("Div", self.extent(x, 3), 2)
        half = self.add("Unsqueeze", self.add("Cast", half, to=TensorProto.INT64), [0])
        first = self.add("Slice", x, [0], half, [3], [1])
        second = self.add("Slice", x, half, [2**63 - 1], [3], [1])
        crossed = self.add("Concat", self.add("Neg", second), first, axis=-1)
        return self.add("Add", self.add("Mul", x, cosines), self.add("Mul", crossed, sines))

    def causal(self, ids, mask, past):
        """What is added to scores, made of extents as PyTorch's exporter writes it."""
        n_new, n_all, n_past = self.extent(ids, 1), self.extent(mask, 1), self.extent(past, 2)
        places = self.add("Range", n_past, self.add("Add", n_past, n_new), 1)
        columns = self.add("Range", 0, n_all, 1)
        is_later = self.add("Greater", columns, self.add("Reshape", places, [-1, 1]))
        least = self.add("ConstantOfShape", self.list(n_new, n_all), value=numpy_helper.from_array(numpy.array([LEAST], numpy.float32)))
        least = self.add("Mul", least, self.add("Cast", is_later, to=TensorProto.FLOAT))
        least = self.add("Unsqueeze", self.add("Unsqueeze", least, [0]), [1])
        least = self.add("Expand", least, self.list(self.extent(ids, 0), 1, 1, 1))
        given = self.add("Unsqueeze", self.add("Unsqueeze", mask, [1]), [2])
        both = self.add("Add", least, self.add("Cast", given, to=TensorProto.FLOAT))
        return self.add("Where", self.add("Equal", both, 0.0), LEAST, least)

    def repeated(self, x, ids):
        """Keys of each group of heads, once for each head."""
        n_times, length = self.size.heads // self.size.kv_heads, self.extent(x, 2)
        batch = self.extent(ids, 0)
        wide = self.list(batch, self.size.kv_heads, n_times, length, self.size.width)
        x = self.add("Expand", self.add("Unsqueeze", x, [2]), wide)
        return self.add("Reshape", x, self.list(batch, self.size.heads, length, self.size.width))

    def attended(self, q, k, v, mask):
        scores = self.add("MatMul", q, self.add("Transpose", k, perm=[0, 1, 3, 2]))
        scores = self.add("Add", self.add("Mul", scores, self.size.width**-0.5), mask)
        return self.add("MatMul", self.add("Softmax", scores, axis=-1), v)

    def gated(self, x, layer, product=None):
        product, s = product or self.product, self.size
        gate = product(x, f"{layer}.gate", s.hidden, s.inner)
        inner = self.add("Mul", gate, self.add("Sigmoid", gate))
        inner = self.add("Mul", inner, product(x, f"{layer}.up", s.hidden, s.inner))
        return product(inner, f"{layer}.down", s.inner, s.hidden)


def frequencies(width):
    return (10000.0 ** (-numpy.arange(0, width, 2) / width)).astype(numpy.float32)


def llama(size, n_places):
    """Llama as Optimum exports it."""
    g = Graph(SIZES[size])
    s = g.size
    ids = g.input("input_ids", ["batch_size", "sequence_length"])
    mask = g.input("attention_mask", ["batch_size", "total_sequence_length"])
    places = g.input("position_ids", ["batch_size", "sequence_length"])
    pasts = [g.pasts(layer) for layer in range(s.layers)]
    x = g.add("Gather", g.weights("words", s.words, s.hidden, scale=1.0), ids)
    added, angles = g.causal(ids, mask, pasts[0][0]), g.angles(places)
    for layer, past in enumerate(pasts):
        y = g.rms(x, f"{layer}.norm1")
        q, k, v = (g.heads(g.product(y, f"{layer}.{part}", s.hidden, n * s.width), n, ids) for part, n in parts_of(s))
        kept = [g.add("Concat", old, new, axis=2) for old, new in zip(past, (g.rotated(k, angles), v))]
        g.presents(layer, kept)
        y = g.attended(g.rotated(q, angles), *(g.repeated(each, ids) for each in kept), added)
        x = g.add("Add", x, g.product(g.joined(y, ids), f"{layer}.o", s.hidden, s.hidden))
        x = g.add("Add", x, g.gated(g.rms(x, f"{layer}.norm2"), layer))
    g.logits(g.product(g.rms(x, "norm"), "head", s.hidden, s.words))
    return g.model(17)


def parts_of(s):
    return ("q", s.heads), ("k", s.kv_heads), ("v", s.kv_heads)


def in_4_bits(g, x, name, *extents):
    """A product by `MatMulNBits`, in blocks of 32, without zero points."""
    weights = g.weights(name, *extents)
    n_in, n_out = weights.shape
    blocks = weights.T.reshape(n_out, n_in // 32, 32)
    largest = numpy.take_along_axis(blocks, numpy.abs(blocks).argmax(2)[..., None], 2)
    scales = largest / -8
    levels = numpy.clip(numpy.round(blocks / scales) + 8, 0, 15).astype(numpy.uint8)
    packed = levels[..., ::2] | levels[..., 1::2] << 4
    return g.add("MatMulNBits", x, packed, scales[..., 0].astype(numpy.float32), domain="com.microsoft", K=n_in, N=n_out, bits=4, block_size=32)


def llama_genai(size, n_places, bits=False):
    """The same Llama as the builder of ONNX Runtime GenAI writes it."""
    g = Graph(SIZES[size])
    s = g.size
    ids = g.input("input_ids", ["batch_size", "sequence_length"])
    mask = g.input("attention_mask", ["batch_size", "total_sequence_length"])
    product = (lambda *words: in_4_bits(g, *words)) if bits else g.product
    lengths = g.add("Cast", g.add("Sub", g.add("ReduceSum", mask, [1], keepdims=1), [1]), to=TensorProto.INT32)
    total = g.add("Cast", g.extent(mask, 1), to=TensorProto.INT32)
    angles = numpy.arange(MOST_PLACES, dtype=numpy.float32)[:, None] * frequencies(s.width)
    x = g.add("Gather", g.weights("words", s.words, s.hidden, scale=1.0), ids)
    y = g.add("SimplifiedLayerNormalization", x, g.weights.norm("0.norm1", s.hidden), axis=-1, epsilon=1e-5, stash_type=1)
    for layer in range(s.layers):
        past = g.pasts(layer, "kv_cache_dim")
        g.weights.known[f"{layer}.qkv"] = numpy.concatenate([g.weights(f"{layer}.{part}", s.hidden, n * s.width) for part, n in parts_of(s)], 1)
        packed = product(y, f"{layer}.qkv")
        y, *kept = g.add(
            "GroupQueryAttention", packed, "", "", *past, lengths, total, numpy.cos(angles), numpy.sin(angles),
            n=3, domain="com.microsoft", num_heads=s.heads, kv_num_heads=s.kv_heads, scale=s.width**-0.5, do_rotary=1, rotary_interleaved=0,
        )  # fmt: skip
        g.presents(layer, kept, "kv_cache_dim")
        y = product(y, f"{layer}.o", s.hidden, s.hidden)
        y, x = skipped(g, x, y, f"{layer}.norm2")
        y = g.gated(y, layer, product)
        y, x = skipped(g, x, y, f"{layer + 1}.norm1" if layer + 1 < s.layers else "norm")
    g.logits(product(y, "head", s.hidden, s.words))
    return g.model(21, contrib=True)


def skipped(g, x, y, name):
    """The normal form of a sum, and the sum."""
    weights = g.weights.norm(name, g.size.hidden)
    made = g.add("SkipSimplifiedLayerNormalization", x, y, weights, n=4, domain="com.microsoft", epsilon=1e-5)
    g.nodes[-1].output[1] = g.nodes[-1].output[2] = ""
    return made[0], made[3]


def llama_scatter(size, n_places):
    """The same Llama by `TensorScatter` and `Attention` of opset 24, with buffers of a fixed extent."""
    g = Graph(SIZES[size])
    s = g.size
    ids = g.input("input_ids", ["batch_size", "sequence_length"])
    places = g.input("position_ids", ["batch_size", "sequence_length"])
    first = g.input("write_indices", ["batch_size"])
    lengths = g.input("nonpad_kv_seqlen", ["batch_size"])
    pasts = [g.pasts(layer, room=n_places) for layer in range(s.layers)]
    x = g.add("Gather", g.weights("words", s.words, s.hidden, scale=1.0), ids)
    angles = g.angles(places)
    # `[batch, 1, length, room]`
    seen = g.add("LessOrEqual", numpy.arange(n_places), g.add("Unsqueeze", places, [1, 3]))
    for layer, past in enumerate(pasts):
        y = g.add("RMSNormalization", x, g.weights.norm(f"{layer}.norm1", s.hidden), axis=-1, epsilon=1e-5)
        q, k, v = (g.heads(g.product(y, f"{layer}.{part}", s.hidden, n * s.width), n, ids) for part, n in parts_of(s))
        new = (g.rotated(k, angles), v)
        kept = [g.add("TensorScatter", old, each, first, axis=2, mode="linear") for old, each in zip(past, new)]
        g.presents(layer, kept, room=n_places)
        y = g.add("Attention", g.rotated(q, angles), *kept, seen, "", "", lengths)
        x = g.add("Add", x, g.product(g.joined(y, ids), f"{layer}.o", s.hidden, s.hidden))
        y = g.add("RMSNormalization", x, g.weights.norm(f"{layer}.norm2", s.hidden), axis=-1, epsilon=1e-5)
        x = g.add("Add", x, g.gated(y, layer))
    y = g.add("RMSNormalization", x, g.weights.norm("norm", s.hidden), axis=-1, epsilon=1e-5)
    g.logits(g.product(y, "head", s.hidden, s.words))
    return g.model(24)


def gpt2(size, n_places):
    """GPT-2 as Optimum exports it."""
    g = Graph(dataclasses.replace(SIZES[size], kv_heads=SIZES[size].heads))
    s = g.size
    ids = g.input("input_ids", ["batch_size", "sequence_length"])
    mask = g.input("attention_mask", ["batch_size", "total_sequence_length"])
    places = g.input("position_ids", ["batch_size", "sequence_length"])
    pasts = [g.pasts(layer) for layer in range(s.layers)]
    x = g.add("Gather", g.weights("words", s.words, s.hidden, scale=1.0), ids)
    x = g.add("Add", x, g.add("Gather", g.weights("places", MOST_PLACES, s.hidden, scale=1.0), places))
    given = g.add("Cast", g.add("Unsqueeze", mask, [1, 2]), to=TensorProto.FLOAT)
    padding = g.add("Mul", g.add("Sub", 1.0, given), LEAST)
    triangle = numpy.tril(numpy.ones((1, 1, MOST_PLACES, MOST_PLACES), bool))
    for layer, past in enumerate(pasts):
        y = norm(g, x, f"{layer}.norm1")
        q, k, v = g.add("Split", conv1d(g, y, f"{layer}.qkv", s.hidden, 3 * s.hidden, ids), [s.hidden] * 3, n=3, axis=2)
        q, k, v = (g.heads(each, s.heads, ids) for each in (q, k, v))
        kept = [g.add("Concat", old, new, axis=2) for old, new in zip(past, (k, v))]
        g.presents(layer, kept)
        n_all, n_new = g.extent(kept[0], 2), g.extent(q, 2)
        begin, end = (g.add("Unsqueeze", each, [0]) for each in (g.add("Sub", n_all, n_new), n_all))
        seen = g.add("Slice", g.add("Slice", triangle, begin, end, [2], [1]), [0], end, [3], [1])
        scores = g.add("MatMul", q, g.add("Transpose", kept[0], perm=[0, 1, 3, 2]))
        scores = g.add("Where", seen, g.add("Div", scores, s.width**0.5), LEAST)
        scores = g.add("Softmax", g.add("Add", scores, padding), axis=-1)
        y = g.joined(g.add("MatMul", scores, kept[1]), ids)
        x = g.add("Add", conv1d(g, y, f"{layer}.o", s.hidden, s.hidden, ids), x)
        y = conv1d(g, norm(g, x, f"{layer}.norm2"), f"{layer}.fc", s.hidden, 4 * s.hidden, ids)
        inner = g.add("Add", y, g.add("Mul", g.add("Pow", y, 3.0), 0.044715))
        inner = g.add("Add", g.add("Tanh", g.add("Mul", inner, 0.7978845608)), 1.0)
        y = g.add("Mul", g.add("Mul", y, 0.5), inner)
        x = g.add("Add", x, conv1d(g, y, f"{layer}.proj", 4 * s.hidden, s.hidden, ids))
    # A head of its own: with that of the words most tokens would be what was before.
    g.logits(g.product(norm(g, x, "norm"), "head", s.hidden, s.words))
    return g.model(17)


def norm(g, x, name):
    n = g.size.hidden
    return g.add("LayerNormalization", x, g.weights.norm(name, n), g.weights(f"{name}.bias", n, scale=0.1), axis=-1, epsilon=1e-5)


def conv1d(g, x, name, n_in, n_out, ids):
    flat = g.add("Reshape", x, g.list(-1, n_in))
    y = g.add("Gemm", flat, g.weights(name, n_in, n_out), g.weights(f"{name}.bias", n_out, scale=0.02))
    return g.add("Reshape", y, g.list(g.extent(ids, 0), g.extent(ids, 1), n_out))


# By name: what makes it, and whether its cache is given room.
DECODERS = {
    "llama": (llama, False),
    "gpt2": (gpt2, False),
    "llama_genai": (llama_genai, False),
    "llama_genai_room": (llama_genai, True),
    "llama_genai_4bit": (lambda size, n_places: llama_genai(size, n_places, bits=True), False),
    "llama_scatter": (llama_scatter, False),
}
