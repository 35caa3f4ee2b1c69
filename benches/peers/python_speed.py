"""Times of the package for Python beside onnxruntime's: an MLP, awaits, cancelling, imports.

    pip install ./python onnx onnxruntime && python benches/peers/python_speed.py
"""

import asyncio
import subprocess
import sys
import threading
import time

import numpy as np
import onnx
from onnx import TensorProto, helper

import tfrt


def mlp() -> bytes:
    """Returns a perceptron of 784, 128 and 10 units."""
    rng = np.random.default_rng(0)
    weights = {"w": (784, 128), "b": (128,), "v": (128, 10), "c": (10,)}
    constants = [
        onnx.numpy_helper.from_array(rng.normal(0, 0.1, shape).astype(np.float32), name)
        for name, shape in weights.items()
    ]
    nodes = [
        helper.make_node("Gemm", ["x", "w", "b"], ["h"]),
        helper.make_node("Relu", ["h"], ["r"]),
        helper.make_node("Gemm", ["r", "v", "c"], ["y"]),
    ]
    value = lambda name, n: helper.make_tensor_value_info(name, TensorProto.FLOAT, ["N", n])
    graph = helper.make_graph(nodes, "mlp", [value("x", 784)], [value("y", 10)], constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    return model.SerializeToString()


def microseconds(call, times: int = 2000) -> float:
    """Returns the least of ten means."""
    for _ in range(100):
        call()
    means = []
    for _ in range(10):
        begun = time.perf_counter()
        for _ in range(times // 10):
            call()
        means.append((time.perf_counter() - begun) / (times // 10) * 1e6)
    return min(means)


def imported(name: str) -> float:
    """Returns the milliseconds that an import takes beside NumPy's."""
    program = f"import numpy, time; b = time.perf_counter(); import {name}; print((time.perf_counter() - b) * 1e3)"
    return min(float(subprocess.check_output([sys.executable, "-c", program])) for _ in range(5))


async def awaits(model, feed, times: int = 1000) -> float:
    for _ in range(100):
        await model.run_async(feed)
    begun = time.perf_counter()
    for _ in range(times):
        await model.run_async(feed)
    return (time.perf_counter() - begun) / times * 1e6


def cancelled() -> float:
    """Returns the milliseconds from a cancellation to the end of a long call."""
    kind = "tensor<?x?xf32>"
    lines = [f'%p{n + 1} = "onnx.MatMul"(%p{n}, %p0) : ({kind}, {kind}) -> {kind}' for n in range(4000)]
    text = f'func.func @main(%p0: {kind}) -> {kind} attributes {{model.input_names = ["x"], model.output_names = ["y"]}} {{\n'
    text += "\n".join(lines) + f"\ntfrt.return %p4000 : {kind}\n}}\n"
    model = tfrt.Model(text.encode(), name="long.mlir")

    async def main() -> float:
        task = asyncio.create_task(model.run_async({"x": np.eye(256, dtype=np.float32)}))
        await asyncio.sleep(0.1)
        begun = time.perf_counter()
        task.cancel()
        await asyncio.wait([task])
        return (time.perf_counter() - begun) * 1e3

    return min(asyncio.run(main()) for _ in range(5))


def main() -> None:
    import onnxruntime

    content, model = mlp(), tfrt.Model(mlp())
    session = onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])
    for n in (1, 64):
        feed = {"x": np.random.default_rng(1).normal(size=(n, 784)).astype(np.float32)}
        np.testing.assert_allclose(model.run(feed)["y"], session.run(None, feed)[0], rtol=1e-4, atol=1e-4)
        own, peer = microseconds(lambda: model.run(feed)), microseconds(lambda: session.run(None, feed))
        print(f"run, {n} rows: tfrt {own:.1f} us, onnxruntime {peer:.1f} us")
    feed = {"x": np.zeros((1, 784), np.float32)}
    print(f"await, 1 row: tfrt {asyncio.run(awaits(model, feed)):.1f} us")
    print(f"cancelled call: {cancelled():.2f} ms")
    print(f"import: tfrt {imported('tfrt'):.1f} ms, onnxruntime {imported('onnxruntime'):.1f} ms")
    print(f"threads of Python: {threading.active_count()}")


if __name__ == "__main__":
    main()
