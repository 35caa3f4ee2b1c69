"""A training step of a perceptron in TensorFlow, for `cargo bench -p tfrt-benches --bench mnist`.

    mnist.py THREADS BATCH

Prints `ready`; then, for each line `N` that comes in, runs N steps and prints how many nanoseconds passed. A line
`loss` prints the loss before the next step.
"""
import os
import sys
import time

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["CUDA_VISIBLE_DEVICES"] = ""

import numpy as np
import tensorflow as tf

RATE = 0.01


def lcg(seed, n):
    """The numbers of the benchmark: those of `random` there."""
    out = np.empty(n, np.uint32)
    state = seed
    for index in range(n):
        state = (state * 1664525 + 1013904223) & 0xFFFFFFFF
        out[index] = state
    return ((out >> 8) / 16777216.0 - 0.5).astype(np.float32)


def main():
    threads, batch = (int(word) for word in sys.argv[1:])
    tf.config.threading.set_intra_op_parallelism_threads(threads)
    tf.config.threading.set_inter_op_parallelism_threads(threads)
    w0 = tf.Variable(lcg(1, 784 * 512).reshape(784, 512) / 8)
    b0 = tf.Variable(np.zeros(512, np.float32))
    w1 = tf.Variable(lcg(2, 512 * 10).reshape(512, 10) / 8)
    b1 = tf.Variable(np.zeros(10, np.float32))
    x = tf.constant(lcg(3, batch * 784).reshape(batch, 784) + 0.5)
    y = tf.constant(np.eye(10, dtype=np.float32)[np.arange(batch) % 10])

    @tf.function
    def step(x, y):
        with tf.GradientTape() as tape:
            hidden = tf.nn.relu(tf.matmul(x, w0) + b0)
            logits = tf.matmul(hidden, w1) + b1
            loss = tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits(y, logits))
        weights = [w0, b0, w1, b1]
        for weight, gradient in zip(weights, tape.gradient(loss, weights)):
            weight.assign_sub(RATE * gradient)
        return loss

    first = float(step(x, y))
    print("ready", flush=True)
    for line in sys.stdin:
        if line.strip() == "loss":
            print(first, flush=True)
            continue
        begun = time.perf_counter_ns()
        for _ in range(int(line)):
            loss = step(x, y)
        loss.numpy()
        print(time.perf_counter_ns() - begun, flush=True)


main()
