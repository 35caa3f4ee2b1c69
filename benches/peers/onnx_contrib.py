"""Operators of the domain com.microsoft: our results beside those of ONNX Runtime.

    onnx_contrib.py COMMAND [NAME ...]

Makes seeded random models of one operator each, of several types and shapes, with and without what may be left out, with
extents that are stated, are not, or follow from another node; runs them in ONNX Runtime without optimisations and by
`COMMAND run`; and prints for each operator how many agree, and the worst deviation, relative to the largest element. Cases
that ONNX Runtime refuses on processors are counted apart: some are compared with NumPy. With names, these operators alone.
Fails if a case does.

    benches/peers/setup.sh
    target/peers/venv/bin/python benches/peers/onnx_contrib.py target/debug/tfrt
"""

import collections
import json
import pathlib
import subprocess
import sys
import tempfile
import zlib

import numpy
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

from onnx_contrib_cases import CASES

onnxruntime.set_default_logger_severity(4)
# By the type of a result: how far it may be away, relative to the largest element. Integers may be one step away.
TOLERANCES = {"float32": 2e-5, "float16": 3e-3, "float64": 1e-9}


# Extents of inputs are stated, are not, or follow from another node, of whose result nothing is stated.
FORMS = ("", ", open", ", hidden")


def model(case, form):
    """The model of a case, whose inputs have one of the forms."""
    is_open = form != FORMS[0]
    inputs, constants, names, nodes = [], [], [], []
    for name, value, is_constant in case.operands:
        if value is None:
            names.append("")
            continue
        is_hidden = form == FORMS[2] and not is_constant and value.ndim > 0
        names.append(f"{name} hidden" if is_hidden else name)
        if is_hidden:
            nodes.append(helper.make_node("Concat", [name], [f"{name} hidden"], axis=0))
        if name in case.few:
            nodes.append(helper.make_node("Cast", [names[-1]], [f"{name} few"], to=case.few[name]))
            names[-1] = f"{name} few"
        if is_constant:
            constants.append(numpy_helper.from_array(value, name) if not isinstance(value, onnx.TensorProto) else value)
            continue
        shape = [f"{name}{axis}" for axis in range(value.ndim)] if is_open else value.shape
        inputs.append(helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(value.dtype), shape))
    while names and not names[-1]:
        names.pop()
    results = [f"{name} few" if name in case.few else name for name in case.results]
    node = helper.make_node(case.operator, names, results, domain=case.domain, name=case.operator, **case.attributes)
    bytes_of = {TensorProto.INT4: TensorProto.INT8, TensorProto.UINT4: TensorProto.UINT8}
    last = [helper.make_node("Cast", [f"{name} few"], [name], to=bytes_of[kind]) for name, kind in case.few.items()
            if name in case.results]
    outputs = []
    for name in case.results:
        if name:
            info = onnx.ValueInfoProto()
            info.name = name
            outputs.append(info)
    graph = helper.make_graph([*nodes, node, *last], "case", inputs, outputs, constants)
    imports = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=imports, ir_version=10)


