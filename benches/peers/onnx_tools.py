"""Files that ONNX Runtime's own tools write: our results beside those of ONNX Runtime.

    onnx_tools.py COMMAND [--model WORD] [--tool WORD] [--keep FOLDER] [--steps] [--times]

Makes eight models (onnx_tools_models.py), has ONNX Runtime's quantisers and optimisers write files of each, runs these
in ONNX Runtime with its optimisations off and on, and by `COMMAND run`, and prints a table: whether the file runs, and
the worst deviation, relative to the largest element, of ours from both and of both from each other. Files that are laid
out for one machine are to be refused with what to do. A result has steps: those of its type, or of the integers that it
was dequantised of. "same" is less than SAME away, "one step" not further than a step, "steps" further. Sums that are
rounded in another order may move a quantised element by a step, and what follows by more.

With --model and --tool only models and files with these words in their names are made; --keep leaves the files in a
folder. With --steps all values of a file are results, and the first nodes are listed whose results deviate though what
they read is the same: there begins what the table says. Then each node is run alone, on what ONNX Runtime gives it, and
compared with the standard's reference in `f64`: who is how far from the exact result. Fails if a file is refused, or
one is not that should be.

    benches/peers/setup.sh
    target/peers/venv/bin/python benches/peers/onnx_tools.py target/release/tfrt
"""

import argparse
import contextlib
import io
import json
import logging
import pathlib
import subprocess
import sys
import tempfile
import warnings

import numpy
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator
from onnxruntime import quantization
from onnxruntime.quantization import QuantFormat, QuantType, matmul_nbits_quantizer, shape_inference
from onnxruntime.transformers import float16, optimizer

from onnx_tools_models import HEADS, MODELS, WIDTH, feed

onnxruntime.set_default_logger_severity(4)
logging.disable(logging.CRITICAL)
warnings.filterwarnings("ignore")
LEVELS = onnxruntime.GraphOptimizationLevel
SAME = 1e-5
# By the type of a result: the step between its numbers, relative to the largest.
TYPE_STEPS = {"float16": 2.0**-10}
FEW_BITS = (TensorProto.INT4, TensorProto.UINT4)
# Operators on numbers as integers, and what they do with the numbers.
QLINEAR = {f"QLinear{name}": name for name in (
    "Add", "Mul", "Softmax", "Sigmoid", "LeakyRelu", "AveragePool", "GlobalAveragePool")}
N_CALIBRATED = 8
SEEDS = (101, 102)
TIMEOUT_S = 120


class Reader(quantization.CalibrationDataReader):
    """Inputs by which the range of each value is found."""

    def __init__(self, name):
        self.feeds = iter([feed(name, seed) for seed in range(N_CALIBRATED)])

    def get_next(self):
        return next(self.feeds, None)


class Task:
    """A model that a tool is to make a file of."""

    def __init__(self, name, folder):
        self.name, self.folder = name, folder

    def source(self, opset=17):
        path = self.folder / f"{self.name}.{opset}.onnx"
        if not path.exists():
            onnx.save(MODELS[self.name](opset), path)
        return path

    def prepared(self, opset=17):
        """The model as the guide to the quantisers wants it: with shapes, and simplified."""
        path = self.folder / f"{self.name}.{opset}.prepared.onnx"
        if not path.exists():
            shape_inference.quant_pre_process(str(self.source(opset)), str(path), skip_symbolic_shape=True)
        return path

    def path(self, tool):
        return self.folder / f"{self.name} {tool}.onnx".replace(" ", "_").replace("/", "_")


def dynamic(kind, **options):
    def make(task, path):
        quantization.quantize_dynamic(str(task.prepared()), str(path), weight_type=kind, **options)
    return make


def static(form, activations, weights, opset=17, extra=None, **options):
    def make(task, path):
        quantization.quantize_static(str(task.prepared(opset)), str(path), Reader(task.name), quant_format=form,
            activation_type=activations, weight_type=weights, extra_options=extra or {}, **options)
    return make


def saved(level, first=None):
    """What a session writes that optimises, of the model or of what another tool makes of it."""
    def make(task, path):
        source = task.source()
        if first:
            source = path.with_suffix(".first.onnx")
            first(task, source)
        session(source, level, path)
    return make


def half(keep=False):
    def make(task, path):
        onnx.save(float16.convert_float_to_float16(onnx.load(task.source()), keep_io_types=keep), path)
    return make


