"""The models that `models` compares with, and ONNX Runtime running one as often as it is asked for.

    onnx_models.py make FOLDER
    onnx_models.py run MODEL INPUTS THREADS

The first makes what is not there yet: the networks of `onnx_light.py` and the encoder of `onnx_encoder.py`, a
perceptron of 784, 512, 512 and 10 numbers, a convolutional network of 28 by 28 pixels, a model of two operators, and a
chain of a thousand. Each case is a folder `NAME` with inputs beside `NAME.model`, a line with the model's file; the
inputs are listed in `inputs.txt`, a line each of name, type, extents and the file with the elements.

The second answers, for each line on the standard input, a number of times, with the nanoseconds that took; for
`results` with the elements of its first result, and for `nothing` with the nanoseconds of a call of a function that
does nothing, ten thousand times, which says what a call costs in Python alone. Operators run one after the other, on as
many threads as are asked for, with all optimisations; inputs and results are bound ahead.
"""

import pathlib
import subprocess
import sys
import time

import numpy

LIGHT = ["resnet50", "squeezenet", "shufflenet", "densenet121"]


def inputs_of(folder, name, model, arrays):
    """Writes a case."""
    place = folder / name
    place.mkdir(exist_ok=True)
    lines = []
    for index, (input_name, array) in enumerate(arrays.items()):
        array = numpy.ascontiguousarray(array)
        (place / f"{index}.bin").write_bytes(array.tobytes())
        lines.append(f"{input_name} {array.dtype} {','.join(map(str, array.shape))} {index}.bin\n")
    (place / "inputs.txt").write_text("".join(lines))
    # It says that all the rest is there.
    (folder / f"{name}.model").write_text(model.name)


def light(folder, peers):
    """The networks for images. What is a weight is no input: others would not take it for constant."""
    import onnx

    subprocess.run([sys.executable, peers / "onnx_light.py", "make", folder / "light", *LIGHT], check=True, stderr=subprocess.DEVNULL)
    for name in LIGHT:
        model = onnx.load(folder / "light" / f"{name}.onnx")
        stated = {tensor.name for tensor in model.graph.initializer}
        kept = [value for value in model.graph.input if value.name not in stated]
        del model.graph.input[:]
        model.graph.input.extend(kept)
        path = folder / f"{name}.onnx"
        onnx.save(model, path)
        inputs_of(folder, name, path, {kept[0].name: numpy.load(folder / "light" / f"{name}.input.npy")})


def encoder(folder, peers):
    path = folder / "encoder.onnx"
    for words in (["fetch", folder / "weights"], ["write", folder / "weights", path]):
        subprocess.run([sys.executable, peers / "onnx_encoder.py", *words], check=True)
    random = numpy.random.default_rng(3)
    for batch in (1, 8):
        ids = random.integers(1000, 30000, (batch, 128))
        inputs_of(folder, f"encoder{batch}", path, {"input_ids": ids, "attention_mask": numpy.ones_like(ids)})