def expected(proto, feeds):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(proto.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return session.run(None, feeds), [output.name for output in session.get_outputs()]


def stated(proto, results):
    """States the types of results, which a file must."""
    for info, value in zip(proto.graph.output, results):
        kind = helper.np_dtype_to_tensor_dtype(value.dtype)
        info.type.CopyFrom(helper.make_tensor_type_proto(kind, [None] * value.ndim))


def found(command, folder, proto, feeds, names, kinds):
    path = folder / "model.onnx"
    onnx.save(proto, path)
    arguments = [command, "run", str(path)]
    for name, value in feeds.items():
        if value.dtype.kind == "O":
            path = folder / f"{name}.json"
            path.write_text(json.dumps({"shape": value.shape, "data": value.ravel().tolist()}))
        else:
            path = folder / f"{name}.npy"
            numpy.save(path, value)
        arguments += ["--input", f"{name}={path}"]
    # Arrays of strings have no form in files that both sides read.
    suffixes = ["json" if kind == TensorProto.STRING else "npy" for kind in kinds]
    paths = [folder / f"{name}.out.{suffix}" for name, suffix in zip(names, suffixes)]
    for name, path in zip(names, paths):
        arguments += ["--output", f"{name}={path}"]
    ran = subprocess.run(arguments, capture_output=True, text=True, timeout=300)
    if ran.returncode:
        return None, (ran.stderr or ran.stdout).strip()
    return [loaded(path) for path in paths], ""


def loaded(path):
    if path.suffix == ".npy":
        return numpy.load(path)
    found = json.loads(path.read_text())
    if isinstance(found, dict):
        return numpy.array(found["data"], object).reshape(found["shape"])
    return numpy.array(found, object)


def used(value, axis, lengths):
    """What is said anything of, in a row."""
    parts = zip(value, lengths)
    return numpy.concatenate([part.take(range(length), axis - 1).ravel() for part, length in parts])


def deviation(ours, theirs):
    """How far away, and how far that may be; nothing if it is no number or of another shape."""
    if ours.shape != theirs.shape or ours.dtype != theirs.dtype:
        return None, f"{ours.dtype}{list(ours.shape)} instead of {theirs.dtype}{list(theirs.shape)}"
    if theirs.size == 0:
        return 0.0, ""
    if theirs.dtype.kind in "OUSb":
        same = bool((ours == theirs).all())
        return (0.0, "") if same else (None, "other elements")
    a, b = ours.astype(numpy.float64), theirs.astype(numpy.float64)
    if (numpy.isfinite(a) != numpy.isfinite(b)).any():
        return None, "not finite"
    away = numpy.abs(numpy.where(numpy.isfinite(b), a - b, 0)).max()
    if theirs.dtype.kind == "f":
        return away / max(numpy.abs(b[numpy.isfinite(b)]).max(initial=0), 1e-6), ""
    return away, ""


def main():
    command, chosen = sys.argv[1], sys.argv[2:]
    rows = collections.OrderedDict()
    failures = []
    for case in CASES:
        if chosen and case.operator not in chosen:
            continue
        row = rows.setdefault(case.operator, {"types": set(), "cases": 0, "passed": 0, "worst": 0.0, "refused": 0})
        for form in FORMS:
            proto = model(case, form)
            feeds = {name: value for name, value, is_constant in case.operands if value is not None and not is_constant}
            label = f"{case.operator} [{case.label}{form}]"
            try:
                with_types = model(case, form)
                for info, kind in zip(with_types.graph.output, case.kinds):
                    info.type.CopyFrom(helper.make_tensor_type_proto(kind, None))
                theirs, names = expected(with_types, feeds)
            except Exception as error:
                row["refused"] += 1
                if len(chosen) == 1:
                    print("refused", label, str(error)[:300])
                if case.defined is None:
                    continue
                theirs, names = case.defined, [name for name in case.results if name]
            row["cases"] += 1
            row["types"].add(case.types)
            stated(proto, theirs)
            with tempfile.TemporaryDirectory() as folder:
                ours, message = found(command, pathlib.Path(folder), proto, feeds, names, case.kinds)
            if ours is None:
                failures.append(f"{label}: {message[:600]}")
                continue
            passed = True
            for name, own, other in zip(names, ours, theirs):
                lengths = case.used.get(name)
                away, why = deviation(own, other)
                if lengths is not None and own.shape == other.shape:
                    away, why = deviation(used(own, *lengths), used(other, *lengths))
                most = case.tolerance or TOLERANCES.get(str(other.dtype), 1)
                if away is None or not away <= most:
                    passed = False
                    failures.append(f"{label}: {name} {why or away}")
                else:
                    row["worst"] = max(row["worst"], away)
            row["passed"] += passed
    print("| Operator | Types | Cases | Passed | Worst | Refused by ONNX Runtime |")
    print("| --- | --- | --- | --- | --- | --- |")
    for name, row in rows.items():
        types = ", ".join(sorted(row["types"]))
        print(f"| {name} | {types} | {row['cases']} | {row['passed']} | {row['worst']:.1e} | {row['refused']} |")
    print("\n".join(failures))
    sys.exit(bool(failures))


main()