def transformers(is_half):
    """What the optimiser of transformers makes, which finds their parts in two of the models. At other levels it has a
    session optimise first, and asks for PyTorch."""
    kind = {"gpt": "gpt2"}

    def make(task, path):
        made = optimizer.optimize_model(str(task.source()), kind.get(task.name, "bert"), num_heads=HEADS,
            hidden_size=WIDTH, opt_level=0)
        if is_half:
            made.convert_float_to_float16(keep_io_types=False)
        made.save_model_to_file(str(path))
    return make


def few_bits(opset=17, **options):
    def make(task, path):
        made = matmul_nbits_quantizer.MatMulNBitsQuantizer(onnx.load(task.source(opset)), block_size=16, **options)
        made.process()
        made.model.save_model_to_file(str(path))
    return make


QDQ, QOPERATOR = QuantFormat.QDQ, QuantFormat.QOperator
U8, I8, U16, I16, U4, I4 = (getattr(QuantType, f"Q{name}") for name in ("UInt8", "Int8", "UInt16", "Int16", "UInt4", "Int4"))
QDQ_U8 = static(QDQ, U8, U8)
QDQ_COLUMNS = static(QDQ, U8, I8, per_channel=True)
TOOLS = {
    "dynamic u8": dynamic(U8),
    "dynamic i8 columns": dynamic(I8, per_channel=True),
    "QDQ u8/u8": QDQ_U8,
    "QDQ i8/i8": static(QDQ, I8, I8, extra={"ActivationSymmetric": True}),
    "QDQ u8/i8 columns": QDQ_COLUMNS,
    "QDQ u16/i8": static(QDQ, U16, I8),
    "QDQ i16/i16": static(QDQ, I16, I16),
    "QDQ u8/i4": static(QDQ, U8, I4),
    "QDQ u16/u4 columns": static(QDQ, U16, U4, per_channel=True),
    "QDQ u8/i4 opset 21": static(QDQ, U8, I4, 21, per_channel=True),
    "QDQ u16/i16 opset 21": static(QDQ, U16, I16, 21),
    "QOperator u8/u8": static(QOPERATOR, U8, U8),
    "QOperator u8/i8 columns": static(QOPERATOR, U8, I8, per_channel=True),
    "QOperator i8/i8": static(QOPERATOR, I8, I8),
    "saved basic": saved(LEVELS.ORT_ENABLE_BASIC),
    "saved extended": saved(LEVELS.ORT_ENABLE_EXTENDED),
    "saved all": saved(LEVELS.ORT_ENABLE_ALL),
    "dynamic u8, saved extended": saved(LEVELS.ORT_ENABLE_EXTENDED, dynamic(U8)),
    "QDQ u8/u8, saved extended": saved(LEVELS.ORT_ENABLE_EXTENDED, QDQ_U8),
    "QDQ u8/i8 columns, saved extended": saved(LEVELS.ORT_ENABLE_EXTENDED, QDQ_COLUMNS),
    "QDQ u8/u8, saved all": saved(LEVELS.ORT_ENABLE_ALL, QDQ_U8),
    "f16": half(),
    "f16 inside": half(keep=True),
    "transformers": transformers(False),
    "transformers f16": transformers(True),
    "MatMulNBits 4": few_bits(bits=4),
    "MatMulNBits 4 symmetric, level 4": few_bits(bits=4, is_symmetric=True, accuracy_level=4),
    "MatMulNBits 8": few_bits(bits=8),
    "MatMulNBits 4 QDQ opset 21": few_bits(21, bits=4, quant_format=QDQ),
}


def session(path, level, saved_to=None):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = level
    options.intra_op_num_threads = 1
    if saved_to:
        options.optimized_model_filepath = str(saved_to)
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def theirs(path, level, feeds):
    run = session(path, level)
    return [run.run(None, values) for values in feeds]


def fitting(path, name):
    """The inputs of a model, in the types that the file wants."""
    kinds = {info.name: helper.tensor_dtype_to_np_dtype(info.type.tensor_type.elem_type)
             for info in onnx.load(path).graph.input}
    return [{key: value.astype(kinds[key]) for key, value in feed(name, seed).items()} for seed in SEEDS]