def save(folder, name, nodes, weights, shape, result_shape):
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        nodes,
        name,
        [value("x", TensorProto.FLOAT, shape)],
        [value("y", TensorProto.FLOAT, result_shape)],
        [numpy_helper.from_array(array.astype(numpy.float32), key) for key, array in weights.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    model.ir_version = 8
    onnx.checker.check_model(model)
    onnx.save(model, folder / f"{name}.onnx")
    x = numpy.random.default_rng(7).normal(0, 1, shape).astype(numpy.float32)
    inputs_of(folder, name, folder / f"{name}.onnx", {"x": x})


def dense(weights, random, node, source, name, extents):
    """A layer of a perceptron."""
    weights[f"{name}.weight"] = random.normal(0, numpy.sqrt(2 / extents[0]), extents)
    weights[f"{name}.bias"] = random.normal(0, 0.1, extents[1])
    return node("Gemm", [source, f"{name}.weight", f"{name}.bias"], name)


def small(folder):
    from onnx import helper

    random = numpy.random.default_rng(5)
    nodes, weights = [], {}

    def node(kind, sources, result, **attributes):
        nodes.append(helper.make_node(kind, sources, [result], name=result, **attributes))
        return result

    x = "x"
    for index, extents in enumerate([(784, 512), (512, 512)]):
        x = node("Relu", [dense(weights, random, node, x, f"dense{index}", extents)], f"relu{index}")
    dense(weights, random, node, x, "y", (512, 10))
    save(folder, "mlp", nodes, weights, [1, 784], [1, 10])

    nodes.clear()
    weights.clear()
    x = "x"
    for index, (depth, filters) in enumerate([(1, 6), (6, 16)]):
        weights[f"filter{index}"] = random.normal(0, numpy.sqrt(2 / depth / 25), (filters, depth, 5, 5))
        weights[f"bias{index}"] = random.normal(0, 0.1, filters)
        pads = [2, 2, 2, 2] if index == 0 else [0, 0, 0, 0]
        x = node("Conv", [x, f"filter{index}", f"bias{index}"], f"conv{index}", kernel_shape=[5, 5], pads=pads)
        x = node("Relu", [x], f"relu{index}")
        x = node("MaxPool", [x], f"pool{index}", kernel_shape=[2, 2], strides=[2, 2])
    x = node("Flatten", [x], "features")
    for index, extents in enumerate([(400, 120), (120, 84)]):
        x = node("Relu", [dense(weights, random, node, x, f"dense{index}", extents)], f"relu_dense{index}")
    dense(weights, random, node, x, "y", (84, 10))
    save(folder, "lenet", nodes, weights, [1, 1, 28, 28], [1, 10])

    for name, n_pairs in (("two", 1), ("chain", 500)):
        nodes.clear()
        x, weights = "x", {"step": random.normal(0, 1, 4)}
        for index in range(n_pairs):
            x = node("Add", [x, "step"], f"sum{index}")
            x = node("Tanh", [x], f"tanh{index}" if index < n_pairs - 1 else "y")
        save(folder, name, nodes, weights, [4], [4])


def make(folder):
    folder.mkdir(parents=True, exist_ok=True)
    peers = pathlib.Path(__file__).resolve().parent
    if not (folder / "densenet121.model").exists():
        light(folder, peers)
    if not (folder / "chain.model").exists():
        small(folder)
    if not (folder / "encoder8.model").exists():
        encoder(folder, peers)


def session_of(path, n_threads, refused):
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = n_threads
    options.inter_op_num_threads = 1
    options.execution_mode = onnxruntime.ExecutionMode.ORT_SEQUENTIAL
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
    # Of what it fails with this program speaks itself.
    options.log_severity_level = 4
    providers = ["CPUExecutionProvider"]
    return onnxruntime.InferenceSession(path, options, providers=providers, disabled_optimizers=refused)


def bound(session, place):
    """Inputs, and memory for the first result, whose extents a call tells."""
    import onnxruntime

    binding = session.io_binding()
    for line in (place / "inputs.txt").read_text().splitlines():
        name, kind, extents, file = line.split(" ")
        array = numpy.fromfile(place / file, kind).reshape(list(map(int, extents.split(","))))
        binding.bind_ortvalue_input(name, onnxruntime.OrtValue.ortvalue_from_numpy(array))
    first = session.get_outputs()[0].name
    binding.bind_output(first)
    session.run_with_iobinding(binding)
    shape = binding.get_outputs()[0].numpy().shape
    result = onnxruntime.OrtValue.ortvalue_from_numpy(numpy.zeros(shape, numpy.float32))
    binding.bind_ortvalue_output(first, result)
    return binding, result


def run(path, place, n_threads):
    import onnxruntime

    note = ""
    try:
        session = session_of(path, n_threads, [])
        binding, result = bound(session, place)
    except RuntimeError:
        # This one makes a graph of the encoder that it refuses itself, at the first call.
        session = session_of(path, n_threads, ["GatherToSliceFusion"])
        binding, result = bound(session, place)
        note = " without GatherToSliceFusion, with which it fails"
    # Without the method around it that Python would go through first.
    call, arguments = session._sess.run_with_iobinding, (binding._iobinding, None)

    def nothing(_, __):
        pass

    print(f"ONNX Runtime {onnxruntime.__version__}{note}", flush=True)
    for line in sys.stdin:
        word = line.strip()
        if word == "results":
            call(*arguments)
            print(*result.numpy().ravel().tolist(), flush=True)
            continue
        n_times, called = (10_000, nothing) if word == "nothing" else (int(word), call)
        start = time.perf_counter_ns()
        for _ in range(n_times):
            called(*arguments)
        print(time.perf_counter_ns() - start, flush=True)


def main():
    match sys.argv[1:]:
        case ["make", folder]:
            make(pathlib.Path(folder))
        case ["run", model, place, n_threads]:
            run(model, pathlib.Path(place), int(n_threads))
        case _:
            sys.exit(__doc__)


main()
