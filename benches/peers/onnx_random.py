"""Random models beside ONNX Runtime: the same results, whatever is fused.

    onnx_random.py COMMAND [--from SEED] [--models N] [--keep FOLDER]

Makes models of 2 to 20 operators from seeds: operators of all kinds, and what exporters write for attention, layer
normalisation, GELU and convolutions, with small changes (another axis, a turned factor, a second user of a value), so
that patterns of the optimiser are matched, and missed by little. ONNX Runtime runs each with its optimisations off;
`COMMAND run --expect` runs it, and compares all results that nothing else uses. A model is given up while it is made
where ONNX Runtime refuses an operator, and where a result is empty, large, or not finite.

Prints the seed of each model whose results differ by more than TOLERANCE, or that is refused, with what COMMAND says;
--keep leaves these models in a folder. Known and left out: windows larger than an image without `ceil_mode` (ONNX
Runtime rounds towards 0 where the standard rounds down), slopes of `PRelu` with more dimensions than their operand.
Comparisons of numbers that are rounded otherwise may differ: look at the operator before you look at ours.

    benches/peers/setup.sh
    target/peers/venv/bin/python benches/peers/onnx_random.py target/release/tfrt --models 1000
"""

import argparse
import math
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile

import numpy
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

onnxruntime.set_default_logger_severity(4)
TOLERANCE = "1e-3"
TIMEOUT_S = 60
# A result with more elements, or larger ones, is not gone on with.
MOST_ELEMENTS = 20_000
LARGEST = 1e4
SHAPES = ([1, 4, 8], [2, 3, 4], [2, 4, 4], [1, 2, 5, 5], [2, 4, 6, 6], [1, 4, 7], [3, 4], [4, 4], [8], [2, 1, 3, 4, 2])
OPSETS = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
F32 = numpy.float32


