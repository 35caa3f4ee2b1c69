"""Decoders with a cache: greedy tokens here beside those of ONNX Runtime.

    onnx_decoders.py GREEDY [--steps N] [--size small|medium] [--keep FOLDER] [--with "OPTION .."] [--width N] [NAME|FILE ...]

Makes seeded decoders in the layouts that exporters write: Llama and GPT-2 as Optimum has them, the same Llama as the
builder of ONNX Runtime GenAI has it, in floats and in 4 bits, its cache growing or in buffers with room, and by the
operators of opset 24. Lets ONNX Runtime and the program GREEDY (`examples/greedy.rs`) say N tokens each, and prints for
each decoder whether all tokens are equal, the worst logit relative to the largest, the time of a step in the last half of
the steps, and the memory of our process after 100 steps and at the end. Then 64 steps with the cache are compared with 64
calls without. With names, these decoders alone; a FILE is a decoder of your own with the same inputs, whose dimension
`past_sequence_length` is given room by `--room N`; `--width N` tells ONNX Runtime what its `kv_cache_dim` is. `--with` goes to GREEDY as it is. Fails if tokens differ.

    benches/peers/setup.sh
    cargo build --release -p tfrt-examples --example greedy
    target/peers/venv/bin/python benches/peers/onnx_decoders.py target/release/examples/greedy
"""

import argparse
import pathlib
import subprocess
import sys
import tempfile
import time

import numpy
import onnx
import onnxruntime

from onnx_decoders_models import DECODERS, SIZES

PROMPT = [5, 17, 400, 3, 81]
N_UNCACHED = 64
# How far a logit may be away, relative to the largest.
TOLERANCE = 1e-4


def is_state(name):
    return name.startswith("past_key_values.")


def feed(name, tokens, n_seen):
    """What an input is given behind the first `n_seen` tokens."""
    n_all = len(tokens)
    values = {
        "input_ids": [tokens[n_seen:]],
        "attention_mask": [[1] * n_all],
        "position_ids": [list(range(n_seen, n_all))],
        "cache_position": list(range(n_seen, n_all)),
        "write_indices": [n_seen],
        "nonpad_kv_seqlen": [n_all],
    }
    return numpy.array(values[name], dtype=numpy.int64)


class Peer:
    """A decoder in ONNX Runtime."""

    def __init__(self, path, dims, width):
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 3
        self.session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        self.inputs = [value.name for value in self.session.get_inputs() if not is_state(value.name)]
        self.pasts = [value for value in self.session.get_inputs() if is_state(value.name)]
        self.outputs = [value.name for value in self.session.get_outputs()]
        self.dims, self.width = dims, width
        self.reset()

    def reset(self):
        self.state = {}
        for value in self.pasts:
            known = {"batch_size": 1, "past_sequence_length": 0, "kv_cache_dim": self.width} | self.dims
            # Names of PyTorch's own are the batch and the length, in this order.
            own = iter([1, 0])
            extents = [extent if isinstance(extent, int) else known.get(extent, None) for extent in value.shape]
            extents = [next(own) if extent is None else extent for extent in extents]
            self.state[value.name] = numpy.zeros(extents, numpy.float16 if "float16" in value.type else numpy.float32)

    def step(self, tokens, n_seen):
        feeds = {name: feed(name, tokens, n_seen) for name in self.inputs}
        has_room = self.dims.get("past_sequence_length", 0) > 0
        if not has_room:
            results = dict(zip(self.outputs, self.session.run(self.outputs, feeds | self.state)))
        else:
            results = self.bound(feeds)
        for value in self.pasts:
            self.state[value.name] = results[value.name.replace("past_key_values", "present")]
        return results["logits"][0, -1]

    def bound(self, feeds):
        """A call whose results lie where its state does."""
        binding = self.session.io_binding()
        for name, value in feeds.items():
            binding.bind_cpu_input(name, value)
        state = {}
        for name, value in self.state.items():
            if isinstance(value, numpy.ndarray):
                value = onnxruntime.OrtValue.ortvalue_from_numpy(value)
            present = name.replace("past_key_values", "present")
            state[present] = value
            binding.bind_ortvalue_input(name, value)
            binding.bind_ortvalue_output(present, value)
        binding.bind_output("logits", "cpu")
        self.session.run_with_iobinding(binding)
        logits = binding.get_outputs()[self.outputs.index("logits") if len(self.outputs) == 1 else -1].numpy()
        return state | {"logits": logits}

    def decode(self, n_steps):
        """Tokens, logits and seconds of each step."""
        tokens, logits, seconds, n_seen = list(PROMPT), [], [], 0
        for _ in range(n_steps):
            start = time.perf_counter()
            last = self.step(tokens, n_seen)
            token = int(last.argmax())
            seconds.append(time.perf_counter() - start)
            n_seen = len(tokens)
            tokens.append(token)
            logits.append(last.astype(numpy.float32))
        return tokens[len(PROMPT) :], numpy.array(logits), seconds


