"""Compares Intel's plugin inside TensorFlow 2.15.1 with the same library here, bit by bit.

    capi_intel.py CALLS LIBRARY [models | training | ops[=PATTERN]]

CALLS is the program of `cargo build -p tfrt-capi --example calls`, LIBRARY is `libitex_cpu.so` of
`intel-extension-for-tensorflow-lib==2.15.0.0.0`, as `cargo xtask capi` unpacks it. The Python must have
`tensorflow-cpu==2.15.1` and that package. `OMP_NUM_THREADS` must be set, to the same number for both.

A model is a list of calls of operations, with inputs from a seed. TensorFlow runs it as a graph, whose optimizers are off;
here it is called operation by operation. Each named value is compared. `training` trains an MLP for 100 steps: products
and softmax are the plugin's, variables and steps of the optimizer TensorFlow's there, and ours here. `ops` calls each
operation of the plugin whose name has the pattern with guessed inputs, here alone, and says how many run.
"""

import json
import os
import re
import resource
import subprocess
import sys
import tempfile

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import numpy as np

SEED = 7
TYPES = {"f32": np.float32, "i32": np.int32, "u8": np.uint8}
META = ["tensor", ["u8", [], "00"]]


def value(array):
    name = next(name for name, dtype in TYPES.items() if array.dtype == dtype)
    return [name, list(array.shape), array.tobytes().hex()]


def array(spec):
    return np.frombuffer(bytes.fromhex(spec[2]), TYPES[spec[0]]).reshape(spec[1])


class Script:
    """A list of calls, and the values that they begin with."""

    def __init__(self):
        self.random = np.random.default_rng(SEED)
        self.values, self.setup, self.step, self.fetch = {}, [], [], []

    def normal(self, name, *extents, scale=1.0):
        self.values[name] = value((self.random.standard_normal(extents) * scale).astype(np.float32))
        return name

    def const(self, name, elements, dtype=np.float32):
        self.values[name] = value(np.array(elements, dtype))
        return name

    def call(self, op, inputs, out, setup=False, **attrs):
        outs = [out] if isinstance(out, str) else out
        calls = self.setup if setup else self.step
        calls.append({"op": "tf." + op, "in": list(inputs), "out": outs, "attrs": attrs})
        return outs[0] if outs else None

    def document(self, times=1):
        return {"values": self.values, "setup": self.setup, "step": self.step, "fetch": self.fetch, "times": times}


T = ["type", "f32"]


def fused(script, a, b, bias, out, *after):
    """A product, or a convolution, with what follows it."""
    return script.call("_ITEXFusedMatMul", [a, b, bias], out, T=T, meta=META, num_args=["int", 1],
                       fused_ops=["list(string)", ["BiasAdd", *after]])


def product(script, a, b, out, **turned):
    attrs = {name: ["bool", is_turned] for name, is_turned in turned.items()}
    return script.call("_ITEXMatMul", [a, b], out, T=T, meta=META, **attrs)


def reshape(script, x, extents, out):
    shape = script.const(out + "_shape", extents, np.int32)
    return script.call("Reshape", [x, shape], out, T=T, Tshape=["type", "i32"])


def mlp():
    s = Script()
    s.normal("x", 32, 64)
    h = fused(s, "x", s.normal("w1", 64, 128, scale=0.2), s.normal("b1", 128), "hidden", "Relu")
    y = fused(s, h, s.normal("w2", 128, 10, scale=0.2), s.normal("b2", 10), "logits")
    s.call("_ITEXSoftmax", [y], "shares", T=T)
    product(s, "x", "w1", "product")
    s.fetch = ["product", "hidden", "logits", "shares"]
    return s


