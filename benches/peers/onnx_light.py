"""Nine architectures with seeded random weights: our results beside those of ONNX Runtime.

    onnx_light.py make FOLDER [NAME ...]
    onnx_light.py compare FOLDER COMMAND [NAME ...]

The package `onnx` carries nine networks for images whose weights are constants that are made of their shapes. The
first writes each with random weights in their place, an input, and what ONNX Runtime says to it. The second runs the
models by `COMMAND run MODEL --input NAME=FILE --output-dir DIR`, and says how far the results are away. It fails if one
is further than 1e-4 of the largest.

    benches/peers/setup.sh
    target/peers/venv/bin/python benches/peers/onnx_light.py make target/light
    target/peers/venv/bin/python benches/peers/onnx_light.py compare target/light target/release/tfrt
"""

import pathlib
import subprocess
import sys
import tempfile
import zlib

import numpy

TOLERANCE = 1e-4


def architectures(names):
    import onnx

    folder = pathlib.Path(onnx.__file__).parent / "backend/test/data/light"
    found = {path.stem.removeprefix("light_"): path for path in sorted(folder.glob("*.onnx"))}
    return {name: path for name, path in found.items() if not names or name in names}


def weights(kind, position, shape, random):
    """Weights for an input of an operator, such that what comes out is about as large as what goes in."""
    if kind in ("Conv", "Gemm") and position == 1:
        fan_in = numpy.prod(shape[1:]) if kind == "Conv" else max(shape)
        return random.normal(0, numpy.sqrt(2 / fan_in), shape)
    if kind == "BatchNormalization" and position in (1, 4) or kind == "Mul":
        return random.uniform(0.5, 1.5, shape)
    return random.normal(0, 0.1, shape)


def with_weights(model, random):
    """Puts random weights in the place of constants that are made of shapes."""
    from onnx import numpy_helper

    graph = model.graph
    shapes = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}
    # What goes through changes of shape is used behind them.
    users = {}
    for node in reversed(graph.node):
        for position, name in enumerate(node.input):
            is_passed_on = node.op_type in ("Unsqueeze", "Reshape") and node.output[0] in users
            users[name] = users[node.output[0]] if is_passed_on else (node.op_type, position)
    kept, used = [], set()
    for node in graph.node:
        if node.op_type != "ConstantOfShape":
            kept.append(node)
            used.update(node.input)
            continue
        name, shape = node.output[0], shapes[node.input[0]]
        kind, position = users.get(name, ("", 0))
        array = weights(kind, position, [int(size) for size in shape], random)
        graph.initializer.append(numpy_helper.from_array(array.astype(numpy.float32), name))
    tensors = [tensor for tensor in graph.initializer if tensor.name in used]
    inputs = [value for value in graph.input if value.name in used]
    for field, values in ((graph.node, kept), (graph.initializer, tensors), (graph.input, inputs)):
        del field[:]
        field.extend(values)
    # Since then weights need not be inputs, too.
    model.ir_version = 8
    return model


def make(folder, names):
    import onnx
    import onnxruntime

    folder.mkdir(parents=True, exist_ok=True)
    for name, path in architectures(names).items():
        random = numpy.random.default_rng(zlib.crc32(name.encode()))
        model = with_weights(onnx.load(path), random)
        onnx.checker.check_model(model)
        onnx.save(model, folder / f"{name}.onnx")
        stated = {tensor.name for tensor in model.graph.initializer}
        [value] = [value for value in model.graph.input if value.name not in stated]
        shape = [size.dim_value for size in value.type.tensor_type.shape.dim]
        image = random.normal(0, 1, shape).astype(numpy.float32)
        numpy.save(folder / f"{name}.input.npy", image)
        session = onnxruntime.InferenceSession(folder / f"{name}.onnx", providers=["CPUExecutionProvider"])
        [result] = session.run(None, {value.name: image})
        numpy.save(folder / f"{name}.expected.npy", result)
        print(f"{name}: {value.name} {shape} -> {list(result.shape)}, up to {numpy.abs(result).max():.3g}")


def run(command, folder, name):
    """Runs a model; returns its only result."""
    import onnx

    path = folder / f"{name}.onnx"
    graph = onnx.load(path).graph
    stated = {tensor.name for tensor in graph.initializer}
    [value] = [value.name for value in graph.input if value.name not in stated]
    given = f"{value}={folder / name}.input.npy"
    with tempfile.TemporaryDirectory() as results:
        line = [command, "run", str(path), "--input", given, "--output-dir", results]
        subprocess.run(line, check=True, stdout=subprocess.DEVNULL)
        [result] = pathlib.Path(results).rglob("*.npy")
        return numpy.load(result)


def compare(folder, command, names):
    n_far = 0
    for path in sorted(folder.glob("*.onnx")):
        name = path.stem
        if names and name not in names:
            continue
        expected = numpy.load(folder / f"{name}.expected.npy")
        try:
            found = run(command, folder, name)
        except (subprocess.CalledProcessError, ValueError) as error:
            print(f"{name}: {error}")
            n_far += 1
            continue
        if found.shape != expected.shape:
            print(f"{name}: expected {list(expected.shape)}, found {list(found.shape)}")
            n_far += 1
            continue
        distance = float(numpy.abs(found - expected).max() / numpy.abs(expected).max())
        # What is no number is far, too.
        is_near = distance <= TOLERANCE
        n_far += not is_near
        print(f"{name}: {distance:.1e}{'' if is_near else ', too far'}")
    return n_far


def main():
    words = sys.argv[1:]
    if len(words) >= 2 and words[0] == "make":
        make(pathlib.Path(words[1]), words[2:])
    elif len(words) >= 3 and words[0] == "compare":
        sys.exit(1 if compare(pathlib.Path(words[1]), words[2], words[3:]) else 0)
    else:
        sys.exit(__doc__)


main()
