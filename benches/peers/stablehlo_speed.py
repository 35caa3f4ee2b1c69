"""The time of networks of Flax, from StableHLO text, beside XLA and beside an ONNX file of the same network.

    stablehlo_speed.py COMMAND [--filter WORD] [--threads 1,2] [--rounds 5] [--keep FOLDER]

Each network is drawn from a seed, with its weights as constants, and printed by `jax.jit(f).lower(x).as_text()`. Rounds of
half a second alternate between XLA, `COMMAND bench` on the text, and `COMMAND bench` on the file that jax2onnx exports where
that package is installed; XLA has a process of its own that may run on as many processors as it is to have threads. A line
gives the medians of the rounds: of a call, milliseconds of processor time and the median latency; and the ratios of the
processor time. `COMMAND run --expect` compares the outputs first.

    pip install jax flax jax2onnx
    python benches/peers/stablehlo_speed.py target/release/tfrt
"""

import argparse
import json
import os
import pathlib
import resource
import statistics
import subprocess
import sys
import tempfile
import time

ROUND_S = 0.5
MODELS = ("mlp", "cnn", "encoder", "gpt", "resnet50")


def make(name):
    """Returns the function of a network and its input."""
    import flax.linen as nn
    import jax
    import jax.numpy as jnp
    import numpy

    def norm():
        return nn.BatchNorm(use_running_average=True)

    class Mlp(nn.Module):
        @nn.compact
        def __call__(self, x):
            return nn.Dense(10)(nn.relu(nn.Dense(128)(x)))

    class Cnn(nn.Module):
        @nn.compact
        def __call__(self, x):
            x = nn.max_pool(nn.relu(nn.Conv(32, (3, 3))(x)), window_shape=(2, 2), strides=(2, 2))
            x = nn.avg_pool(nn.relu(nn.Conv(64, (3, 3))(x)), window_shape=(2, 2), strides=(2, 2))
            return nn.Dense(10)(nn.relu(nn.Dense(256)(x.reshape(x.shape[0], -1))))

    class Block(nn.Module):
        width: int
        heads: int

        @nn.compact
        def __call__(self, x, mask=None):
            y = nn.LayerNorm()(x)
            x = x + nn.MultiHeadDotProductAttention(self.heads)(y, y, mask=mask)
            y = nn.gelu(nn.Dense(4 * self.width)(nn.LayerNorm()(x)))
            return x + nn.Dense(self.width)(y)

    class Encoder(nn.Module):
        """Patches of 16 by 16, four blocks, the mean of all patches."""

        @nn.compact
        def __call__(self, x):
            x = nn.Conv(192, (16, 16), (16, 16), padding="VALID")(x)
            x = x.reshape(x.shape[0], -1, x.shape[-1])
            x = x + self.param("positions", nn.initializers.normal(0.02), x.shape[1:])
            for _ in range(4):
                x = Block(192, 3)(x)
            return nn.Dense(100)(nn.LayerNorm()(x).mean(1))

    class Gpt(nn.Module):
        @nn.compact
        def __call__(self, ids):
            x = nn.Embed(8000, 256)(ids)
            x = x + self.param("positions", nn.initializers.normal(0.02), (ids.shape[1], 256))
            mask = nn.make_causal_mask(ids)
            for _ in range(4):
                x = Block(256, 8)(x, mask)
            return nn.Dense(8000, use_bias=False)(nn.LayerNorm()(x))

    class Bottleneck(nn.Module):
        width: int
        stride: int

        @nn.compact
        def __call__(self, x):
            y = nn.relu(norm()(nn.Conv(self.width, (1, 1), use_bias=False)(x)))
            y = nn.relu(norm()(nn.Conv(self.width, (3, 3), (self.stride,) * 2, use_bias=False)(y)))
            y = norm()(nn.Conv(4 * self.width, (1, 1), use_bias=False)(y))
            if x.shape != y.shape:
                x = norm()(nn.Conv(4 * self.width, (1, 1), (self.stride,) * 2, use_bias=False)(x))
            return nn.relu(x + y)

    class ResNet50(nn.Module):
        @nn.compact
        def __call__(self, x):
            x = nn.Conv(64, (7, 7), (2, 2), padding=[(3, 3)] * 2, use_bias=False)(x)
            x = nn.max_pool(nn.relu(norm()(x)), window_shape=(3, 3), strides=(2, 2), padding=((1, 1), (1, 1)))
            for stage, blocks in enumerate((3, 4, 6, 3)):
                for index in range(blocks):
                    x = Bottleneck(64 * 2**stage, 2 if stage > 0 and index == 0 else 1)(x)
            return nn.Dense(1000)(x.mean((1, 2)))

    random = numpy.random.default_rng(len(name))

    def floats(*shape):
        return random.normal(size=shape).astype("float32")

    network, x = {
        "mlp": lambda: (Mlp(), floats(1, 784)),
        "cnn": lambda: (Cnn(), floats(1, 28, 28, 1)),
        "encoder": lambda: (Encoder(), floats(1, 224, 224, 3)),
        "gpt": lambda: (Gpt(), random.integers(0, 8000, (1, 128)).astype("int32")),
        "resnet50": lambda: (ResNet50(), floats(1, 224, 224, 3)),
    }[name]()
    weights = jax.jit(network.init)(jax.random.PRNGKey(0), x)
    # Scales, shifts, means and variances that are no zeros and ones, which would fold away.
    weights = jax.tree.map(
        lambda a: jnp.asarray(0.9 + 0.05 * abs(random.normal(size=a.shape)), a.dtype) if a.ndim == 1 else a, weights
    )
    return lambda x: network.apply(weights, x), x