def lenet():
    s = Script()
    convolved = {"T": T, "strides": ["list(int)", [1, 1, 1, 1]]}
    pooled = {"T": T, "ksize": ["list(int)", [1, 2, 2, 1]], "strides": ["list(int)", [1, 2, 2, 1]],
              "padding": ["string", "VALID"]}
    s.normal("x", 4, 28, 28, 1)
    after = {"num_args": ["int", 1], "num_bn_args": ["int", 0], "fused_ops": ["list(string)", ["BiasAdd", "Relu"]]}
    s.normal("f1", 5, 5, 1, 6, scale=0.3)
    s.call("_ITEXConv2D", ["x", "f1"], "convolved", padding=["string", "SAME"], **convolved)
    s.call("_ITEXFusedConv2D", ["x", "f1", s.normal("c1", 6)], "first", padding=["string", "SAME"], **convolved, **after)
    s.call("_ITEXMaxPool", ["first"], ["pooled", "workspace1"], **pooled)
    s.normal("f2", 5, 5, 6, 16, scale=0.1)
    s.call("_ITEXFusedConv2D", ["pooled", "f2", s.normal("c2", 16)], "second", padding=["string", "VALID"], **convolved,
           **after)
    s.call("_ITEXMaxPool", ["second"], ["pooled2", "workspace2"], **pooled)
    flat = reshape(s, "pooled2", [4, 400], "flat")
    h = fused(s, flat, s.normal("w1", 400, 120, scale=0.05), s.normal("b1", 120), "h1", "Relu")
    h = fused(s, h, s.normal("w2", 120, 84, scale=0.1), s.normal("b2", 84), "h2", "Relu")
    y = fused(s, h, s.normal("w3", 84, 10, scale=0.1), s.normal("b3", 10), "logits")
    s.call("_ITEXSoftmax", [y], "shares", T=T)
    s.fetch = ["convolved", "first", "pooled", "second", "pooled2", "h1", "h2", "logits", "shares"]
    return s


