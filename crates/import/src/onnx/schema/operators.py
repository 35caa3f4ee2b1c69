"""Writes operators.tsv: what the packages `onnx` and `onnxruntime` know of operators, in the form that schema.rs reads.

    pip install onnx==1.22.0 onnxruntime==1.32.0
    python3 operators.py > operators.tsv

Of ONNX Runtime these are the operators of the domain `com.microsoft`, and those of the default domain that no standard
has and that its tools write all the same.
"""

import json

import onnx
import onnxruntime
from onnx import defs
from onnxruntime.capi.onnxruntime_pybind11_state import get_all_operator_schema

KINDS = {
    "FLOAT": "float", "INT": "int", "STRING": "string", "TENSOR": "tensor", "GRAPH": "graph",
    "FLOATS": "floats", "INTS": "ints", "STRINGS": "strings", "TENSORS": "tensors",
    "GRAPHS": "graphs", "SPARSE_TENSOR": "sparse_tensor", "SPARSE_TENSORS": "sparse_tensors",
    "TYPE_PROTO": "type", "TYPE_PROTOS": "types",
}


def short(number):
    """The shortest text that is the same float of 32 bits."""
    for digits in range(1, 12):
        text = f"{number:.{digits}g}"
        if abs(float(text)) < 3.5e38 and onnx.numpy_helper.np.float32(text) == onnx.numpy_helper.np.float32(number):
            return text
    return repr(number)


def value(attribute):
    """The text of an attribute's default; none if it is no attribute that is set."""
    if attribute.type == onnx.AttributeProto.UNDEFINED:
        return None
    found = onnx.helper.get_attribute_value(attribute)
    if isinstance(found, bytes):
        return json.dumps(found.decode())
    if isinstance(found, float):
        return short(found)
    if isinstance(found, int):
        return str(found)
    items = [json.dumps(x.decode()) if isinstance(x, bytes) else short(x) if isinstance(x, float)
             else str(x) for x in found]
    return "[" + ",".join(items) + "]"


def attribute(one):
    kind = KINDS[one.type.name]
    if one.required:
        return f"{one.name}:{kind}!"
    default = value(one.default_value)
    return f"{one.name}:{kind}" if default is None else f"{one.name}:{kind}={default}"


def types(schema, name):
    """What a parameter's type is: that of others of the same letter, or one type."""
    for constraint in schema.type_constraints:
        if constraint.type_param_str == name:
            allowed = constraint.allowed_type_strs
            if len(allowed) == 1:
                return allowed[0]
            shapes = {text.split("(")[0] for text in allowed}
            if shapes == {"tensor"}:
                return name
            if shapes == {"seq"}:
                return f"seq({name})"
            return f"any({name})"
    return name


def parameters(schema, formals, least):
    texts = []
    for index, formal in enumerate(formals):
        mark = ""
        if formal.option == defs.OpSchema.FormalParameterOption.Optional:
            mark = "?"
        elif formal.option == defs.OpSchema.FormalParameterOption.Variadic:
            mark = f"*{formal.min_arity}"
            if not formal.is_homogeneous:
                mark += "~"
        texts.append(f"{formal.name}:{types(schema, formal.type_str)}{mark}".replace(" ", ""))
    return " ".join(texts)


class Attribute:
    """An attribute of ONNX Runtime's, as the package `onnx` has them."""

    def __init__(self, one):
        self.name, self.type, self.required = one.name, one.type, one.required
        self.default_value = onnx.AttributeProto.FromString(one._default_value)


class Formal:
    """An input or output of ONNX Runtime's, as the package `onnx` has them."""

    def __init__(self, one):
        self.name, self.type_str, self.is_homogeneous = one.name, one.typeStr, one.isHomogeneous
        self.option = defs.OpSchema.FormalParameterOption.__members__[one.option.name]
        self.min_arity = 1


class Schema:
    """An operator of ONNX Runtime's, as the package `onnx` has them."""

    def __init__(self, one, domain):
        self.domain, self.name, self.since_version = domain, one.name, one.since_version
        self.deprecated, self.type_constraints = one.deprecated, one.type_constraints
        self.inputs = [Formal(formal) for formal in one.inputs]
        self.outputs = [Formal(formal) for formal in one.outputs]
        self.min_input, self.min_output = one.min_input, one.min_output
        self.attributes = {name: Attribute(one) for name, one in one.attributes.items()}


def of_onnx_runtime():
    """Operators of ONNX Runtime's own. What others than it write in the other domain stands in both."""
    for one in get_all_operator_schema():
        if one.domain == "com.microsoft":
            yield Schema(one, one.domain)
        if one.name in ("SimplifiedLayerNormalization", "SkipSimplifiedLayerNormalization"):
            yield Schema(one, "" if one.domain else "com.microsoft")
        if not one.domain and (one.name, one.since_version) in (
                ("LayerNormalization", 1), ("SimplifiedLayerNormalization", 1)):
            yield Schema(one, "")


rows = []
for schema in [*defs.get_all_schemas_with_history(), *of_onnx_runtime()]:
    attributes = [attribute(schema.attributes[name]) for name in sorted(schema.attributes)]
    assert not any(" " in text or "\t" in text for text in attributes), attributes
    rows.append((
        schema.domain or "ai.onnx",
        schema.name,
        schema.since_version,
        "-" if schema.deprecated else "",
        parameters(schema, schema.inputs, schema.min_input),
        parameters(schema, schema.outputs, schema.min_output),
        " ".join(attributes),
    ))
rows.sort()
print(f"# Written by operators.py from onnx {onnx.__version__} and onnxruntime {onnxruntime.__version__}: domain,")
print("# operator, version since, - if it is gone, inputs, outputs, attributes.")
for row in rows:
    print("\t".join(str(part) for part in row))
