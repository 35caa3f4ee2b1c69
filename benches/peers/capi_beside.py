"""Runs the plugin of `crates/capi/tests/library/plugins/beside` in TensorFlow, and prints what its operations answer.

    capi_beside.py LIBRARY CASES

LIBRARY is the plugin, built with TENSORFLOW on TensorFlow's headers; CASES is `cases.json`, beside its sources. Each
case is one node of a graph of its own, whose inputs are fed. The Python must have `tensorflow-cpu==2.18.1`: later ones
do not export all of the functions. `cargo xtask capi` runs this, and compares with what is recorded.
"""

import json
import os
import re
import sys

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["TF_ENABLE_ONEDNN_OPTS"] = "0"

import numpy as np
import tensorflow as tf
from tensorflow.core.framework import graph_pb2, node_def_pb2
from tensorflow.python.framework import load_library, op_def_registry

TYPES = {
    "f32": tf.float32, "f64": tf.float64, "i32": tf.int32, "i64": tf.int64, "i1": tf.bool, "string": tf.string,
}


def array(spec):
    dtype, extents, elements = spec
    if dtype == "string":
        elements = [element.encode() for element in elements]
        return np.array(elements, dtype=object).reshape(extents)
    n = int(np.prod(extents))
    elements = elements * n if len(elements) == 1 else elements
    return np.array(elements, TYPES[dtype].as_numpy_dtype).reshape(extents)


def set_attr(value, kind, given):
    """Puts an attribute into its message; lists have the same fields."""
    if kind.startswith("list("):
        value.list.SetInParent()
        fields = {"int": "i", "float": "f", "bool": "b", "string": "s", "type": "type"}
        field = getattr(value.list, fields[kind[5:-1]])
        for one in given:
            one = TYPES[one].as_datatype_enum if kind == "list(type)" else one
            field.append(one.encode() if isinstance(one, str) else one)
    elif kind == "int":
        value.i = given
    elif kind == "float":
        value.f = given
    elif kind == "bool":
        value.b = given
    elif kind == "string":
        value.s = given.encode()
    elif kind == "type":
        value.type = TYPES[given].as_datatype_enum
    elif kind == "func":
        value.func.name = given
    elif kind == "shape":
        value.shape.SetInParent()
        for extent in given:
            value.shape.dim.add().size = extent
    elif kind == "tensor":
        value.tensor.CopyFrom(tf.make_tensor_proto(array(given)))
    else:
        raise ValueError(kind)


def types_of(case, op_def):
    """Types of inputs as attributes: T of the first."""
    attrs = {}
    for arg, spec in zip(op_def.input_arg, case.get("inputs", [])):
        if arg.type_attr:
            attrs[arg.type_attr] = TYPES[spec[0]].as_datatype_enum
    return attrs


def run(case):
    op_def = op_def_registry.get(case["op"])
    graph_def = graph_pb2.GraphDef()
    graph_def.versions.producer = 1882
    feed = {}
    node = node_def_pb2.NodeDef(name=case["op"], op=case["op"])
    for index, spec in enumerate(case.get("inputs", [])):
        value = array(spec)
        holder = graph_def.node.add(name=f"x{index}", op="Placeholder")
        holder.attr["dtype"].type = TYPES[spec[0]].as_datatype_enum
        for extent in value.shape:
            holder.attr["shape"].shape.dim.add().size = extent
        holder.attr["shape"].shape.SetInParent()
        name = f"x{index}"
        if case.get("given") and spec[0] == "f32":
            # What is calculated for this node alone may become its output.
            own = graph_def.node.add(name=f"given{index}", op="Neg", input=[name])
            own.attr["T"].type = tf.float32.as_datatype_enum
            value, name = -value, own.name
        feed[f"x{index}:0"] = value
        node.input.append(name)
    for name, kind in types_of(case, op_def).items():
        node.attr[name].type = kind
    for name, (kind, given) in case.get("attrs", {}).items():
        set_attr(node.attr[name], kind, given)
    graph_def.node.append(node)
    config = tf.compat.v1.ConfigProto()
    config.graph_options.rewrite_options.disable_meta_optimizer = True
    with tf.Graph().as_default() as graph:
        tf.import_graph_def(graph_def, name="")
        with tf.compat.v1.Session(graph=graph, config=config) as session:
            outputs = [output for output in graph.get_operation_by_name(case["op"]).outputs]
            return session.run(outputs, {name: value for name, value in feed.items()})


def text(case):
    try:
        results = run(case)
    except (tf.errors.OpError, ValueError) as error:
        # A session puts lines of Python's in front of the error that it got.
        cause = error.__context__ if isinstance(error.__context__, tf.errors.OpError) else error
        code = getattr(cause, "error_code", 3)
        message = getattr(cause, "message", str(cause)).split("\n")[0]
        payloads = getattr(cause, "experimental_payloads", None) or {}
        own = [f"payload {key.decode()}: {value.decode()}" for key, value in payloads.items() if key.startswith(b"beside")]
        return "\n".join([f"error: {code} {message}"] + own)
    lines = results[0].decode().rstrip("\n").split("\n")
    for index, result in enumerate(results[1:], 1):
        shape = list(result.shape)
        elements = [element.decode() for element in result.ravel()] if result.dtype == object else result.ravel().tolist()
        lines.append(f"result {index}: {result.dtype.name if result.dtype != object else 'string'} {shape} {elements}")
    return "\n".join(lines)


def main():
    library, cases = sys.argv[1:]
    load_library.load_pluggable_device_library(library)
    with open(cases) as file:
        cases = json.load(file)
    print(f"TensorFlow {tf.__version__}", file=sys.stderr)
    for index, case in enumerate(cases):
        print(f"== {index} {case['op']}")
        # Addresses differ from run to run.
        print(re.sub("0x[0-9a-f]{8,}", "0x..", text(case)), flush=True)


if __name__ == "__main__":
    main()
