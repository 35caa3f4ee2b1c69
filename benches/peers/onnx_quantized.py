"""Models of fewer bits: how fast they are here and in ONNX Runtime or OpenVINO, and beside what they were made from.

    onnx_quantized.py COMMAND [--model WORD] [--threads N] [--rounds N] [--keep FOLDER] [--other COMMAND]

Makes ResNet-50, MobileNetV2 and an encoder like MiniLM (six layers of 384, 128 words) with random weights, has ONNX
Runtime's quantisers write the files that people have (QDQ, QOperator, dynamic), and measures `COMMAND bench` and ONNX
Runtime in turn, on each number of threads. Prints the medians of the rounds in milliseconds, the ratio ONNX Runtime's
time / ours (above 1 we are faster), our time in f32 / quantised, and the deviation of our result from that of ONNX
Runtime without its optimisations, relative to the largest element. With --other a second build is measured in turn, and
its time printed last. Files stay in the folder of --keep, and are not made again.
The row `bf16` is the model in f32 with `--precision bf16`, beside OpenVINO as it comes (`pip install openvino`), which
computes so where there is AMX; without that package it is left out.

    benches/peers/setup.sh
    target/peers/venv/bin/python benches/peers/onnx_quantized.py target/release/tfrt
"""

import argparse
import importlib.util
import json
import pathlib
import statistics
import subprocess
import tempfile
import time

import numpy
import onnx
import onnxruntime
from onnxruntime import quantization
from onnxruntime.quantization import QuantFormat, QuantType, shape_inference

from onnx_tools_models import F32, Graph

onnxruntime.set_default_logger_severity(4)
LEVELS = onnxruntime.GraphOptimizationLevel
WIDTH, HEADS, WORDS, LENGTH = 384, 12, 1000, 128