def ours(command, path, feeds, names, folder):
    """Our results of each call, or what refuses the file."""
    results = []
    for values in feeds:
        arguments = [command, "run", "--message-format", "short", str(path)]
        for number, (key, value) in enumerate(values.items()):
            numpy.save(folder / f"in_{number}.npy", value)
            arguments += ["--input", f"{key}={folder}/in_{number}.npy"]
        for index, name in enumerate(names):
            arguments += ["--output", f"{name}={folder}/out_{index}.npy"]
        try:
            ran = subprocess.run(arguments, capture_output=True, text=True, timeout=TIMEOUT_S)
        except subprocess.TimeoutExpired:
            return None, f"not done after {TIMEOUT_S} s"
        if ran.returncode:
            lines = (ran.stderr or ran.stdout).strip().splitlines() or [f"status {ran.returncode}"]
            first = next((index for index, line in enumerate(lines) if "error" in line), 0)
            return None, " ".join(line.strip() for line in lines[first:])[:400].replace(str(path), path.name)
        results.append([numpy.load(folder / f"out_{index}.npy") for index in range(len(names))])
    return results, None


def deviation(a, b):
    """How far apart two arrays are, relative to the largest element of the second."""
    if a.shape != b.shape or a.dtype != b.dtype:
        return numpy.inf
    if b.dtype.kind not in "fiu":
        return float((a != b).mean()) if b.size else 0.0
    a, b = a.astype(numpy.float64), b.astype(numpy.float64)
    finite = numpy.isfinite(b)
    if (numpy.isfinite(a) != finite).any():
        return numpy.inf
    largest = numpy.abs(b[finite]).max(initial=0)
    return float(numpy.abs(a - b)[finite].max(initial=0) / (largest or 1))


def worst(these, those):
    """The worst deviation of the results of all calls, for each result."""
    return [max(deviation(a, b) for a, b in zip(left, right)) for left, right in zip(zip(*these), zip(*those))]


def step(graph, name, value):
    """The step between numbers of a result, relative to its largest element: of its type, or of what it is dequantised of."""
    makers = {result: node for node in graph.node for result in node.output}
    constants = {tensor.name: tensor for tensor in graph.initializer}
    maker = makers.get(name)
    is_half = TensorProto.FLOAT16 in {one.data_type for one in constants.values()}
    if maker is not None and maker.op_type == "Cast" and is_half:
        return TYPE_STEPS["float16"]
    if maker is not None and maker.op_type == "DequantizeLinear" and maker.input[1] in constants:
        scale = numpy_helper.to_array(constants[maker.input[1]]).astype(numpy.float64).max()
        return float(scale / numpy.abs(value).max())
    return TYPE_STEPS.get(str(value.dtype), SAME)


def verdict(away, steps):
    if all(one <= SAME for one in away):
        return "same"
    if all(one <= 1.01 * most for one, most in zip(away, steps)):
        return "one step"
    return "steps"


def our_time(command, path, values, folder):
    """The median of a call of ours, in milliseconds."""
    arguments = [command, "bench", "--json", "--time", "0.3s", str(path)]
    for number, (key, value) in enumerate(values.items()):
        numpy.save(folder / f"in_{number}.npy", value)
        arguments += ["--input", f"{key}={folder}/in_{number}.npy"]
    ran = subprocess.run(arguments, capture_output=True, text=True, timeout=TIMEOUT_S)
    return f"{json.loads(ran.stdout)['p50_ns'] / 1e6:.3f}" if ran.returncode == 0 else "?"


def examine(options, task, tool, path, folder):
    """The cells of a file's row, and whether it does what it should."""
    proto = onnx.load(path)
    is_bound = any(node.domain == "com.microsoft.nchwc" for node in proto.graph.node)
    feeds = fitting(path, task.name)
    off, on = (theirs(path, level, feeds) for level in (LEVELS.ORT_DISABLE_ALL, LEVELS.ORT_ENABLE_ALL))
    names = [output.name for output in proto.graph.output]
    own = worst(on, off)
    if max(worst(off[:1], off[1:])) < 1e-3:
        raise RuntimeError("the results of two calls hardly differ")
    found, refusal = ours(options.command, path, feeds, names, folder)
    if refusal:
        is_hinted = is_bound and "save the model at level" in refusal
        return ["refused, as it should" if is_hinted else f"REFUSED: {refusal}", "", "", shown(max(own))], is_hinted
    if is_bound:
        return ["RUNS, but is bound to a machine", "", "", ""], False
    steps = [step(proto.graph, name, value) for name, value in zip(names, off[0])]
    away, away_on = worst(found, off), worst(found, on)
    cells = [verdict(away, steps), shown(max(away)), shown(max(away_on)), shown(max(own))]
    if options.times:
        cells.append(our_time(options.command, path, feeds[0], folder))
    return cells, True


