"""ResNet-50 by ONNX Runtime, as often as it is asked for.

    onnx_resnet.py write TENSORS MODEL
    onnx_resnet.py run TENSORS MODEL THREADS

The first makes a model of images and weights in an archive. The second answers, for each line on the standard
input, a number of times, with the nanoseconds that took; for `peak` with the most bytes that the process has held, and
for `logits` with these. The first line that it writes is the runtime's version.
"""

import sys
import time

import numpy

BLOCKS = [3, 4, 6, 3]


def images(path):
    # Ours have their channels last.
    with numpy.load(path) as tensors:
        return numpy.ascontiguousarray(tensors["images"].transpose(0, 3, 1, 2))


def write(path, model_path):
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    tensors = numpy.load(path)
    nodes, weights = [], []

    def constant(name, array):
        weights.append(numpy_helper.from_array(numpy.ascontiguousarray(array), name))
        return name

    def node(kind, inputs, output, **attributes):
        nodes.append(helper.make_node(kind, inputs, [output], **attributes))
        return output

    def convolution(source, name, extent, stride, before, behind):
        filter = constant(f"{name}_filter", tensors[f"{name}_filter"].transpose(3, 2, 0, 1))
        pads = [before, before, behind, behind]
        convolved = node(
            "Conv",
            [source, filter],
            f"{name}_convolved",
            kernel_shape=[extent] * 2,
            strides=[stride] * 2,
            pads=pads,
        )
        parts = [f"{name}_{part}" for part in ("scale", "shift", "mean", "variance")]
        parts = [constant(part, tensors[part]) for part in parts]
        return node("BatchNormalization", [convolved, *parts], name, epsilon=1e-5)

    def relu(source):
        return node("Relu", [source], f"{source}_relu")

    x = images(path)
    n, _, extent, _ = x.shape
    image = relu(convolution("images", "conv1", 7, 2, 3, 3))
    extent = (extent - 1) // 2 + 1
    # As `same` has it: what is missing, the larger part behind.
    missing = max((-(-extent // 2) - 1) * 2 + 3 - extent, 0)
    pads = [missing // 2] * 2 + [missing - missing // 2] * 2
    image = node("MaxPool", [image], "pooled", kernel_shape=[3, 3], strides=[2, 2], pads=pads)
    extent = -(-extent // 2)
    for stage, blocks in enumerate(BLOCKS):
        for block in range(blocks):
            name = f"res{stage + 2}_{block + 1}"
            stride = 2 if stage > 0 and block == 0 else 1
            missing = max((-(-extent // stride) - 1) * stride + 3 - extent, 0)
            extent = -(-extent // stride)
            within = relu(convolution(image, f"{name}_a", 1, 1, 0, 0))
            around = (missing // 2, missing - missing // 2)
            within = relu(convolution(within, f"{name}_b", 3, stride, *around))
            within = convolution(within, f"{name}_c", 1, 1, 0, 0)
            if block == 0:
                image = convolution(image, f"{name}_shortcut", 1, stride, 0, 0)
            image = relu(node("Add", [within, image], f"{name}_sum"))
    image = node("GlobalAveragePool", [image], "means")
    image = node("Flatten", [image], "features")
    last = [constant(name, tensors[name]) for name in ("fc_weight", "fc_bias")]
    node("Gemm", [image, *last], "logits")
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        nodes,
        "resnet",
        [value("images", TensorProto.FLOAT, list(x.shape))],
        [value("logits", TensorProto.FLOAT, [n, tensors["fc_bias"].shape[0]])],
        weights,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    model.ir_version = 8
    onnx.save(model, model_path)


def run(path, model_path, n_threads):
    import resource

    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = n_threads
    options.inter_op_num_threads = 1
    providers = ["CPUExecutionProvider"]
    session = onnxruntime.InferenceSession(model_path, options, providers=providers)
    x = images(path)
    binding = session.io_binding()
    binding.bind_ortvalue_input("images", onnxruntime.OrtValue.ortvalue_from_numpy(x))
    shape = [x.shape[0], session.get_outputs()[0].shape[1]]
    logits = onnxruntime.OrtValue.ortvalue_from_numpy(numpy.zeros(shape, numpy.float32))
    binding.bind_ortvalue_output("logits", logits)
    print(onnxruntime.__version__, flush=True)
    for line in sys.stdin:
        word = line.strip()
        if word == "peak":
            print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024, flush=True)
        elif word == "logits":
            print(*logits.numpy().ravel().tolist(), flush=True)
        else:
            start = time.perf_counter_ns()
            for _ in range(int(word)):
                session.run_with_iobinding(binding)
            print(time.perf_counter_ns() - start, flush=True)


if sys.argv[1] == "write":
    write(*sys.argv[2:4])
else:
    run(*sys.argv[2:4], int(sys.argv[4]))
