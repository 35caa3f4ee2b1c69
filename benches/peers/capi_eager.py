"""Measures eager calls, of the runtime's own kernels and of plugins', in TensorFlow by its C API and here by Rust: the sum
of four floats, a read of a variable of four, and a step of Adam on ten million.

    capi_eager.py CALLS PLUGIN [ROUNDS]

CALLS is the example `calls` of the crate `tfrt-capi`, PLUGIN the library of `examples/plugin`, both built for release; the
Python must have `tensorflow-cpu==2.18.1`, and `cc` is asked for. The rounds take turns; what is printed is the least
processor time of a call over them, of few calls taken from that of many. All run on one core.
"""

import json
import os
import subprocess
import sys
import tempfile

import numpy as np

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import tensorflow as tf

from capi_speed import build, compare, time_of_turns

MANY = 10_000_000


def compile_peer(folder):
    """Builds the program that calls TensorFlow."""
    own = os.path.dirname(tf.__file__)
    program = os.path.join(folder, "capi_eager")
    source = os.path.join(os.path.dirname(os.path.abspath(__file__)), "capi_eager.c")
    libraries = ["-l:libtensorflow_cc.so.2", "-l:libtensorflow_framework.so.2"]
    subprocess.run(["cc", "-O2", source, "-o", program, f"-I{own}/include", f"-L{own}", f"-Wl,-rpath,{own}", *libraries],
                   check=True)
    return program


def floats(value, extents):
    """Returns a value whose elements are all the same, in a file of calls."""
    return ["f32", extents, np.float32(value).tobytes().hex()]


def script(op, n):
    """Returns a file of calls that calls an operation so often."""
    values, setup, inputs = {}, [], []

    def variable(name, value, extents):
        values[f"{name}.value"] = floats(value, extents)
        setup.append({"op": "tf.VarHandleOp", "in": [], "attrs": {"shared_name": ["string", name]}, "out": [name]})
        setup.append({"op": "tf.AssignVariableOp", "in": [name, f"{name}.value"], "out": []})
        return name

    if op == "ResourceApplyAdam":
        for name, value in [("weights", 1), ("m", 0), ("v", 0)]:
            inputs.append(variable(name, value, [MANY]))
        for name, value in [("p1", 0.9), ("p2", 0.999), ("lr", 0.001), ("b1", 0.9), ("b2", 0.999), ("eps", 1e-7)]:
            values[name] = floats(value, [])
            inputs.append(name)
        values["gradient"] = floats(0.5, [MANY])
        inputs.append("gradient")
    elif op == "ReadVariableOp":
        inputs.append(variable("v", 1, [4]))
    else:
        values["x"], values["y"] = floats(1, [4]), floats(2, [4])
        inputs = ["x", "y"]
    attrs = {"dtype": ["type", "f32"]} if op == "ReadVariableOp" else {}
    step = {"op": f"tf.{op}", "in": inputs, "attrs": attrs, "out": [], "repeat": n}
    return {"values": values, "setup": setup, "step": [step], "fetch": [], "times": 1}


class Measured:
    """A command with few calls and one with many: the difference is that of the calls."""

    def __init__(self, few, many, n):
        self.commands, self.n = [few, many], n

    def measure(self):
        return time_of_turns(self.commands, self.n)


def main():
    os.sched_setaffinity(0, list(os.sched_getaffinity(0))[:1])
    calls, adam, rounds = sys.argv[1], sys.argv[2], int((sys.argv[3:] or ["5"])[0])
    with tempfile.TemporaryDirectory() as folder:
        add, peer = build(folder), compile_peer(folder)

        def here(op, library, n):
            files = []
            for times in [1, 1 + n]:
                path = os.path.join(folder, f"{op}-{os.path.basename(library)}-{times}.json")
                with open(path, "w") as file:
                    json.dump(script(op, times), file)
                files.append(path)
            return Measured(*[[calls, library, path] for path in files], n)

        def there(op, library, n):
            return Measured(*[[peer, op, library, str(times)] for times in [1, 1 + n]], n)

        rows = [
            ("sum of four floats, own", "AddV2", add, "", 300_000),
            ("sum of four floats, plugin's", "PeerAdd", add, add, 300_000),
            ("read of a variable, own", "ReadVariableOp", add, "", 300_000),
            ("Adam on 10,000,000, own", "ResourceApplyAdam", add, "", 100),
            ("Adam on 10,000,000, plugin's", "ResourceApplyAdam", adam, adam, 100),
        ]
        contenders = {}
        for name, op, library, peers, n in rows:
            contenders[f"{name}, here"] = here(op, library, n)
            contenders[f"{name}, TensorFlow {tf.__version__}"] = there(op, peers, n)
        compare(contenders, rounds, "a call")


if __name__ == "__main__":
    main()
