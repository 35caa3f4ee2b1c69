"""Writes sparse_optimizers.txt: steps of rows of resource variables, as TensorFlow takes them.

    python sparse_optimizers.py > sparse_optimizers.txt

Needs tensorflow-cpu 2.18.1. Lines are those of optimizers.txt, with the extents of the variables and the rows.
"""

import os

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["TF_ENABLE_ONEDNN_OPTS"] = "0"
import numpy as np
import tensorflow as tf
from tensorflow.python.framework import op_def_registry

# Name, and flags that are not at their defaults.
OPS = [
    ("Adadelta", {}), ("Adagrad", {}), ("Adagrad", {"update_slots": False}), ("AdagradDA", {}),
    ("AdagradV2", {}), ("AdagradV2", {"update_slots": False}), ("CenteredRMSProp", {}),
    ("Ftrl", {}), ("Ftrl", {"multiply_linear_by_lr": True}),
    ("FtrlV2", {}), ("FtrlV2", {"multiply_linear_by_lr": True}),
    ("KerasMomentum", {}), ("KerasMomentum", {"use_nesterov": True}),
    ("Momentum", {}), ("Momentum", {"use_nesterov": True}),
    ("ProximalAdagrad", {}), ("ProximalGradientDescent", {}), ("RMSProp", {}),
]
NUMBERS = {
    "lr": 0.1, "alpha": 0.1, "rho": 0.9, "momentum": 0.9, "epsilon": 1e-3, "l1": 0.02, "l2": 0.03,
    "l2_shrinkage": 0.04, "lr_power": -0.5,
}
# The width of rows, and which are changed: one twice.
SHAPES = [(1, [7, 0, 5, 11, 2, 9, 3, 1, 5, 10]), (6, [1, 5, 1, 0])]
N_ROWS = 12


def bits(values):
    values = np.ascontiguousarray(values).ravel()
    unsigned = values.view({4: np.uint32, 8: np.uint64}[values.itemsize])
    return " ".join(f"{one:0{2 * values.itemsize}x}" for one in unsigned)


def step(name, flags, dtype, width, rows, random):
    op = f"ResourceSparseApply{name}"
    args = op_def_registry.get(op).input_arg
    start = lambda: random.standard_normal((N_ROWS, width)).astype(dtype)
    states = [arg.name for arg in args if arg.type == tf.resource.as_datatype_enum]
    values = {state: start() if at == 0 else np.abs(start()) + dtype(0.1) for at, state in enumerate(states)}
    if "mg" in values:
        # The mean square is above the square of the mean.
        values["ms"] = values["ms"] + values["mg"] ** 2
    gradient = random.standard_normal((len(rows), width)).astype(dtype)
    variables = {state: tf.Variable(value) for state, value in values.items()}
    operands, scalars = {state: variable.handle for state, variable in variables.items()}, []
    for arg in args:
        if arg.name == "grad":
            operands["grad"] = gradient
        elif arg.name == "indices":
            operands["indices"] = np.array(rows, np.int64)
        elif arg.name == "global_step":
            operands["global_step"] = np.int64(3)
            scalars.append(f"{3:016x}")
        elif arg.name not in variables:
            operands[arg.name] = dtype(NUMBERS[arg.name])
            scalars.append(bits(operands[arg.name]))
    getattr(tf.raw_ops, op)(**operands, **flags)
    words = ",".join(f"{flag}={int(value)}" for flag, value in flags.items()) or "-"
    print(op, words, {4: "f32", 8: "f64"}[gradient.itemsize])
    print("extents", N_ROWS, width)
    print("indices", *rows)
    for state in states:
        print("state", bits(values[state]))
    print("gradient", bits(gradient))
    print("scalars", *scalars)
    for state in states:
        print("=", bits(variables[state].numpy()))


def main():
    random = np.random.default_rng(29)
    print(f"# Steps of rows of resource variables, as TensorFlow {tf.__version__} takes them on x86-64: sparse_optimizers.py.")
    print("# Lines are those of optimizers.txt, with extents of the variables and the rows, in decimal.")
    for name, flags in OPS:
        for dtype in (np.float32, np.float64):
            for width, rows in SHAPES:
                step(name, flags, dtype, width, rows, random)


main()