def shown(value):
    return f"{value:.1e}" if value else "0"


def list_steps(options, task, path, folder):
    """Lists where results become other numbers than ONNX Runtime's, and how exact each operator is."""
    proto = onnx.load(path)
    names = [output.name for output in proto.graph.output]
    away = []
    for values in fitting(path, task.name):
        found, refusal = ours(options.command, path, [values], names, folder)
        if refusal:
            return
        away.append((max(worst(found, theirs(path, LEVELS.ORT_DISABLE_ALL, [values]))), values))
    # The inputs whose results are further away.
    feeds = [max(away, key=lambda pair: pair[0])[1]]
    stated = {output.name for output in proto.graph.output}
    for name in [result for node in proto.graph.node for result in node.output if result and result not in stated]:
        proto.graph.output.append(onnx.ValueInfoProto(name=name))
    opened = folder / "opened.onnx"
    onnx.save(proto, opened)
    expected = theirs(opened, LEVELS.ORT_DISABLE_ALL, feeds)[0]
    state_types(proto, expected)
    onnx.save(proto, opened)
    names = [output.name for output in proto.graph.output]
    found, refusal = ours(options.command, opened, feeds, names, folder)
    if refusal:
        print("    ", refusal)
        return
    away = {name: deviation(a, b) for name, a, b in zip(names, found[0], expected)}
    values = dict(zip(names, zip(found[0], expected)))
    n_listed = 0
    for node in proto.graph.node:
        before = max([away.get(name, 0.0) for name in node.input], default=0.0)
        for name in filter(values.get, node.output):
            a, b = values[name]
            is_other = away[name] > 0 if b.dtype.kind in "iu" else away[name] > TYPE_STEPS.get(str(b.dtype), SAME)
            if is_other and before <= SAME and n_listed < 6:
                n_listed += 1
                n_other = f"{(a != b).sum()} of {b.size}"
                print(f"    {node.op_type} {name}: {b.dtype}, {shown(away[name])} behind {shown(before)}, {n_other}")
    by_operator = {}
    constants = {tensor.name: numpy_helper.to_array(tensor) for tensor in proto.graph.initializer}
    known = {**constants, **feeds[0], **{name: value for name, (_, value) in values.items()}}
    for node in proto.graph.node:
        for label, cells in alone(options.command, proto, node, known, folder):
            row = by_operator.setdefault(label, [0, 0.0, 0.0, 0.0, 0])
            by_operator[label] = [row[0] + 1, *map(max, row[1:4], cells), row[4] + (cells[0] > 0)]
    print("    each node alone, by what ONNX Runtime gives it: operator, nodes, ours from theirs, ours and theirs from exact")
    for label, (n_nodes, *worst_cells, n_other) in sorted(by_operator.items()):
        print(f"    {label}: {n_nodes}, {n_other} not the same, {', '.join(map(shown, worst_cells))}")


def state_types(proto, results):
    """States the types of results, which a file must."""
    for info, value in zip(proto.graph.output, results):
        kind = helper.np_dtype_to_tensor_dtype(value.dtype)
        info.type.CopyFrom(helper.make_tensor_type_proto(kind, [None] * value.ndim))


def exact_integers(node, known):
    """What an operator on numbers as integers gives by its definition: it is that on the numbers, in `f64`, rounded."""
    given = [known[name] for name in node.input if name]
    *operands, (y_scale, y_zero) = [given[first:first + 3] for first in range(0, len(given) - 2, 3)] + [given[-2:]]
    numbers = [(x.astype(numpy.float64) - zero) * scale for x, scale, zero in operands]
    name = QLINEAR[node.op_type]
    attributes = {one.name: helper.get_attribute_value(one) for one in node.attribute}
    attributes = {key: value for key, value in attributes.items() if key not in ("opset", "channels_last")}
    names = [f"x{index}" for index in range(len(numbers))]
    infos = [helper.make_tensor_value_info(name, TensorProto.DOUBLE, x.shape) for name, x in zip(names, numbers)]
    result = helper.make_tensor_value_info("y", TensorProto.DOUBLE, None)
    graph = helper.make_graph([helper.make_node(name, names, ["y"], **attributes)], "exact", infos, [result])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    y = ReferenceEvaluator(model).run(None, dict(zip(names, numbers)))
    info = numpy.iinfo(y_zero.dtype)
    return numpy.clip(numpy.rint(y[0] / y_scale) + y_zero, info.min, info.max).astype(y_zero.dtype)