def resident(process, key):
    """Bytes of a process, as Linux tells them."""
    for line in pathlib.Path(f"/proc/{process.pid}/status").read_text().splitlines():
        if line.startswith(key):
            return int(line.split()[1]) * 1024
    return 0


def ours(command, path, n_steps, dims, options, folder):
    """Tokens, logits, seconds of each step, and memory after 100 steps and in the end."""
    words = [command, str(path), ",".join(map(str, PROMPT)), str(n_steps), "--logits", str(folder / "logits")]
    for name, size in dims.items():
        words += ["--dim", f"{name}={size}"]
    with open(folder / "errors", "w+") as errors:
        process = subprocess.Popen(words + options, stdout=subprocess.PIPE, stderr=errors, text=True)
        tokens, times, memory = [], [], []
        for line in process.stdout:
            tokens.append(int(line))
            times.append(time.perf_counter())
            if len(tokens) in (min(100, n_steps // 2), n_steps - 1):
                memory.append(resident(process, "VmRSS:"))
        if process.wait():
            errors.seek(0)
            raise SystemExit(f"{path}: {errors.read()}")
    logits = numpy.fromfile(folder / "logits", numpy.float32).reshape(n_steps, -1)
    return tokens, logits, list(numpy.diff(times)), memory


def compare(command, path, options, folder, dims, width):
    peer = Peer(path, dims, width)
    theirs, their_logits, their_seconds = peer.decode(options.steps)
    own, own_logits, own_seconds, memory = ours(command, path, options.steps, dims, options.passed_on, folder)
    n_equal = next((index for index, pair in enumerate(zip(own, theirs)) if pair[0] != pair[1]), options.steps)
    # Behind the first other token the two are given other things.
    n_alike = min(n_equal + 1, options.steps)
    away = numpy.abs(own_logits[:n_alike] - their_logits[:n_alike]).max() / numpy.abs(their_logits).max()

    n_short = min(N_UNCACHED, options.steps)
    if "write_indices" in peer.inputs or dims.get("past_sequence_length", 0) > 0:
        short_away = None
    else:
        again, short_logits, _, _ = ours(command, path, n_short, dims, options.passed_on + ["--no-cache"], folder)
        short_away = numpy.abs(short_logits - own_logits[:n_short]).max() / numpy.abs(own_logits[:n_short]).max()
        if again != own[:n_short]:
            short_away = float("nan")
    half = options.steps // 2
    return {
        "equal": n_equal,
        "different": len(set(theirs)),
        "away": away,
        "without": short_away,
        "own ms": 1000 * numpy.median(own_seconds[half:]),
        "their ms": 1000 * numpy.median(their_seconds[half:]),
        "memory": memory,
    }


def main():
    words = argparse.ArgumentParser()
    words.add_argument("command")
    words.add_argument("chosen", nargs="*")
    words.add_argument("--steps", type=int, default=512)
    words.add_argument("--size", default="small", choices=["small", "medium"])
    words.add_argument("--room", type=int, default=0)
    words.add_argument("--width", type=int)
    words.add_argument("--keep")
    words.add_argument("--with", dest="passed_on", default="")
    options = words.parse_intermixed_args()
    options.passed_on = options.passed_on.split()
    failed = False
    print("| Decoder | Tokens equal | Different ones | Logits away | 64 without a cache | ms a step, here | ONNX Runtime | MB after 100 | at the end |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        kept = pathlib.Path(options.keep or folder)
        kept.mkdir(exist_ok=True)
        files = [word for word in options.chosen if pathlib.Path(word).is_file()]
        names = [word for word in options.chosen if word not in files]
        cases = []
        for name, (make, room) in DECODERS.items():
            if name in names or not options.chosen:
                path = kept / f"{name}.{options.size}.onnx"
                onnx.save(make(options.size, options.steps + len(PROMPT)), path)
                dims = {"past_sequence_length": options.steps + len(PROMPT) + 1} if room else {}
                cases.append((name, path, dims, SIZES[options.size].width))
        for path in files:
            dims = {"past_sequence_length": options.room} if options.room else {}
            cases.append((pathlib.Path(path).parent.name, path, dims, options.width))
        for name, path, dims, width in cases:
            row = compare(options.command, path, options, folder, dims, width)
            without = "" if row["without"] is None else f"{row['without']:.1e}"
            memory = " | ".join(f"{bytes / 1e6:.0f}" for bytes in row["memory"])
            print(
                f"| {name} | {row['equal']} of {options.steps} | {row['different']} | {row['away']:.1e} | {without} "
                f"| {row['own ms']:.2f} | {row['their ms']:.2f} | {memory} |",
                flush=True,
            )
            is_far = not row["away"] <= TOLERANCE or (row["without"] is not None and not row["without"] <= TOLERANCE)
            failed |= row["equal"] < options.steps or is_far
    sys.exit(failed)


main()
