"""Trains with the plugin of optimizers inside TensorFlow, and prints the bits of the variables.

    python record.py ../plugins/optimizers.c > trained.txt

Needs tensorflow-cpu 2.18.1, whose headers and libraries the plugin is built on, and cc.
"""

import os
import pathlib
import subprocess
import sys
import tempfile

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import numpy as np
import tensorflow as tf
from tensorflow.python.framework import load_library, op_def_registry

HEADER = """
#include <stdbool.h>
#include <stdint.h>
typedef struct TF_OpDefinitionBuilder TF_OpDefinitionBuilder;
#include "tensorflow/c/kernels.h"
#include "tensorflow/c/kernels_experimental.h"
"""

DENSE = (
    "AdaMax Adadelta Adagrad AdagradDA AdagradV2 Adam AdamWithAmsgrad AddSign CenteredRMSProp Ftrl FtrlV2 "
    "GradientDescent KerasMomentum Momentum PowerSign ProximalAdagrad ProximalGradientDescent RMSProp"
)
OF_ROWS = (
    "Adadelta Adagrad AdagradDA AdagradV2 CenteredRMSProp Ftrl FtrlV2 KerasMomentum Momentum ProximalAdagrad "
    "ProximalGradientDescent RMSProp"
)


def build(source, folder):
    package = pathlib.Path(tf.__file__).parent
    (folder / "tfrt_capi.h").write_text(HEADER)
    library = folder / "liboptimizers.so"
    command = ["cc", "-shared", "-fPIC", "-O1", "-ffp-contract=off", "-o", library, source]
    command += [f"-I{folder}", f"-I{package}/include", f"-L{package}", f"-Wl,-rpath,{package}"]
    command += ["-lm", "-l:libtensorflow_framework.so.2", "-l:libtensorflow_cc.so.2"]
    subprocess.run(command, check=True)
    return str(library)


def train(op):
    f = np.float32
    definition = op_def_registry.get(op)
    names = [arg.name for arg in definition.input_arg]
    n = sum(arg.type == tf.resource.as_datatype_enum for arg in definition.input_arg)
    at, rows = np.arange(23, dtype=f), slice(None)
    start = at * f(0.05) - f(0.5)
    states = [tf.Variable(start if i == 0 else np.abs(start) + f(0.125)) for i in range(n)]
    powers = [f(1), f(1)]
    for step in range(1, 51):
        powers = [powers[0] * f(0.9), powers[1] * f(0.999)]
        if "indices" in names:
            rows = (5 * step + 3 * np.arange(5)) % 23
        slope = (states[0].numpy() - at * f(0.01))[rows]
        values = {
            "indices": rows, "grad": slope, "delta": slope, "global_step": np.int64(step),
            "beta1_power": powers[0], "beta2_power": powers[1],
            "beta1": f(0.9), "rho": f(0.9), "momentum": f(0.9), "beta2": f(0.999),
            "lr_power": f(-0.5), "epsilon": f(1e-3),
            "l1": f(0.01), "l2": f(0.01), "l2_shrinkage": f(0.01),
        }
        operands = {name: state.handle for name, state in zip(names, states)}
        operands |= {name: tf.constant(values.get(name, f(0.05))) for name in names[n:]}
        getattr(tf.raw_ops, op)(use_locking=step % 2 == 0, **operands)
    return states


def main():
    with tempfile.TemporaryDirectory() as folder:
        library = build(sys.argv[1], pathlib.Path(folder))
        # The plugin's kernels have priority 1: they come before TensorFlow's own.
        load_library.load_pluggable_device_library(library)
    print(f"# Variables after 50 steps by the plugin inside TensorFlow {tf.__version__}, as bits in hexadecimal: record.py.")
    names = [f"ResourceApply{name}" for name in DENSE.split()]
    names += [f"ResourceSparseApply{name}" for name in OF_ROWS.split()]
    for name in names:
        print(f"tf.{name}")
        for state in train(name):
            print("=", " ".join(f"{bits:08x}" for bits in state.numpy().view(np.uint32)))


main()