def processor_s():
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def peer(name, folder, threads):
    """Writes what a network is compared by; then, for each line of standard input, times XLA and prints a line."""
    os.sched_setaffinity(0, set(sorted(os.sched_getaffinity(0))[:threads]))
    import jax
    import numpy

    function, x = make(name)
    jitted = jax.jit(function)
    y = numpy.asarray(jitted(x))
    if not (folder / "model.mlir").exists():
        (folder / "model.mlir").write_text(jitted.lower(x).as_text())
    numpy.save(folder / "x.npy", x)
    numpy.save(folder / "y.npy", y)
    if not (folder / "model.onnx").exists():
        try:
            import jax2onnx

            jax2onnx.to_onnx(
                function, [jax.ShapeDtypeStruct(x.shape, x.dtype)], return_mode="file",
                output_path=str(folder / "model.onnx"),
            )
        except Exception as error:  # noqa: BLE001
            (folder / "no_onnx.txt").write_text(f"{type(error).__name__}: {error}")
    given = jax.device_put(x)
    print("ready", flush=True)
    for _ in sys.stdin:
        calls, begin, used = [], time.perf_counter(), processor_s()
        while time.perf_counter() < begin + ROUND_S or len(calls) < 5:
            before = time.perf_counter()
            jitted(given).block_until_ready()
            calls.append(time.perf_counter() - before)
        used = processor_s() - used
        print(json.dumps([used / len(calls) * 1e3, statistics.median(calls) * 1e3]), flush=True)


def ours(command, model, x, threads):
    """Returns milliseconds of processor time of a call, and its median latency."""
    done = subprocess.run(
        [command, "bench", model, "--input", x, "--queue", f"multi:{threads}", "--time", f"{ROUND_S}s", "--json"],
        capture_output=True, text=True,
    )
    if done.returncode:
        sys.exit(f"{model}: {done.stderr}")
    found = json.loads(done.stdout)
    return [found["processor_ns_per_call"] / 1e6, found["p50_ns"] / 1e6]


def compare(command, name, folder, threads, n_rounds):
    folder = folder / name
    folder.mkdir(parents=True, exist_ok=True)
    xla = subprocess.Popen(
        [sys.executable, __file__, "--peer", name, folder, str(threads)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
    )
    while (line := xla.stdout.readline()) != "ready\n":
        if not line:
            sys.exit(f"{name}: the process of XLA ended")
    files = [path for path in (folder / "model.mlir", folder / "model.onnx") if path.exists()]
    expected = ["--input", folder / "x.npy", "--expect", folder / "y.npy", "--tolerance", "1e-3"]
    for path in list(files):
        done = subprocess.run([command, "run", path, *expected], capture_output=True, text=True)
        problem = f"{path}: {(done.stderr or done.stdout).strip()[:500]}"
        if done.returncode and path.suffix == ".mlir":
            sys.exit(problem)
        if done.returncode:
            # The exporter's file need not mean the network: ONNX Runtime refuses that of ResNet-50 for its shapes.
            print(f"left out: {problem}", file=sys.stderr)
            files.remove(path)
    rounds = {subject: [] for subject in ("XLA", *files)}
    for _ in range(n_rounds):
        xla.stdin.write("\n")
        xla.stdin.flush()
        rounds["XLA"].append(json.loads(xla.stdout.readline()))
        for path in files:
            rounds[path].append(ours(command, path, folder / "x.npy", threads))
    xla.stdin.close()
    xla.wait()
    medians = [[statistics.median(column) for column in zip(*found)] for found in rounds.values()]
    (xla_cpu, xla_p50), (text_cpu, text_p50), *onnx = medians
    columns = [f"{xla_cpu:.3f} / {xla_p50:.3f}", f"{text_cpu:.3f} / {text_p50:.3f}"]
    columns.append("{:.3f} / {:.3f}".format(*onnx[0]) if onnx else "none")
    columns += [f"{text_cpu / xla_cpu:.2f}", f"{text_p50 / xla_p50:.2f}"]
    columns.append(f"{text_cpu / onnx[0][0]:.2f}" if onnx else "")
    print(f"| {name} | {threads} | {' | '.join(columns)} |", flush=True)


def main():
    if sys.argv[1:2] == ["--peer"]:
        name, folder, threads = sys.argv[2:]
        return peer(name, pathlib.Path(folder), int(threads))
    parser = argparse.ArgumentParser()
    parser.add_argument("command", type=pathlib.Path)
    parser.add_argument("--filter", default="")
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--keep", type=pathlib.Path)
    options = parser.parse_args()
    print("| network | threads | XLA: processor / p50, ms | tfrt | tfrt, ONNX | processor, of XLA's | p50, of XLA's | of ONNX's |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    with tempfile.TemporaryDirectory() as scratch:
        for name in MODELS:
            for threads in map(int, options.threads.split(",")):
                if options.filter in name:
                    compare(options.command, name, options.keep or pathlib.Path(scratch), threads, options.rounds)


main()