def resnet50():
    g = Graph("resnet50")
    relu = lambda x: g.add("Relu", x)
    x = relu(g.conv(g.input("x", "float32", 1, 3, 224, 224), 3, 64, 7, 2))
    x = g.add("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    n = 64
    for stage, blocks in enumerate((3, 4, 6, 3)):
        inner = 64 << stage
        for block in range(blocks):
            stride = 2 if stage and not block else 1
            y = relu(g.conv(x, n, inner, 1))
            y = relu(g.conv(y, inner, inner, 3, stride))
            y = g.conv(y, inner, 4 * inner, 1)
            short = x if block else g.conv(x, n, 4 * inner, 1, stride)
            x, n = relu(g.add("Add", y, short)), 4 * inner
    x = g.add("Flatten", g.add("GlobalAveragePool", x))
    return g.model(17, {"y": g.add("Gemm", x, g.weight(1000, n, scale=n ** -0.5), g.weight(1000, scale=0.1), transB=1)})


def mobilenetv2():
    g = Graph("mobilenetv2")
    clip = lambda x: g.add("Clip", x, g.constant(0, F32), g.constant(6, F32))
    x, n = clip(g.conv(g.input("x", "float32", 1, 3, 224, 224), 3, 32, 3, 2)), 32
    stages = [(1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1)]
    for wider, outer, blocks, stride in stages:
        for block in range(blocks):
            y = clip(g.conv(x, n, wider * n, 1)) if wider > 1 else x
            y = clip(g.conv(y, wider * n, wider * n, 3, 1 if block else stride, group=wider * n))
            y = g.conv(y, wider * n, outer, 1)
            x, n = g.add("Add", x, y) if block else y, outer
    x = g.add("Flatten", g.add("GlobalAveragePool", clip(g.conv(x, n, 1280, 1))))
    return g.model(17, {"y": g.add("Gemm", x, g.weight(1000, 1280, scale=0.03), g.weight(1000, scale=0.1), transB=1)})


def minilm():
    g = Graph("minilm")
    norm = lambda x: g.add("LayerNormalization", x, g.weight(WIDTH, scale=0.1, shift=1.0), g.weight(WIDTH, scale=0.1),
                           axis=-1)
    split = lambda x, order: g.add("Transpose", g.add("Reshape", x, g.constant([0, 0, HEADS, WIDTH // HEADS])), perm=order)
    ids = g.input("ids", "int64", 1, LENGTH)
    x = norm(g.add("Add", g.add("Gather", g.weight(WORDS, WIDTH, scale=1), ids), g.weight(LENGTH, WIDTH, scale=1)))
    for _ in range(6):
        q, k, v = (split(g.dense(x, WIDTH, WIDTH), order) for order in ([0, 2, 1, 3], [0, 2, 3, 1], [0, 2, 1, 3]))
        scores = g.add("Div", g.add("MatMul", q, k), g.constant((WIDTH / HEADS) ** 0.5, F32))
        y = g.add("Transpose", g.add("MatMul", g.add("Softmax", scores, axis=-1), v), perm=[0, 2, 1, 3])
        y = g.dense(g.add("Reshape", y, g.constant([0, 0, WIDTH])), WIDTH, WIDTH)
        x = norm(g.add("Add", x, y))
        y = g.dense(g.gelu(g.dense(x, WIDTH, 4 * WIDTH)), 4 * WIDTH, WIDTH)
        x = norm(g.add("Add", x, y))
    return g.model(17, {"y": x})


MODELS = {make.__name__: make for make in (resnet50, mobilenetv2, minilm)}


def feed(name, seed):
    random = numpy.random.default_rng(seed)
    if name == "minilm":
        return {"ids": random.integers(0, WORDS, (1, LENGTH))}
    return {"x": random.normal(0, 1, (1, 3, 224, 224)).astype(F32)}


class Reader(quantization.CalibrationDataReader):
    def __init__(self, name):
        self.feeds = iter([feed(name, seed) for seed in range(2)])

    def get_next(self):
        return next(self.feeds, None)


def static(form, activations, weights, per_channel=False):
    def make(name, source, path):
        quantization.quantize_static(str(source), str(path), Reader(name), quant_format=form, per_channel=per_channel,
            activation_type=activations, weight_type=weights)
    return make


def dynamic(_, source, path):
    quantization.quantize_dynamic(str(source), str(path), weight_type=QuantType.QInt8)


U8, I8 = QuantType.QUInt8, QuantType.QInt8
QDQ, QDQ_COLUMNS = static(QuantFormat.QDQ, U8, I8), static(QuantFormat.QDQ, U8, I8, per_channel=True)
QOPERATOR = static(QuantFormat.QOperator, U8, I8)
TOOLS = {
    "resnet50": {"QDQ": QDQ, "QDQ columns": QDQ_COLUMNS, "QOperator": QOPERATOR},
    "mobilenetv2": {"QDQ": QDQ, "QDQ columns": QDQ_COLUMNS, "QOperator": QOPERATOR},
    "minilm": {"dynamic": dynamic, "QDQ": QDQ},
}


def files(name, folder):
    """The files of a model by what they are; the first is in f32."""
    source = folder / f"{name}.onnx"
    if not source.exists():
        onnx.save(MODELS[name](), folder / "given.onnx")
        shape_inference.quant_pre_process(str(folder / "given.onnx"), str(source), skip_symbolic_shape=True)
    found = {"f32": source}
    if importlib.util.find_spec("openvino"):
        found["bf16"] = source
    for tool, make in TOOLS[name].items():
        path = folder / f"{name}_{tool.replace(' ', '_')}.onnx"
        if not path.exists():
            make(name, source, path)
        found[tool] = path
    return found


def session(path, level, threads):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = level
    options.intra_op_num_threads = threads
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def optimised(path, threads):
    """A session with all optimisations that it can make: some of them fail on files of its own quantisers."""
    for level in (LEVELS.ORT_ENABLE_ALL, LEVELS.ORT_ENABLE_EXTENDED, LEVELS.ORT_ENABLE_BASIC):
        try:
            return session(path, level, threads)
        except onnxruntime.capi.onnxruntime_pybind11_state.Fail:
            print(f"{path.name}: ONNX Runtime fails at {level.name}")
    return session(path, LEVELS.ORT_DISABLE_ALL, threads)


class OpenVino:
    """A session of OpenVINO, which chooses the precision itself."""

    def __init__(self, path, threads):
        import openvino

        settings = {"INFERENCE_NUM_THREADS": threads, "PERFORMANCE_HINT": "LATENCY"}
        self.request = openvino.Core().compile_model(str(path), "CPU", settings).create_infer_request()

    def run(self, _, values):
        self.request.infer(values)


def arguments(values, folder):
    given = []
    for key, value in values.items():
        numpy.save(folder / f"in_{key}.npy", value)
        given += ["--input", f"{key}={folder}/in_{key}.npy"]
    return given


def our_time(command, path, given, threads):
    queue = "single" if threads == 1 else f"multi:{threads}"
    line = [command, "bench", "--json", "--time", "0.7s", "--queue", queue, str(path), *given]
    ran = subprocess.run(line, capture_output=True, text=True)
    return json.loads(ran.stdout)["p50_ns"] / 1e6 if ran.returncode == 0 else float("nan")


def their_time(run, values):
    times, end = [], time.perf_counter() + 0.7
    while time.perf_counter() < end or len(times) < 3:
        start = time.perf_counter()
        run.run(None, values)
        times.append((time.perf_counter() - start) * 1e3)
    return statistics.median(times)


def deviation(command, path, given, values, folder):
    out = folder / "y.npy"
    line = [command, "run", "--message-format", "short", str(path), *given, "--output", f"y={out}"]
    ran = subprocess.run(line, capture_output=True, text=True)
    if ran.returncode:
        return (ran.stderr.strip().splitlines() or [f"status {ran.returncode}"])[0][:100]
    [exact] = session(path, LEVELS.ORT_DISABLE_ALL, 1).run(None, values)
    return f"{numpy.abs(numpy.load(out) - exact).max() / numpy.abs(exact).max():.1e}"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("command")
    parser.add_argument("--model", default="")
    parser.add_argument("--threads", type=int, choices=(1, 2))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--keep", type=pathlib.Path)
    parser.add_argument("--other")
    options = parser.parse_args()
    commands = [options.command] + [options.other] * bool(options.other)
    with tempfile.TemporaryDirectory() as scratch:
        scratch = pathlib.Path(scratch)
        folder = options.keep or scratch
        folder.mkdir(parents=True, exist_ok=True)
        print(f"ONNX Runtime {onnxruntime.__version__}")
        print(f"{'model':24} {'T':>2} {'theirs':>8} {'ours':>8} {'ratio':>6} {'f32/q':>6} {'deviation':>9}")
        for name in (name for name in MODELS if options.model in name):
            values = feed(name, 101)
            inputs = arguments(values, scratch)
            in_f32 = {}
            for tool, path in files(name, folder).items():
                given = inputs + (["--precision", "bf16"] if tool == "bf16" else [])
                away = deviation(options.command, path, given, values, scratch)
                for threads in [options.threads] if options.threads else (1, 2):
                    run = OpenVino(path, threads) if tool == "bf16" else optimised(path, threads)
                    their_time(run, values)
                    rounds = [[their_time(run, values)] + [our_time(one, path, given, threads) for one in commands]
                              for _ in range(options.rounds)]
                    theirs, ours, *other = (statistics.median(column) for column in zip(*rounds))
                    in_f32.setdefault(threads, ours)
                    print(f"{name + ' ' + tool:24} {threads:2} {theirs:8.2f} {ours:8.2f} {theirs / ours:6.2f} "
                          f"{in_f32[threads] / ours:6.2f} {away:>9}", *(f"{one:8.2f}" for one in other), flush=True)


if __name__ == "__main__":
    main()
