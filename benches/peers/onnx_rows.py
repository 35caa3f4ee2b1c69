"""Compares the bits of rows that a model is given together with those that it gives for each alone: what batches of
`tfrt serve` rely on.

    python benches/peers/onnx_rows.py target/release/tfrt [ROWS ..]

It needs `numpy` and `onnx`. Models are made from a seed: perceptrons of 16, 784 and 4096 inputs, and a convolutional
network. It ends with status 1 if a row differs.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

RANDOM = np.random.default_rng(0)


def constant(name, *extents):
    return numpy_helper.from_array(RANDOM.standard_normal(extents).astype(np.float32), name)


def save(path, nodes, extents, constants):
    """Writes a model of an input `x` of rows with these extents, and an output `y` of ten numbers a row."""
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", *extents])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["N", 10])
    graph = helper.make_graph(nodes, "rows", [x], [y], constants)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)


def perceptron(path, n_inputs):
    nodes = [
        helper.make_node("Gemm", ["x", "w", "b"], ["hidden"]),
        helper.make_node("Relu", ["hidden"], ["active"]),
        helper.make_node("Gemm", ["active", "w2", "b2"], ["scores"]),
        helper.make_node("Softmax", ["scores"], ["y"]),
    ]
    constants = [constant("w", n_inputs, 256), constant("b", 256), constant("w2", 256, 10), constant("b2", 10)]
    save(path, nodes, [n_inputs], constants)


def convolutional(path):
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["maps"], pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["maps"], ["active"]),
        helper.make_node("GlobalAveragePool", ["active"], ["means"]),
        helper.make_node("Flatten", ["means"], ["flat"]),
        helper.make_node("MatMul", ["flat", "w2"], ["y"]),
    ]
    save(path, nodes, [3, 32, 32], [constant("w", 16, 3, 3, 3), constant("w2", 16, 10)])


def main():
    tfrt, *rows = sys.argv[1:]
    rows = [int(n) for n in rows] or [2, 3, 5, 8, 16, 31, 33, 64]
    models = {f"perceptron of {n}": ([n], lambda path, n=n: perceptron(path, n)) for n in (16, 784, 4096)}
    models["convolutional"] = ([3, 32, 32], convolutional)
    n_bad = 0
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        model, given, found = (folder / name for name in ("model.onnx", "x.npy", "y.npy"))

        def run(x):
            np.save(given, x)
            command = [tfrt, "run", model, "--input", f"x={given}", "--output", f"y={found}"]
            subprocess.run(command, check=True, capture_output=True)
            return np.load(found)

        for name, (extents, write) in models.items():
            write(model)
            x = RANDOM.standard_normal((max(rows), *extents)).astype(np.float32)
            alone = np.concatenate([run(row[np.newaxis]) for row in x])
            for n in rows:
                differ = (run(x[:n]).view(np.uint32) != alone[:n].view(np.uint32)).any(axis=1).sum()
                print(f"{name}: of {n} rows {differ} differ")
                n_bad += differ
    sys.exit(int(n_bad > 0))


if __name__ == "__main__":
    main()
