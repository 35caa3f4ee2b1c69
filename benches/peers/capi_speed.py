"""Measures an operation on four floats, TensorFlow's own and a plugin's, in TensorFlow and here: the sum of two inputs.

    capi_speed.py TFRT [ROUNDS]

TFRT is the command, built for release; the Python must have `tensorflow-cpu==2.18.1`, and `cc` is asked for. A graph of
1,000 operations, each on the result of the one before, on one thread; optimizers are off, since the sum of constants would
be calculated once. The rounds take turns; what is printed is the least processor time of an operation over them, since the
machine may be busy.
"""

import os
import resource
import subprocess
import sys
import tempfile
import time

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import numpy as np
import tensorflow as tf
from tensorflow.core.framework import graph_pb2
from tensorflow.python.framework import load_library

N_OPS = 1_000
TURNS = 200
X, Y = [1.0, 2.0, 3.0, 4.0], [0.5, 0.25, 0.125, 1.0]


def build(folder):
    """Builds the plugin on the headers of this TensorFlow."""
    own = os.path.dirname(tf.__file__)
    library = os.path.join(folder, "libpeeradd.so")
    source = os.path.join(os.path.dirname(os.path.abspath(__file__)), "capi_add.c")
    subprocess.run(["cc", "-O2", "-shared", "-fPIC", f"-I{own}/include", source, "-o", library, f"-L{own}",
                    "-l:libtensorflow_framework.so.2"], check=True)
    return library


def program(op, n_turns):
    """A program that runs the operations in turns."""
    dense = lambda values: f"dense<{values}> : tensor<4xf32>"
    types = "!corert.tensorhandle, !corert.ophandler, !corert.tensorhandle"
    lines = [
        "func.func @main() {",
        "  %c0 = tfrt.new.chain",
        '  %cpu = corert.get_op_handler %c0 "cpu"',
        f"  %x = corert.const_dense_tensor {dense(X)}",
        f"  %y = corert.const_dense_tensor {dense(Y)}",
        f"  %n = tfrt.constant.i32 {n_turns}",
        f"  %r, %cpu_, %y_ = tfrt.repeat.i32 %n, %x, %cpu, %y : {types} {{",
    ]
    for index in range(N_OPS):
        before = "%x" if index == 0 else f"%v{index - 1}"
        lines.append(f'    %v{index} = corert.executeop(%cpu) "tf.{op}"({before}, %y) : 1')
    lines += [
        f"    tfrt.return %v{N_OPS - 1}, %cpu, %y : {types}",
        "  }",
        '  %c1 = "corert.print_tensorhandle"(%r, %c0) : (!corert.tensorhandle, !tfrt.chain) -> !tfrt.chain',
        "  tfrt.return",
        "}",
    ]
    return "\n".join(lines)


def time_of_turns(commands, n):
    """Runs a command of few turns and one of many, and returns the nanoseconds of processor time of each of the `n` more."""
    times = []
    for command in commands:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(command, check=True, capture_output=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        times.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return (times[1] - times[0]) / n * 1e9


def compare(contenders, rounds, unit):
    """Measures contenders in turns, and prints the least time of each."""
    times = {name: [] for name in contenders}
    for _ in range(rounds):
        for name, contender in contenders.items():
            times[name].append(contender.measure())
    for name, found in times.items():
        print(f"{name}: {min(found):,.0f} ns {unit} (the rounds: {' '.join(f'{one:.0f}' for one in found)})")


class Here:
    """Runs of the command, with few turns and with many: the difference is that of the turns."""

    def __init__(self, command, library, op, folder):
        self.files = []
        for n_turns in [1, 1 + TURNS]:
            path = os.path.join(folder, f"{op}-{n_turns}.mlir")
            with open(path, "w") as file:
                file.write(program(op, n_turns))
            self.files.append([command, "run", "--queue", "single", "--plugin", library, path])

    def measure(self):
        return time_of_turns(self.files, TURNS * N_OPS)


class There:
    """A graph in a session of one thread."""

    def __init__(self, op):
        graph_def = graph_pb2.GraphDef()
        graph_def.versions.producer = 1882
        for name in ["x", "y"]:
            node = graph_def.node.add(name=name, op="Placeholder")
            node.attr["dtype"].type = tf.float32.as_datatype_enum
        for index in range(N_OPS):
            before = "x" if index == 0 else f"v{index - 1}"
            node = graph_def.node.add(name=f"v{index}", op=op, input=[before, "y"])
            if op == "AddV2":
                node.attr["T"].type = tf.float32.as_datatype_enum
        config = tf.compat.v1.ConfigProto(intra_op_parallelism_threads=1, inter_op_parallelism_threads=1)
        config.graph_options.rewrite_options.disable_meta_optimizer = True
        config.graph_options.optimizer_options.opt_level = -1
        graph = tf.Graph()
        with graph.as_default():
            tf.import_graph_def(graph_def, name="")
        self.session = tf.compat.v1.Session(graph=graph, config=config)
        self.run = self.session.make_callable(f"v{N_OPS - 1}:0", ["x:0", "y:0"])
        self.run(np.float32(X), np.float32(Y))

    def measure(self):
        x, y = np.float32(X), np.float32(Y)
        begin = time.process_time()
        for _ in range(TURNS):
            self.run(x, y)
        return (time.process_time() - begin) / (TURNS * N_OPS) * 1e9


def main():
    command, rounds = sys.argv[1], int((sys.argv[2:] or ["7"])[0])
    with tempfile.TemporaryDirectory() as folder:
        library = build(folder)
        load_library.load_pluggable_device_library(library)
        contenders = {
            "own operation, here": Here(command, library, "AddV2", folder),
            "plugin's operation, here": Here(command, library, "PeerAdd", folder),
            f"own operation, TensorFlow {tf.__version__}": There("AddV2"),
            f"plugin's operation, TensorFlow {tf.__version__}": There("PeerAdd"),
        }
        compare(contenders, rounds, "an operation")


if __name__ == "__main__":
    main()