class RandomModel:
    """A model that grows by an operator at a time; each is run by ONNX Runtime when it is added."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.numbers = numpy.random.default_rng(seed)
        self.nodes, self.constants = [], []
        # The inputs, and all values with what ONNX Runtime made of them.
        self.inputs, self.values = {}, {}
        self.n_names = 0
        for _ in range(self.random.randrange(1, 3)):
            name = f"x{len(self.inputs)}"
            self.inputs[name] = self.values[name] = self.draw(self.random.choice(SHAPES))

    def draw(self, shape):
        """Returns small numbers that are exact."""
        return (self.numbers.integers(-8, 9, shape) / 4).astype(F32)

    def name(self):
        self.n_names += 1
        return f"v{self.n_names}"

    def constant(self, array):
        name = self.name()
        self.constants.append(numpy_helper.from_array(numpy.ascontiguousarray(array), name))
        return name

    def integers(self, *numbers):
        return self.constant(numpy.array(numbers, numpy.int64))

    def number(self, value):
        return self.constant(F32(value))

    def model(self, nodes, outputs, has_names=False):
        """Returns a model; `has_names`: the extents of its inputs are named."""
        def extents(name, shape):
            return [f"{name}_{axis}" for axis in range(len(shape))] if has_names else shape
        inputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, extents(name, array.shape))
                  for name, array in self.inputs.items()]
        outputs = [onnx.ValueInfoProto(name=name) for name in outputs]
        graph = helper.make_graph(nodes, "random", inputs, outputs, self.constants)
        return helper.make_model(graph, opset_imports=OPSETS, ir_version=9)

    def add(self, kind, inputs, domain="", n_results=1, **attributes):
        """Adds an operator and returns its first result, or nothing where ONNX Runtime has none that is of use."""
        if any(name is None for name in inputs):
            return None
        results = [self.name() for _ in range(n_results)]
        node = helper.make_node(kind, inputs, results, domain=domain, **attributes)
        options = onnxruntime.SessionOptions()
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        options.intra_op_num_threads = 1
        try:
            model = self.model([*self.nodes, node], results).SerializeToString()
            session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
            made = session.run(None, self.inputs)
        except Exception:  # ONNX Runtime has no class of its own for what it refuses.
            return None
        if not all(is_of_use(array) for array in made):
            return None
        self.nodes.append(node)
        self.values.update(zip(results, made))
        return results[0]

    def floats(self):
        return [name for name, array in self.values.items() if array.dtype == F32]

    def shape(self, name):
        return self.values[name].shape

    def grow(self):
        """Adds one of the operators or patterns to a value, mostly a late one."""
        late = self.random.random() < 0.8
        x = self.random.choice(self.floats()[-4:] if late else self.floats())
        self.random.choice(STEPS)(self, x, self.shape(x), self.random)

    def outputs(self):
        """Returns the values that nothing uses, and some time another one."""
        used = {name for node in self.nodes for name in node.input}
        made = [name for name in self.values if name not in self.inputs]
        others = self.random.sample(made, 1) if made and self.random.random() < 0.3 else []
        return sorted({name for name in made if name not in used} | set(others))


def is_of_use(array):
    if not isinstance(array, numpy.ndarray) or array.size == 0 or array.size > MOST_ELEMENTS:
        return False
    return array.dtype != F32 or bool(numpy.isfinite(array).all() and abs(array).max() <= LARGEST)


def unary(model, x, shape, random):
    model.add(random.choice(("Relu", "Sigmoid", "Tanh", "Neg", "Abs", "Erf", "Softplus", "Identity", "Sign", "Floor",
        "LeakyRelu", "Elu", "HardSigmoid", "HardSwish", "Softsign", "Selu", "Celu", "ThresholdedRelu", "Round", "Ceil",
        "Sin", "Cos", "Reciprocal")), [x])


def binary(model, x, shape, random):
    pair = [x, random.choice(model.floats())]
    random.shuffle(pair)
    model.add(random.choice(("Add", "Sub", "Mul", "Max", "Min", "Div", "Sum", "Mean")), pair)


def by_constant(model, x, shape, random):
    extents = [extent if random.random() < 0.6 else 1 for extent in shape][random.randrange(len(shape) + 1):]
    drawn = model.draw(extents)
    pair = [x, model.constant(numpy.where(drawn == 0, F32(0.5), drawn))]
    if random.random() < 0.3:
        pair.reverse()
    model.add(random.choice(("Add", "Sub", "Mul", "Div", "Pow", "Max", "Min")), pair)


def scaled(model, x, shape, random):
    return model.add("Mul", [x, model.number(random.choice((0.5, 2, 0.125, -1)))])


def product(model, x, shape, random):
    model.add("MatMul", [x, random.choice(model.floats())])


def layer(model, x, shape, random):
    """A product by a matrix, perhaps with a bias and an activation."""
    if not shape:
        return
    extents = [shape[-1], random.choice((1, 2, 3, 4, 8))]
    if len(shape) > 2 and random.random() < 0.2:
        extents.insert(0, shape[0] if len(shape) == 3 else 1)
    y = model.add("MatMul", [x, model.constant(model.draw(extents))])
    if random.random() < 0.6:
        y = model.add("Add", [y, model.constant(model.draw([random.choice((extents[-1], 1))]))])
    if random.random() < 0.4:
        model.add(random.choice(("Relu", "Sigmoid", "Tanh")), [y])


def gemm(model, x, shape, random):
    if len(shape) != 2:
        return
    turned = [random.randrange(2), random.randrange(2)]
    rows, inner = shape[::-1] if turned[0] else shape
    columns = random.choice((1, 2, 3, 4))
    inputs = [x, model.constant(model.draw([columns, inner] if turned[1] else [inner, columns]))]
    if random.random() < 0.7:
        extents = random.choice(([columns], [1], [rows, 1], [1, columns], [rows, columns], []))
        inputs.append(model.constant(model.draw(extents)))
    model.add("Gemm", inputs, transA=turned[0], transB=turned[1], alpha=random.choice((1.0, 0.5)),
        beta=random.choice((1.0, 2.0)))


def fused_product(model, x, shape, random):
    flags = {name: int(random.random() < chance) for name, chance in
        (("transA", 0.5), ("transB", 0.5), ("transBatchA", 0.2), ("transBatchB", 0.2))}
    model.add("FusedMatMul", [x, random.choice(model.floats())], "com.microsoft", alpha=random.choice((1.0, 0.5)),
        **flags)


def einsum(model, x, shape, random):
    if len(shape) == 3:
        model.add("Einsum", [x, x], equation=random.choice(("bij,bkj->bik", "bij,bik->bjk", "bij,bij->b", "bij,bkl->bil")))


def transposed(model, x, shape, random):
    if shape:
        model.add("Transpose", [x], perm=random.sample(range(len(shape)), len(shape)))


def reshaped(model, x, shape, random):
    left, extents = math.prod(shape), []
    for _ in range(random.randrange(1, 4)):
        extents.append(random.choice([n for n in range(1, left + 1) if left % n == 0]))
        left //= extents[-1]
    extents.append(left)
    if random.random() < 0.5:
        extents[random.randrange(len(extents))] = -1
    model.add("Reshape", [x, model.integers(*extents)])


def ranked(model, x, shape, random):
    """Another number of dimensions."""
    axis = random.randrange(len(shape) + 1)
    match random.randrange(3):
        case 0:
            model.add("Unsqueeze", [x, model.integers(axis)])
        case 1:
            model.add("Flatten", [x], axis=axis)
        case _:
            model.add("Squeeze", [x])


def joined(model, x, shape, random):
    if not shape:
        return
    axis = random.randrange(-len(shape), len(shape))
    def fits(name):
        other = model.shape(name)
        return len(other) == len(shape) and all(
            at == axis % len(shape) or a == b for at, (a, b) in enumerate(zip(shape, other)))
    others = [name for name in model.floats() if fits(name)]
    model.add("Concat", [x, *(random.choice(others) for _ in range(random.randrange(1, 3)))], axis=axis)


def sliced(model, x, shape, random):
    if not shape:
        return
    axis = random.randrange(-len(shape), len(shape))
    extent, step = shape[axis], random.choice((1, 1, 2, -1))
    begin = random.randrange(-extent, extent) if step > 0 else random.choice((-1, 1000))
    end = random.choice((1000, -1, extent) if step > 0 else (-1000, 0, -extent - 1))
    model.add("Slice", [x, *(model.integers(number) for number in (begin, end, axis, step))])


def split(model, x, shape, random):
    axis = random.randrange(len(shape)) if shape else 0
    if shape and shape[axis] > 1:
        first = random.randrange(1, shape[axis])
        model.add("Split", [x, model.integers(first, shape[axis] - first)], n_results=2, axis=axis)


def padded(model, x, shape, random):
    pads = model.integers(*(random.randrange(3) for _ in range(2 * len(shape))))
    inputs = [x, pads] + ([model.number(0.5)] if random.random() < 0.5 else [])
    model.add("Pad", inputs, mode=random.choice(("constant", "constant", "edge", "reflect")))


def tiled(model, x, shape, random):
    model.add("Tile", [x, model.integers(*(random.choice((1, 1, 2)) for _ in shape))])


def gathered(model, x, shape, random):
    if shape:
        axis = random.randrange(-len(shape), len(shape))
        indices = model.numbers.integers(-shape[axis], shape[axis], random.choice(([], [2], [2, 2])))
        model.add("Gather", [x, model.constant(numpy.asarray(indices, numpy.int64))], axis=axis)


def reduced(model, x, shape, random):
    if shape:
        axes = sorted({random.randrange(len(shape)) for _ in range(random.randrange(1, len(shape) + 1))})
        kind = random.choice(("Mean", "Max", "L2", "Min", "Prod", "L1", "SumSquare", "LogSumExp"))
        model.add(f"Reduce{kind}", [x], axes=axes, keepdims=random.randrange(2))


def softmax(model, x, shape, random):
    if shape:
        model.add(random.choice(("Softmax", "LogSoftmax")), [x], axis=random.randrange(-len(shape), len(shape)))


def chosen(model, x, shape, random):
    model.add("Where", [model.add("Greater", [x, model.number(0)]), x, random.choice(model.floats())])


def cast(model, x, shape, random):
    to = random.choice(("INT32", "INT64", "FLOAT16", "DOUBLE", "BOOL"))
    model.add("Cast", [model.add("Cast", [x], to=getattr(TensorProto, to))], to=TensorProto.FLOAT)


def quantised(model, x, shape, random):
    """There and back by steps of 8 bits, with a scale that is exact."""
    scale, zero = model.number(2.0**-random.randrange(3, 6)), model.constant(numpy.uint8(random.choice((0, 128))))
    model.add("DequantizeLinear", [model.add("QuantizeLinear", [x, scale, zero]), scale, zero])


def layer_norm(model, x, shape, random):
    if shape:
        axis = random.randrange(-len(shape), len(shape))
        lists = [model.constant(model.draw(shape[axis:])) for _ in range(random.choice((1, 2, 2)))]
        model.add("LayerNormalization", [x, *lists], axis=axis, epsilon=1e-3)


def written_norm(model, x, shape, random):
    if not shape:
        return
    axis = -1 if random.random() < 0.8 else random.randrange(-len(shape), len(shape))
    difference = model.add("Sub", [x, model.add("ReduceMean", [x], axes=[axis], keepdims=1)])
    square = random.choice((["Pow", difference, model.number(2)], ["Mul", difference, difference]))
    variance = model.add("ReduceMean", [model.add(square[0], square[1:])], axes=[-1], keepdims=1)
    y = model.add("Div", [difference, model.add("Sqrt", [model.add("Add", [variance, model.number(1e-2)])])])
    for kind in ("Mul", "Add"):
        if random.random() < 0.7:
            y = model.add(kind, [y, model.constant(model.draw(shape[-1:]))])


def written_gelu(model, x, shape, random):
    error = model.add("Erf", [model.add("Div", [x, model.number(random.choice((1.41421354, 1.4142135, 1.5)))])])
    factor = model.add("Add", [error, model.number(random.choice((1, 1, 1, 2)))])
    if random.random() < 0.5:
        model.add("Mul", [model.add("Mul", [x, factor]), model.number(0.5)])
    else:
        model.add("Mul", [x, model.add("Mul", [factor, model.number(0.5)])])


def swish(model, x, shape, random):
    model.add("Mul", [x, model.add("Sigmoid", [x])])


def window(model, x, shape, random):
    """A convolution, or a transposed one, perhaps with an activation."""
    if len(shape) not in (3, 4):
        return
    channels, rank = shape[1], len(shape) - 2
    groups = random.choice([n for n in (1, 2, channels) if channels % n == 0])
    filters = groups * random.choice((1, 2, 3))
    kernel = [random.choice((1, 2, 3)) for _ in range(rank)]
    attributes = {"group": groups, "strides": [random.choice((1, 1, 2)) for _ in kernel],
        "dilations": [random.choice((1, 1, 2)) for _ in kernel]}
    if random.random() < 0.2:
        weights = model.constant(model.draw([channels, filters // groups, *kernel]))
        y = model.add("ConvTranspose", [x, weights], **attributes)
    else:
        match random.randrange(3):
            case 0:
                attributes["pads"] = [random.randrange(3) for _ in kernel * 2]
            case 1:
                attributes["auto_pad"] = random.choice(("SAME_UPPER", "SAME_LOWER", "VALID"))
        inputs = [x, model.constant(model.draw([filters, channels // groups, *kernel]))]
        if random.random() < 0.6:
            inputs.append(model.constant(model.draw([filters])))
        y = model.add("Conv", inputs, **attributes)
    if random.random() < 0.4:
        model.add(random.choice(("Relu", "Sigmoid", "LeakyRelu", "HardSwish")), [y])


def batch_norm(model, x, shape, random):
    if len(shape) >= 2:
        lists = [model.draw([shape[1]]) for _ in range(3)]
        lists.append(abs(model.draw([shape[1]])) + F32(0.5))
        model.add("BatchNormalization", [x, *map(model.constant, lists)])


def pool(model, x, shape, random):
    if len(shape) not in (3, 4):
        return
    kernel = [random.choice((1, 2, 3)) for _ in shape[2:]]
    attributes = {"kernel_shape": kernel, "strides": [random.choice((1, 2)) for _ in kernel],
        "ceil_mode": random.choice((0, 0, 1))}
    pads = [0] * len(kernel * 2)
    if random.random() < 0.5:
        pads = attributes["pads"] = [random.randrange(min(2, extent)) for extent in kernel * 2]
    room = [extent + pads[at] + pads[at + len(kernel)] for at, extent in enumerate(shape[2:])]
    if any(own < extent for own, extent in zip(room, kernel)) and not attributes["ceil_mode"]:
        return
    if random.random() < 0.3:
        model.add("AveragePool", [x], count_include_pad=1, **attributes)
    else:
        model.add(random.choice(("MaxPool", "AveragePool")), [x], **attributes)


def whole_attention(model, x, shape, random):
    if len(shape) == 3:
        heads = random.choice([n for n in (1, 2, 4) if shape[2] % n == 0])
        model.add("MultiHeadAttention", [x, x, x], "com.microsoft", num_heads=heads, unidirectional=random.randrange(2))


def written_attention(model, x, shape, random):
    if len(shape) != 3:
        return
    _, rows, width = shape
    heads = random.choice([n for n in (1, 2, 4) if width % n == 0])
    apart = model.integers(0, 0, heads, width // heads)

    def turned(order):
        own = x
        if random.random() < 0.6:
            own = model.add("MatMul", [x, model.constant(model.draw([width, width]))])
        return model.add("Transpose", [model.add("Reshape", [own, apart])], perm=order)

    queries, values = turned([0, 2, 1, 3]), turned([0, 2, 1, 3])
    if random.random() < 0.7:
        keys = turned([0, 2, 3, 1])
    else:
        keys = model.add("Transpose", [turned([0, 2, 1, 3])], perm=[0, 1, 3, 2])
    if random.random() < 0.3:
        queries = model.add("Mul", [queries, model.number(0.5)])
    if random.random() < 0.4:
        flags = {"transA": random.choice((0, 0, 1)), "transB": random.choice((0, 0, 1))}
        scores = model.add("FusedMatMul", [queries, keys], "com.microsoft", alpha=random.choice((1.0, 0.25)), **flags)
    else:
        scores = model.add("MatMul", [queries, keys])
    if random.random() < 0.6:
        scores = model.add(random.choice(("Div", "Mul")), [scores, model.number(2)])
    if scores and random.random() < 0.5:
        mask = [extent if random.random() < 0.5 else 1 for extent in model.shape(scores)][random.randrange(3):]
        scores = model.add("Add", [scores, model.constant(model.draw(mask))])
    weights = model.add("Softmax", [scores], axis=random.choice((-1, -1, 3, 2)))
    mixed = model.add("MatMul", [weights, values])
    side_by_side = model.add("Transpose", [mixed], perm=random.choice(([0, 2, 1, 3],) * 4 + ([0, 1, 2, 3],)))
    model.add("Reshape", [side_by_side, model.integers(*random.choice(([0, 0, width], [0, -1, width], [-1, rows, width])))])


STEPS = (unary, unary, binary, by_constant, scaled, product, layer, layer, gemm, fused_product, einsum, transposed,
    reshaped, ranked, joined, sliced, split, padded, tiled, gathered, reduced, softmax, chosen, cast, quantised, layer_norm,
    written_norm, written_gelu, swish, window, window, batch_norm, pool, whole_attention, written_attention)


def compare(command, seed, folder):
    """Makes and runs the model of a seed; returns what COMMAND says if it does not agree."""
    model = RandomModel(seed)
    for _ in range(model.random.randrange(2, 14)):
        model.grow()
    outputs = model.outputs()
    if not outputs:
        return None
    path = folder / "model.onnx"
    path.write_bytes(model.model(model.nodes, outputs, model.random.random() < 0.3).SerializeToString())
    words = [command, "run", path, "--tolerance", TOLERANCE]
    for option, names in (("--input", model.inputs), ("--expect", outputs)):
        for name in names:
            numpy.save(folder / f"{name}.npy", model.values[name])
            words += [option, f"{name}={folder / name}.npy"]
    try:
        ran = subprocess.run(words, capture_output=True, text=True, timeout=TIMEOUT_S)
    except subprocess.TimeoutExpired:
        return f"it took more than {TIMEOUT_S} s"
    said = [line for line in (ran.stdout + ran.stderr).splitlines() if "error" in line]
    return None if ran.returncode == 0 else " | ".join(said)[:300] or f"status {ran.returncode}"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("command")
    parser.add_argument("--from", dest="first", type=int, default=0)
    parser.add_argument("--models", type=int, default=1000)
    parser.add_argument("--keep", type=pathlib.Path)
    arguments = parser.parse_args()
    n_bad = 0
    for seed in range(arguments.first, arguments.first + arguments.models):
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            said = compare(arguments.command, seed, folder)
            if said is None:
                continue
            n_bad += 1
            print(f"seed {seed}: {said}", flush=True)
            if arguments.keep:
                arguments.keep.mkdir(parents=True, exist_ok=True)
                shutil.copytree(folder, arguments.keep / str(seed), dirs_exist_ok=True)
    print(f"{arguments.models} models, {n_bad} differ")
    return int(n_bad > 0)


if __name__ == "__main__":
    sys.exit(main())
