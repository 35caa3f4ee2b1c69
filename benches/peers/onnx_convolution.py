"""A convolution by ONNX Runtime, as often as it is asked for.

    onnx_convolution.py THREADS IMAGES EXTENT CHANNELS FILTERS WINDOW STRIDE OUTPUT BEFORE BEHIND

Weights are constants of the model. For each line on the standard input, a number of times, it answers
with the nanoseconds that took. The first line that it writes is the runtime's version.
"""

import sys
import time

import numpy
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

n_threads, n, extent, channels, filters, window, stride, output, before, behind = map(int, sys.argv[1:])
random = numpy.random.default_rng(1)
weights = random.uniform(-0.5, 0.5, (filters, channels, window, window)).astype(numpy.float32)
bias = random.uniform(-0.5, 0.5, filters).astype(numpy.float32)
convolution = helper.make_node(
    "Conv",
    ["x", "w", "b"],
    ["y"],
    kernel_shape=[window] * 2,
    strides=[stride] * 2,
    pads=[before, before, behind, behind],
)
graph = helper.make_graph(
    [convolution],
    "convolution",
    [helper.make_tensor_value_info("x", TensorProto.FLOAT, [n, channels, extent, extent])],
    [helper.make_tensor_value_info("y", TensorProto.FLOAT, [n, filters, output, output])],
    [numpy_helper.from_array(weights, "w"), numpy_helper.from_array(bias, "b")],
)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
model.ir_version = 8
options = onnxruntime.SessionOptions()
options.intra_op_num_threads = n_threads
options.inter_op_num_threads = 1
session = onnxruntime.InferenceSession(
    model.SerializeToString(), options, providers=["CPUExecutionProvider"]
)
x = random.uniform(-0.5, 0.5, (n, channels, extent, extent)).astype(numpy.float32)
# Values that are bound are neither copied nor made anew for each run.
binding = session.io_binding()
binding.bind_ortvalue_input("x", onnxruntime.OrtValue.ortvalue_from_numpy(x))
y = numpy.zeros((n, filters, output, output), numpy.float32)
binding.bind_ortvalue_output("y", onnxruntime.OrtValue.ortvalue_from_numpy(y))
print(onnxruntime.__version__, flush=True)
for line in sys.stdin:
    start = time.perf_counter_ns()
    for _ in range(int(line)):
        session.run_with_iobinding(binding)
    print(time.perf_counter_ns() - start, flush=True)