def alone(command, whole, node, known, folder):
    """How far the results of one node are away: ours from theirs, ours and theirs from what it is exactly."""
    given = {name: known[name] for name in node.input if name in known}
    few = [tensor for tensor in whole.graph.initializer if tensor.name in node.input and tensor.data_type in FEW_BITS]
    given = {name: value for name, value in given.items() if name not in {tensor.name for tensor in few}}
    # What a kernel wants constant is so.
    fixed = {tensor.name for tensor in whole.graph.initializer} & set(given)

    def model(kind=None):
        wide = lambda value: value.astype(kind) if kind and value.dtype.kind == "f" else value
        inputs = [helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(wide(value).dtype), value.shape)
                  for name, value in given.items() if name not in fixed]
        constants = [*few, *(numpy_helper.from_array(wide(given[name]), name) for name in fixed)]
        outputs = [onnx.ValueInfoProto(name=name) for name in node.output if name]
        graph = helper.make_graph([node], "alone", inputs, outputs, constants)
        feeds = {name: wide(value) for name, value in given.items() if name not in fixed}
        return helper.make_model(graph, opset_imports=whole.opset_import, ir_version=10), feeds

    proto, feeds = model()
    path = folder / "alone.onnx"
    onnx.save(proto, path)
    expected = theirs(path, LEVELS.ORT_DISABLE_ALL, [feeds])[0]
    state_types(proto, expected)
    onnx.save(proto, path)
    names = [output.name for output in proto.graph.output]
    found, refusal = ours(command, path, [feeds], names, folder)
    if refusal:
        print(f"    {node.op_type} {node.name}: {refusal}")
        return
    try:
        if node.op_type in QLINEAR:
            exact = [exact_integers(node, known)]
        else:
            wide, feeds = model(numpy.float64)
            state_types(wide, [value.astype(numpy.float64) if value.dtype.kind == "f" else value for value in expected])
            exact = ReferenceEvaluator(wide).run(None, feeds)
    except Exception:
        exact = [None] * len(expected)
    for a, b, c in zip(found[0], expected, exact):
        from_exact = [numpy.nan] * 2 if c is None else [deviation(x.astype(c.dtype), c) for x in (a, b)]
        yield f"{node.op_type} {b.dtype}", [deviation(a, b), *from_exact]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("command")
    parser.add_argument("--model", default="")
    parser.add_argument("--tool", default="")
    parser.add_argument("--keep", type=pathlib.Path)
    parser.add_argument("--steps", action="store_true")
    parser.add_argument("--times", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = options.keep or pathlib.Path(name)
        folder.mkdir(exist_ok=True)
        sys.exit(compare(options, folder, pathlib.Path(name)))


def compare(options, folder, scratch):
    """Prints the table; returns whether something in it is wrong."""
    last = ["ms"] if options.times else []
    titles = ["Model", "Tool", "Verdict", "From unoptimised", "From optimised", "Its own", *last]
    print("|", " | ".join(titles), "|\n|", " | ".join(["---"] * len(titles)), "|")
    counts, failures = {}, 0
    for model in filter(lambda name: options.model in name, MODELS):
        task = Task(model, folder)
        for tool, make in TOOLS.items():
            if options.tool not in tool:
                continue
            path = task.path(tool)
            try:
                with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
                    make(task, path)
            except Exception as problem:
                cells, is_right = [f"not written: {str(problem).splitlines()[0][:120]}", "", "", ""], True
            else:
                try:
                    cells, is_right = examine(options, task, tool, path, scratch)
                except Exception as problem:
                    cells, is_right = [f"not comparable: {str(problem).splitlines()[0][:200]}", "", "", ""], True
            failures += not is_right
            word = cells[0].split(":")[0]
            counts[word] = counts.get(word, 0) + 1
            print("|", " | ".join([model, tool, *cells]), "|", flush=True)
            if options.steps and path.exists():
                list_steps(options, task, path, scratch)
    print(", ".join(f"{number} {word}" for word, number in counts.items()), f"(ONNX Runtime {onnxruntime.__version__})")
    return failures > 0


main()
