"""The models of onnx_tools.py: eight small ones of different kinds, with random weights by a seed."""

import math

import numpy
import onnx
from onnx import TensorProto, helper, numpy_helper

F32, I64 = numpy.float32, numpy.int64
WORDS, WIDTH, HEADS, LENGTH = 50, 32, 4, 10
KINDS = {"float32": TensorProto.FLOAT, "int64": TensorProto.INT64}


class Graph:
    """A graph as it grows; values are names."""

    def __init__(self, name):
        self.name = name
        self.random = numpy.random.default_rng(len(name) + ord(name[0]))
        self.nodes, self.weights, self.inputs = [], [], []

    def add(self, operator, *inputs, results=1, **attributes):
        """Adds a node; returns its result, or a list of several."""
        names = [f"{operator}_{len(self.nodes)}" + (f"_{index}" if index else "") for index in range(results)]
        self.nodes.append(helper.make_node(operator, list(inputs), names, name=names[0], **attributes))
        return names[0] if results == 1 else names

    def constant(self, value, dtype=I64):
        name = f"c{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(numpy.asarray(value, dtype), name))
        return name

    def weight(self, *shape, scale=None, shift=0.0):
        """A weight; by default sums over it have about the variance of what they sum."""
        scale = scale or math.sqrt(2 / numpy.prod(shape[1:]) if len(shape) > 2 else 1 / shape[0])
        return self.constant(self.random.normal(0, scale, shape) + shift, F32)

    def input(self, name, kind, *shape):
        self.inputs.append(helper.make_tensor_value_info(name, KINDS[kind], shape))
        return name

    def model(self, opset, outputs):
        for name, result in outputs.items():
            self.nodes.append(helper.make_node("Identity", [result], [name], name=name))
        # The names of results stand at the nodes that make them.
        renamed = {result: name for name, result in outputs.items()}
        self.nodes = [node for node in self.nodes if node.name not in outputs]
        for node in self.nodes:
            for values in (node.input, node.output):
                values[:] = [renamed.get(value, value) for value in values]
        infos = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs]
        graph = helper.make_graph(self.nodes, self.name, self.inputs, infos, self.weights)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)
        model = onnx.shape_inference.infer_shapes(model, strict_mode=True)
        onnx.checker.check_model(model)
        return model

    # Parts that several models have, as exporters write them.

    def dense(self, x, inner, outer, scale=None):
        y = self.add("MatMul", x, self.weight(inner, outer, scale=scale))
        return self.add("Add", y, self.weight(outer, scale=0.1))

    def conv(self, x, inner, outer, size, stride=1, group=1, normal=True):
        pad = size // 2
        y = self.add("Conv", x, self.weight(outer, inner // group, size, size), *(
            [] if normal else [self.weight(outer, scale=0.1)]), kernel_shape=[size, size], pads=[pad] * 4,
            strides=[stride, stride], group=group)
        if not normal:
            return y
        variance = self.constant(self.random.uniform(0.5, 1.5, outer), F32)
        scale, shift, mean = (self.weight(outer, scale=0.1, shift=shift) for shift in (1.0, 0.0, 0.0))
        return self.add("BatchNormalization", y, scale, shift, mean, variance)

    def layer_norm(self, x):
        scale, shift = self.weight(WIDTH, scale=0.1, shift=1.0), self.weight(WIDTH, scale=0.1)
        return self.add("LayerNormalization", x, scale, shift, axis=-1, epsilon=1e-5)

    def heads(self, x):
        extents = self.constant([0, 0, HEADS, WIDTH // HEADS])
        return self.add("Transpose", self.add("Reshape", x, extents), perm=[0, 2, 1, 3])

    def attention(self, x, mask):
        """Attention of a sequence to itself, with a mask that is added to the scores."""
        q, k, v = (self.heads(self.dense(x, WIDTH, WIDTH)) for _ in range(3))
        scores = self.add("MatMul", q, self.add("Transpose", k, perm=[0, 1, 3, 2]))
        scores = self.add("Div", scores, self.constant(math.sqrt(WIDTH // HEADS), F32))
        weights = self.add("Softmax", self.add("Add", scores, mask), axis=-1)
        merged = self.add("Transpose", self.add("MatMul", weights, v), perm=[0, 2, 1, 3])
        return self.dense(self.add("Reshape", merged, self.constant([0, 0, WIDTH])), WIDTH, WIDTH)

    def gelu(self, x):
        """Gelu by the error function."""
        y = self.add("Erf", self.add("Div", x, self.constant(math.sqrt(2), F32)))
        y = self.add("Mul", x, self.add("Add", y, self.constant(1, F32)))
        return self.add("Mul", y, self.constant(0.5, F32))

    def fast_gelu(self, x):
        """Gelu by the hyperbolic tangent."""
        cube = self.add("Mul", self.add("Pow", x, self.constant(3, F32)), self.constant(0.044715, F32))
        inner = self.add("Mul", self.add("Add", x, cube), self.constant(math.sqrt(2 / math.pi), F32))
        y = self.add("Add", self.add("Tanh", inner), self.constant(1, F32))
        return self.add("Mul", self.add("Mul", x, self.constant(0.5, F32)), y)


def mlp(opset):
    g = Graph("mlp")
    x = g.input("x", "float32", "batch", 24)
    for inner, outer, function in [(24, 64, "Relu"), (64, 64, "Tanh"), (64, 48, "LeakyRelu")]:
        x = g.add(function, g.add("Gemm", x, g.weight(inner, outer), g.weight(outer, scale=0.1)))
    y = g.add("Sigmoid", g.dense(x, 48, 32))
    return g.model(opset, {"y": g.dense(y, 32, 10)})


def resnet(opset):
    g = Graph("resnet")
    x = g.add("Relu", g.conv(g.input("x", "float32", "batch", 3, 32, 32), 3, 16, 7, stride=2))
    x = g.add("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    for inner, outer, stride in [(16, 16, 1), (16, 32, 2)]:
        y = g.add("Relu", g.conv(x, inner, outer, 3, stride))
        y = g.conv(y, outer, outer, 3)
        short = x if inner == outer else g.conv(x, inner, outer, 1, stride)
        x = g.add("Relu", g.add("Add", y, short))
    x = g.add("Flatten", g.add("GlobalAveragePool", x))
    return g.model(opset, {"y": g.add("Gemm", x, g.weight(10, 32), g.weight(10, scale=0.1), transB=1)})


def mobilenet(opset):
    g = Graph("mobilenet")
    clip = lambda x: g.add("Clip", x, g.constant(0, F32), g.constant(6, F32))
    x = clip(g.conv(g.input("x", "float32", "batch", 3, 32, 32), 3, 16, 3, stride=2))
    for stride in (1, 2):
        y = clip(g.conv(x, 16, 32, 1))
        y = g.add("HardSwish", g.conv(y, 32, 32, 3, stride, group=32))
        # Squeeze and excite.
        s = g.add("Relu", g.conv(g.add("GlobalAveragePool", y), 32, 8, 1, normal=False))
        y = g.add("Mul", y, g.add("HardSigmoid", g.conv(s, 8, 32, 1, normal=False), alpha=1 / 6))
        y = g.conv(y, 32, 16, 1)
        x = g.add("Add", x, y) if stride == 1 else y
    x = g.add("ReduceMean", x, axes=[2, 3], keepdims=0) if opset < 18 else g.add(
        "ReduceMean", x, g.constant([2, 3]), keepdims=0)
    return g.model(opset, {"y": g.add("Softmax", g.dense(x, 16, 10, scale=2), axis=-1)})


def bert(opset):
    g = Graph("bert")
    ids, kinds, mask = (g.input(name, "int64", "batch", LENGTH) for name in ("ids", "kinds", "mask"))
    words, segments = g.weight(WORDS, WIDTH, scale=1), g.weight(2, WIDTH, scale=1)
    x = g.add("Add", g.add("Gather", words, ids), g.add("Gather", segments, kinds))
    x = g.layer_norm(g.add("Add", x, g.weight(LENGTH, WIDTH, scale=1)))
    seen = g.add("Cast", g.add("Unsqueeze", mask, g.constant([1, 2])), to=TensorProto.FLOAT)
    added = g.add("Mul", g.add("Sub", g.constant(1, F32), seen), g.constant(-10000, F32))
    for _ in range(2):
        x = g.layer_norm(g.add("Add", g.attention(x, added), x))
        y = g.dense(g.gelu(g.dense(x, WIDTH, 4 * WIDTH)), 4 * WIDTH, WIDTH)
        x = g.layer_norm(g.add("Add", y, x))
    first = g.add("Gather", x, g.constant(0), axis=1)
    return g.model(opset, {"hidden": x, "pooled": g.add("Tanh", g.dense(first, WIDTH, WIDTH))})


def gpt(opset):
    g = Graph("gpt")
    ids = g.input("ids", "int64", "batch", LENGTH)
    table = g.weight(WORDS, WIDTH, scale=1)
    x = g.add("Add", g.add("Gather", table, ids), g.weight(LENGTH, WIDTH, scale=1))
    causal = g.constant(numpy.triu(numpy.full((LENGTH, LENGTH), -10000.0), 1), F32)
    for _ in range(2):
        x = g.add("Add", x, g.attention(g.layer_norm(x), causal))
        y = g.fast_gelu(g.dense(g.layer_norm(x), WIDTH, 4 * WIDTH))
        x = g.add("Add", x, g.dense(y, 4 * WIDTH, WIDTH))
    return g.model(opset, {"scores": g.add("MatMul", g.layer_norm(x), g.add("Transpose", table, perm=[1, 0]))})


def lstm(opset):
    g = Graph("lstm")
    ids = g.input("ids", "int64", LENGTH, "batch")
    x = g.add("Gather", g.weight(WORDS, WIDTH, scale=1), ids)
    n, inputs = 16, WIDTH
    for _ in range(2):
        w, r = g.weight(2, 4 * n, inputs, scale=inputs ** -0.5), g.weight(2, 4 * n, n, scale=n ** -0.5)
        y = g.add("LSTM", x, w, r, g.weight(2, 8 * n, scale=0.1), hidden_size=n, direction="bidirectional")
        y = g.add("Transpose", y, perm=[0, 2, 1, 3])
        x, inputs = g.add("Reshape", y, g.constant([0, 0, 2 * n])), 2 * n
    return g.model(opset, {"tags": g.add("Softmax", g.dense(x, 2 * n, 9, scale=1), axis=-1)})


def crnn(opset):
    g = Graph("crnn")
    x = g.input("x", "float32", "batch", 1, 16, 40)
    for inner, outer in [(1, 16), (16, 32)]:
        x = g.add("Relu", g.conv(x, inner, outer, 3, normal=inner == 16))
        x = g.add("AveragePool" if inner == 1 else "MaxPool", x, kernel_shape=[2, 2], strides=[2, 2])
    x = g.add("Transpose", x, perm=[3, 0, 1, 2])
    x, n = g.add("Reshape", x, g.constant([0, 0, 128])), 24
    w, r = g.weight(1, 3 * n, 128, scale=128 ** -0.5), g.weight(1, 3 * n, n, scale=n ** -0.5)
    y = g.add("GRU", x, w, r, g.weight(1, 6 * n, scale=0.1), hidden_size=n, linear_before_reset=1)
    y = g.add("Squeeze", y, g.constant([1]))
    return g.model(opset, {"scores": g.add("LogSoftmax", g.dense(y, n, 20), axis=-1)})


def unet(opset):
    g = Graph("unet")
    leaky = lambda x: g.add("LeakyRelu", x, alpha=0.1)
    first = leaky(g.conv(g.input("x", "float32", "batch", 3, 32, 32), 3, 8, 3))
    second = leaky(g.conv(g.add("MaxPool", first, kernel_shape=[2, 2], strides=[2, 2]), 8, 16, 3))
    x = leaky(g.conv(g.add("AveragePool", second, kernel_shape=[2, 2], strides=[2, 2]), 16, 32, 3))
    x = g.add("Resize", x, "", g.constant([1, 1, 2, 2], F32), mode="nearest")
    x = leaky(g.conv(g.add("Concat", x, second, axis=1), 48, 16, 3))
    x = g.add("ConvTranspose", x, g.weight(16, 8, 2, 2, scale=0.2), g.weight(8, scale=0.1), kernel_shape=[2, 2],
              strides=[2, 2])
    x = leaky(g.conv(g.add("Concat", x, first, axis=1), 16, 8, 3))
    return g.model(opset, {"mask": g.add("Sigmoid", g.conv(x, 8, 2, 1, normal=False))})


MODELS = {make.__name__: make for make in (mlp, resnet, mobilenet, bert, gpt, lstm, crnn, unet)}


def feed(name, seed, batch=2):
    """Inputs of a model, by a seed."""
    random = numpy.random.default_rng([seed, 7])
    values = {}
    for info in MODELS[name](17).graph.input:
        shape = [axis.dim_value or batch for axis in info.type.tensor_type.shape.dim]
        if info.type.tensor_type.elem_type == TensorProto.FLOAT:
            # Brightness and contrast differ, so that averages do.
            sizes = [shape[0]] + [1] * (len(shape) - 1)
            value = random.normal(0, 1, shape) * random.uniform(0.3, 2, sizes) + random.uniform(-1, 1, sizes)
            values[info.name] = value.astype(F32)
        elif info.name == "mask":
            lengths = random.integers(3, LENGTH + 1, (shape[0], 1))
            values[info.name] = (numpy.arange(LENGTH) < lengths).astype(I64)
        else:
            values[info.name] = random.integers(0, 2 if info.name == "kinds" else WORDS, shape)
    return values