def transformer():
    batch, length, width, heads = 2, 16, 64, 4
    s = Script()
    rows = batch * length

    def norm(x, name):
        scale, offset = s.const(name + "_scale", np.ones(width)), s.normal(name + "_offset", width, scale=0.1)
        s.call("ITEXLayerNorm", [x, scale, offset], [name, name + "_mean", name + "_variance"], T=T, U=T,
               epsilon=["float", 1e-5], is_training=["bool", True])
        return reshape(s, name, [rows, width], name + "_rows")

    def turned(x, name, perm):
        perm = s.const(name + "_perm", perm, np.int32)
        return s.call("Transpose", [x, perm], name, T=T, Tperm=["type", "i32"])

    s.normal("x", batch, length, width)
    n = norm("x", "norm1")
    parts = {}
    for part in "qkv":
        y = fused(s, n, s.normal("w" + part, width, width, scale=0.125), s.normal("b" + part, width), part + "_flat")
        y = reshape(s, y, [batch, length, heads, width // heads], part + "_heads")
        parts[part] = turned(y, part, [0, 2, 1, 3])
    s.call("_ITEXBatchMatMulV2", ["q", "k"], "scores", T=T, adj_y=["bool", True])
    s.call("Mul", ["scores", s.const("scale", 0.25)], "scaled", T=T)
    s.call("_ITEXSoftmax", ["scaled"], "attention", T=T)
    s.call("_ITEXBatchMatMulV2", ["attention", "v"], "mixed", T=T)
    y = reshape(s, turned("mixed", "mixed_back", [0, 2, 1, 3]), [rows, width], "mixed_rows")
    y = fused(s, y, s.normal("wo", width, width, scale=0.125), s.normal("bo", width), "projected")
    y = reshape(s, y, [batch, length, width], "projected_back")
    s.call("AddV2", ["x", y], "middle", T=T)
    n = norm("middle", "norm2")
    y = fused(s, n, s.normal("w1", width, 256, scale=0.125), s.normal("b1", 256), "wide")
    s.call("ITEXGelu", [y], "gelu", T=T, approximate=["bool", True])
    y = fused(s, "gelu", s.normal("w2", 256, width, scale=0.06), s.normal("b2", width), "narrow")
    y = reshape(s, y, [batch, length, width], "narrow_back")
    s.call("AddV2", ["middle", y], "result", T=T)
    s.fetch = ["norm1", "q_flat", "q", "scores", "attention", "mixed", "projected", "middle", "norm2", "wide", "gelu", "narrow",
               "result"]
    return s


def training():
    """An MLP for 64 features and 10 classes; the loss is the squared distance of shares and truth."""
    s = Script()
    batch, width, hidden, classes = 32, 64, 32, 10
    s.normal("x", batch, width)
    s.const("truth", np.eye(classes)[s.random.integers(0, classes, batch)])
    s.const("rate", 0.5)
    s.const("share", 1.0 / batch)
    s.const("ones_batch", np.ones((1, batch)))
    s.const("ones_classes", np.ones((classes, 1)))
    extents = {"w1": [width, hidden], "b1": [hidden], "w2": [hidden, classes], "b2": [classes]}
    for name, of in extents.items():
        s.normal(name + "_begin", *of, scale=0.2)
        s.call("VarHandleOp", [], name + "_handle", setup=True, dtype=T, shape=["shape", of],
               shared_name=["string", name], container=["string", ""])
        s.call("AssignVariableOp", [name + "_handle", name + "_begin"], [], setup=True, dtype=T)
        s.call("ReadVariableOp", [name + "_handle"], name, dtype=T)
    h = fused(s, "x", "w1", "b1", "h", "Relu")
    y = fused(s, h, "w2", "b2", "logits")
    s.call("_ITEXSoftmax", [y], "shares", T=T)
    s.call("Sub", ["shares", "truth"], "error", T=T)
    s.call("Mul", ["error", "error"], "squares", T=T)
    product(s, "ones_batch", "squares", "by_class")
    product(s, "by_class", "ones_classes", "loss")
    s.call("Mul", ["error", "share"], "d_logits", T=T)
    product(s, "h", "d_logits", "d_w2", transpose_a=True)
    product(s, "ones_batch", "d_logits", "d_b2_row")
    product(s, "d_logits", "w2", "d_h", transpose_b=True)
    s.call("ReluGrad", ["d_h", "h"], "d_z", T=T)
    product(s, "x", "d_z", "d_w1", transpose_a=True)
    product(s, "ones_batch", "d_z", "d_b1_row")
    for name in ["b1", "b2"]:
        reshape(s, f"d_{name}_row", extents[name], "d_" + name)
    for name in extents:
        s.call("ResourceApplyGradientDescent", [name + "_handle", "rate", "d_" + name], [], T=T)
    s.fetch = ["loss"]
    return s


# Here.

def bound():
    """Bounds memory and time of calls that nobody knows."""
    resource.setrlimit(resource.RLIMIT_DATA, (6 << 30, 6 << 30))
    resource.setrlimit(resource.RLIMIT_CPU, (60, 60))


def run_here(program, library, document, bounded=False):
    with tempfile.NamedTemporaryFile("w", suffix=".json", delete=False) as file:
        json.dump(document, file)
    run = subprocess.run([program, library, file.name], capture_output=True, text=True,
                         preexec_fn=bound if bounded else None)
    os.unlink(file.name)
    return run


def ours(program, library, script, times=1):
    run = run_here(program, library, script.document(times))
    if run.returncode != 0:
        sys.exit(f"here: {run.returncode} {run.stderr[-2000:]}")
    steps = [{} for _ in range(times)]
    for line in run.stdout.splitlines():
        step, name, dtype, extents, digits = line.split(" ")
        extents = [int(extent) for extent in extents.split(",") if extent]
        steps[int(step)][name] = array([dtype, extents, digits])
    return steps


# In TensorFlow.

def set_attr(attr, kind, given):
    import tensorflow as tf

    types = {"f32": tf.float32, "i32": tf.int32, "u8": tf.uint8}
    if kind == "list(string)":
        attr.list.s.extend(one.encode() for one in given)
    elif kind == "list(int)":
        attr.list.i.extend(given)
    elif kind == "int":
        attr.i = given
    elif kind == "float":
        attr.f = given
    elif kind == "bool":
        attr.b = given
    elif kind == "string":
        attr.s = given.encode()
    elif kind == "type":
        attr.type = types[given].as_datatype_enum
    elif kind == "tensor":
        attr.tensor.CopyFrom(tf.make_tensor_proto(array(given)))
    elif kind == "shape":
        attr.shape.SetInParent()
        for extent in given:
            attr.shape.dim.add().size = extent
    else:
        raise ValueError(kind)


def theirs(script, times=1):
    import tensorflow as tf
    from tensorflow.core.framework import graph_pb2

    graph_def = graph_pb2.GraphDef()
    graph_def.versions.producer = 1645
    places, feed, ends = {}, {}, {"setup": [], "step": []}
    for name, spec in script.values.items():
        node = graph_def.node.add(name="value_" + name, op="Placeholder")
        set_attr(node.attr["dtype"], "type", spec[0])
        set_attr(node.attr["shape"], "shape", spec[1])
        places[name] = node.name + ":0"
        feed[places[name]] = array(spec)
    for part in ["setup", "step"]:
        for index, call in enumerate(getattr(script, part)):
            node = graph_def.node.add(name=f"{part}_{index}", op=call["op"].removeprefix("tf."))
            node.input.extend(places[name] for name in call["in"])
            for name, (kind, given) in call["attrs"].items():
                set_attr(node.attr[name], kind, given)
            places.update({name: f"{node.name}:{output}" for output, name in enumerate(call["out"])})
            if not call["out"]:
                ends[part].append(node.name)
    config = tf.compat.v1.ConfigProto()
    config.graph_options.rewrite_options.disable_meta_optimizer = True
    config.graph_options.optimizer_options.opt_level = -1
    with tf.Graph().as_default() as graph:
        tf.import_graph_def(graph_def, name="")
        with tf.compat.v1.Session(graph=graph, config=config) as session:
            session.run([graph.get_operation_by_name(name) for name in ends["setup"]], feed)
            targets = [graph.get_operation_by_name(name) for name in ends["step"]]
            fetched = [places[name] for name in script.fetch]
            return [dict(zip(script.fetch, session.run([fetched, targets], feed)[0])) for _ in range(times)]


def own_ops(script, values):
    """TensorFlow's own operations for those of the plugin, on the values that the plugin's were given."""
    import tensorflow as tf

    def of(name):
        return tf.constant(values[name] if name in values else array(script.values[name]))

    found = {}
    for call in script.step:
        op, attrs = call["op"].removeprefix("tf."), call["attrs"]
        if not all(name in values or name in script.values for name in call["in"]) or call["out"][0] not in values:
            continue
        inputs = [of(name) for name in call["in"]]
        get = lambda name, default=None: attrs[name][1] if name in attrs else default
        after = get("fused_ops", [])
        if op in ("_ITEXMatMul", "_ITEXFusedMatMul"):
            y = tf.raw_ops.MatMul(a=inputs[0], b=inputs[1], transpose_a=get("transpose_a", False),
                                  transpose_b=get("transpose_b", False))
        elif op == "_ITEXBatchMatMulV2":
            y = tf.raw_ops.BatchMatMulV2(x=inputs[0], y=inputs[1], adj_y=get("adj_y", False))
        elif op in ("_ITEXConv2D", "_ITEXFusedConv2D"):
            y = tf.raw_ops.Conv2D(input=inputs[0], filter=inputs[1], strides=get("strides"), padding=get("padding"))
        elif op == "_ITEXMaxPool":
            y = tf.raw_ops.MaxPool(input=inputs[0], ksize=get("ksize"), strides=get("strides"), padding=get("padding"))
        elif op == "_ITEXSoftmax":
            y = tf.raw_ops.Softmax(logits=inputs[0])
        elif op == "ITEXGelu":
            y = tf.nn.gelu(inputs[0], approximate=True)
        else:
            continue
        if "BiasAdd" in after:
            y = tf.raw_ops.BiasAdd(value=y, bias=inputs[2])
        if "Relu" in after:
            y = tf.nn.relu(y)
        found[call["out"][0]] = (op, y.numpy())
    return found


def same_bits(a, b):
    return a.shape == b.shape and a.dtype == b.dtype and int((a.view(np.uint32) == b.view(np.uint32)).sum())


def models(program, library, _):
    print("| model | value | operation | elements | bits of the plugin in TensorFlow | bits of TensorFlow's own |")
    print("| --- | --- | --- | --- | --- | --- |")
    wrong = 0
    for model in [mlp, lenet, transformer]:
        script = model()
        here = ours(program, library, script)[0]
        # There all values are fetched: TensorFlow's own operations are called with the plugin's operands.
        every = model()
        every.fetch = [out for call in every.step for out in call["out"] if "workspace" not in out]
        there = theirs(every)[0]
        own = own_ops(script, there)
        ops = {call["out"][0]: call["op"] for call in script.step if call["out"]}
        for name in script.fetch:
            n = here[name].size
            n_same = same_bits(here[name], there[name])
            wrong += n_same != n
            n_own = "" if name not in own else same_bits(here[name], own[name][1])
            print(f"| {model.__name__} | {name} | {ops[name]} | {n} | {n_same} | {n_own} |")
    return wrong


def train(program, library, _):
    script, times = training(), 100
    here, there = ours(program, library, script, times), theirs(script, times)
    losses = [(a["loss"].item(), b["loss"].item()) for a, b in zip(here, there)]
    n = sum(np.float32(a).tobytes() == np.float32(b).tobytes() for a, b in losses)
    for step in [0, 1, 49, 99]:
        print(f"step {step + 1}: loss {losses[step][0]!r} here, {losses[step][1]!r} in TensorFlow")
    print(f"{n} of {times} losses have the same 32 bits")
    return times - n


# Guessed inputs.

NAMES = {1: "f32", 2: "f64", 3: "i32", 4: "u8", 9: "i64", 10: "i1", 11: "qi8", 12: "qu8", 13: "qi32", 14: "bf16",
         19: "f16"}
BYTES = {"f64": 8, "i64": 8, "f32": 4, "i32": 4, "qi32": 4, "bf16": 2, "f16": 2}
EXTENTS = [[2, 4, 4, 4], [4, 4], [4], [], [2, 2, 4, 4, 4], [2, 4, 4], [1, 8, 8, 2]]


def filled(dtype, extents):
    """A tensor of small numbers; of types that are not written here, of bytes that are all 1."""
    n = int(np.prod(extents))
    if dtype == "f32":
        return [dtype, extents, np.linspace(0.1, 1.7, n, dtype=np.float32).tobytes().hex()]
    if dtype in ("i32", "i64", "f64"):
        of = {"i32": np.int32, "i64": np.int64, "f64": np.float64}[dtype]
        return [dtype, extents, np.ones(n, of).tobytes().hex()]
    if dtype in ("bf16", "f16"):
        return [dtype, extents, {"bf16": "803f", "f16": "003c"}[dtype] * n]
    return [dtype, extents, "01" * (n * BYTES.get(dtype, 1))]


def guessed_attr(attr, op, extents, variant):
    """An attribute that must be stated, or without which little runs; `None` to leave it to its default."""
    name, kind = attr["name"], attr["kind"]
    rank = len(extents)
    if kind == "type":
        allowed = attr["types"]
        code = 1 if not allowed or 1 in allowed else allowed[0]
        return ["type", NAMES.get(code, "f32")]
    if name == "half_pixel_centers":
        return ["bool", True]
    if name == "fused_ops" and variant:
        return ["list(string)", ["BiasAdd"]]
    if name == "activation_mode" and variant:
        return ["string", "Relu"]
    if attr["default"]:
        return None
    if kind == "int":
        return ["int", {"num_args": int(variant), "N": 2}.get(name, attr["minimum"] or 0)]
    if kind == "list(int)":
        return ["list(int)", [1] * max(rank, 4)]
    if name == "padding" and ("Pad" in op["name"] or "Slice" in op["name"]):
        return ["string", "VALID"]
    if kind == "string":
        texts = {"equation": "ij,jk->ik"}
        return ["string", (attr["texts"] or [texts.get(name, "relu")])[0]]
    if kind == "shape":
        return ["shape", extents]
    simple = {"bool": False, "float": 1.0, "list(type)": ["f32"], "list(string)": [], "list(float)": [], "list(bool)": []}
    return META if kind == "tensor" else [kind, simple.get(kind, [])]


def guessed_input(name, op, dtype, extents):
    """A tensor for an input, by its name."""
    rank, last = len(extents), (extents or [1])[-1]
    if name.endswith("_meta"):
        return ["u8", [4096], "00" * 4096]
    if name.startswith(("min", "max", "x_min", "x_max", "y_min", "y_max", "bias_m", "summand_m")):
        return filled(dtype, [])
    ints = {"perm": list(range(rank)), "filter_sizes": [1] * (rank - 2) + [last, last], "input_sizes": extents,
            "orig_input_shape": extents, "shape": extents, "size": [4, 4], "begin": [0] * rank,
            "paddings": [[0, 0]] * rank, "axis": 0, "concat_dim": 0}
    if dtype in ("i32", "i64") and name in ints:
        given = extents if name == "size" and "Slice" in op else ints[name]
        array = np.array(given, {"i32": np.int32, "i64": np.int64}[dtype])
        return [dtype, list(array.shape), array.tobytes().hex()]
    if name == "filter" and rank >= 4:
        return filled(dtype, [1] * (rank - 2) + ([last, 1] if "epthwise" in op else [last, last]))
    by_channel = ("scale", "offset", "mean", "variance", "gamma", "beta", "bias", "args", "reserve_space", "layer_mean",
                  "layer_variance", "bn_args")
    if name.startswith(by_channel):
        return filled(dtype, [last])
    return filled(dtype, extents)


def guesses(op):
    """Calls of an operation with inputs and attributes that may be right: each with the values that it takes."""
    for extents, variant in [(extents, variant) for extents in EXTENTS for variant in (False, True)]:
        # Checks of the plugin's own end the process for images of few dimensions.
        is_image = any(word in op["name"] for word in ["Conv", "onv2d", "Pool", "Resize"])
        if is_image and len(extents) != (5 if "3D" in op["name"] else 4):
            continue
        attrs = {attr["name"]: guessed_attr(attr, op, extents, variant) for attr in op["attrs"]}
        attrs = {name: given for name, given in attrs.items() if given}
        if variant and not {"fused_ops", "activation_mode"} & {attr["name"] for attr in op["attrs"]}:
            continue
        values, inputs = {}, []
        for index, arg in enumerate(op["inputs"]):
            count = attrs.get(arg["count"], ["int", 1])[1] if arg["count"] else 1
            dtype = {"fixed": lambda: NAMES.get(arg["of"], "f32"), "attr": lambda: attrs[arg["of"]][1],
                     "list": lambda: "f32"}[arg["kind"]]()
            for one in range(count):
                values[f"x{index}_{one}"] = guessed_input(arg["name"], op["name"], dtype, extents)
                inputs.append(f"x{index}_{one}")
        yield values, {"op": "tf." + op["name"], "in": inputs, "out": [], "attrs": attrs}


def ops(program, library, pattern):
    run = subprocess.run([program, library], capture_output=True, text=True, check=True)
    definitions = json.loads(run.stdout)
    all_ops = [op for op in definitions["ops"] if re.search(pattern, op["name"])]
    print(f"{definitions['n_ops']} operations, {definitions['n_kernels']} kernels of "
          f"{definitions['n_ops_with_kernels']} operations, of which {len(definitions['ops'])} are defined; {len(all_ops)} are tried", flush=True)
    tries, said, why = [], {}, {}
    for op in all_ops:
        for values, call in guesses(op):
            prefix = f"{len(tries)}_"
            call = {**call, "in": [prefix + name for name in call["in"]]}
            tries.append((op["name"], {prefix + name: spec for name, spec in values.items()}, call))
    at = 0
    while at < len(tries):
        # A process for a part of them: what one that ends early has read is lost.
        part = tries[at:at + 200]
        values = {name: spec for _, own, _ in part for name, spec in own.items()}
        run = run_here(program, library, {"values": values, "tries": [call for _, _, call in part]}, bounded=True)
        lines = run.stdout.splitlines()
        for (name, _, _), line in zip(part, lines):
            said.setdefault(name, []).append(line)
        at += len(lines)
        if len(lines) == len(part):
            continue
        name = part[len(lines)][0]
        said.setdefault(name, []).append("ended")
        told = [line for line in run.stderr.splitlines() if "Check failed" in line]
        why.setdefault(name, told[-1].split("] ")[-1][:120] if told else f"status {run.returncode}")
        at += 1
        # After two guesses that end the process, the others are not tried.
        while said[name].count("ended") >= 2 and at < len(tries) and tries[at][0] == name:
            at += 1
    ran = [name for name, lines in said.items() if "ran" in lines]
    ended = [name for name, lines in said.items() if "ran" not in lines and "ended" in lines]
    refused = [name for name in said if name not in ran and name not in ended]
    print(f"{len(ran)} run with a guess, {len(refused)} report an error for each, {len(ended)} end the process by a guess")
    lines = [line for lines in said.values() for line in lines]
    n_errors = sum(line.startswith("error") for line in lines)
    print(f"{len(lines)} calls: {lines.count('ran')} run, {n_errors} report an error, {lines.count('ended')} end the process")
    for name in refused:
        print(f"  refused: {name}: {said[name][0][:160]}")
    for name in why:
        print(f"  ended the process: {name}: {why[name]}")
    return 0


def main():
    program, library = sys.argv[1:3]
    parts = sys.argv[3:] or ["models", "training", "ops"]
    if "OMP_NUM_THREADS" not in os.environ:
        sys.exit("OMP_NUM_THREADS must be set: products are cut by the number of threads")
    run = {"models": models, "training": train, "ops": ops}
    wrong = 0
    for part in parts:
        name, _, pattern = part.partition("=")
        wrong += run[name](program, library, pattern)
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
