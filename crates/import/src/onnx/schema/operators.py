"""Writes operators.tsv: what the package `onnx` knows of operators, in the form that schema.rs reads.

    pip install onnx==1.22.0
    python3 operators.py > operators.tsv
"""

import json

import onnx
from onnx import defs

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
    if one.default_value.name:
        return f"{one.name}:{kind}={value(one.default_value)}"
    return f"{one.name}:{kind}"


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


rows = []
for schema in defs.get_all_schemas_with_history():
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
print(f"# Written by operators.py from onnx {onnx.__version__}: domain, operator, version since, - if")
print("# it is gone, inputs, outputs, attributes.")
for row in rows:
    print("\t".join(str(part) for part in row))
