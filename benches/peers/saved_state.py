"""Runs signatures that change variables, saves them by `tfrt run --save`, and compares what TensorFlow reads with its own.

    python benches/peers/saved_state.py [--tfrt PATH]    # needs tensorflow

A counter, a loop and a condition that assign, and a training step with each optimizer of TensorFlow's operations are called
three times by both. A line for each: the largest difference of outputs and variables relative to the largest element.
"""

import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import tensorflow as tf

N_STEPS = 3


class Counter(tf.Module):
    def __init__(self):
        self.total = tf.Variable(tf.zeros([3]), name="total")
        self.calls = tf.Variable(0, dtype=tf.int64, name="calls")
        self.scale = tf.Variable(2.0, name="scale")

    @tf.function(input_signature=[tf.TensorSpec([3], tf.float32, name="x")])
    def step(self, x):
        self.total.assign_add(x * self.scale)
        self.calls.assign_add(1)
        return {"y": self.total + tf.cast(self.calls, tf.float32)}


class Control(tf.Module):
    def __init__(self):
        self.total = tf.Variable(tf.ones([3]), name="total")

    @tf.function(input_signature=[tf.TensorSpec([3], tf.float32, name="x")])
    def step(self, x):
        if tf.reduce_sum(x) > 0.0:
            self.total.assign_sub(x)
        for _ in tf.range(4):
            self.total.assign(self.total * 1.5)
        return {"y": self.total * 1.0}


def trainer(optimizer):
    """Returns a module that fits a line by a raw operation, and keeps the operation's slots."""

    class Train(tf.Module):
        def __init__(self):
            self.w = tf.Variable([0.5, -0.25, 1.0], name="w")
            self.slots = [tf.Variable(tf.fill([3], 0.1), name=f"slot{i}") for i in range(2)]

        @tf.function(input_signature=[tf.TensorSpec([3], tf.float32, name="x")])
        def step(self, x):
            error = tf.reduce_sum(self.w * x) - 1.0
            optimizer(self.w, self.slots, error * x)
            return {"y": tf.identity(error)}

    return Train()


def optimizers():
    raw, h = tf.raw_ops, lambda variable: variable.handle
    return {
        "gradient_descent": lambda w, s, g: raw.ResourceApplyGradientDescent(var=h(w), alpha=0.1, delta=g),
        "momentum": lambda w, s, g: raw.ResourceApplyMomentum(
            var=h(w), accum=h(s[0]), lr=0.1, grad=g, momentum=0.9, use_nesterov=True),
        "keras_momentum": lambda w, s, g: raw.ResourceApplyKerasMomentum(
            var=h(w), accum=h(s[0]), lr=0.1, grad=g, momentum=0.9),
        "adam": lambda w, s, g: raw.ResourceApplyAdam(
            var=h(w), m=h(s[0]), v=h(s[1]), beta1_power=0.9, beta2_power=0.999, lr=0.1, beta1=0.9, beta2=0.999,
            epsilon=1e-7, grad=g),
        "adagrad": lambda w, s, g: raw.ResourceApplyAdagrad(var=h(w), accum=h(s[0]), lr=0.1, grad=g),
        "adagrad_v2": lambda w, s, g: raw.ResourceApplyAdagradV2(
            var=h(w), accum=h(s[0]), lr=0.1, epsilon=1e-7, grad=g),
        "rms_prop": lambda w, s, g: raw.ResourceApplyRMSProp(
            var=h(w), ms=h(s[0]), mom=h(s[1]), lr=0.1, rho=0.9, momentum=0.5, epsilon=1e-7, grad=g),
    }


def difference(own, other):
    own, other = np.asarray(own, np.float64), np.asarray(other, np.float64)
    return np.max(np.abs(own - other)) / max(np.max(np.abs(other)), 1e-30)


def compare(name, module, tfrt, folder):
    saved, written = folder / name, folder / f"{name}.saved"
    tf.saved_model.save(module, saved, signatures=module.step)
    x = np.linspace(-1.0, 2.0, 3).astype(np.float32)
    np.save(folder / "x.npy", x)
    for _ in range(N_STEPS):
        y = module.step(tf.constant(x))["y"].numpy()
    command = [tfrt, "run", saved, "--input", f"x={folder / 'x.npy'}", "--steps", str(N_STEPS), "--save", written,
               "--output", f"y={folder / 'y.npy'}"]
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    if done.returncode != 0:
        print(f"{name:18} FAILED: {done.stderr.strip()}")
        return False
    worst = difference(np.load(folder / "y.npy")[-1], y)
    # What TensorFlow reads goes on from there.
    read = tf.saved_model.load(written).signatures["serving_default"]
    again = read(x=tf.constant(x))["y"].numpy()
    worst = max(worst, difference(again, module.step(tf.constant(x))["y"].numpy()))
    print(f"{name:18} {worst:.1e}")
    return worst < 1e-4


def main():
    arguments = sys.argv[1:]
    tfrt = arguments[arguments.index("--tfrt") + 1] if "--tfrt" in arguments else "target/release/tfrt"
    modules = {"counter": Counter(), "control": Control()}
    modules |= {name: trainer(optimizer) for name, optimizer in optimizers().items()}
    with tempfile.TemporaryDirectory() as folder:
        fine = [compare(name, module, tfrt, pathlib.Path(folder)) for name, module in modules.items()]
    print(f"{sum(fine)} of {len(fine)} agree")
    sys.exit(0 if all(fine) else 1)


main()
