"""Models for tests, as text, and what they calculate."""

from __future__ import annotations

import pathlib

import tfrt

ROOT = pathlib.Path(__file__).resolve().parents[2]
LAYER = ROOT / "examples/layer.onnx"


def of_text(inputs: dict, outputs: dict, body: str, **options) -> tfrt.Model:
    """Opens a model whose nodes are given as text, with the types of its inputs and outputs by name."""
    parameters = ", ".join(f"%{name}: {kind}" for name, kind in inputs.items())
    results = ", ".join(outputs.values())
    quoted = lambda names: ", ".join(f'"{name}"' for name in names)
    returned = ", ".join(f"%{name}" for name in outputs)
    text = f"""func.func @main({parameters}) -> ({results})
    attributes {{model.input_names = [{quoted(inputs)}], model.output_names = [{quoted(outputs)}]}} {{
  {body}
  tfrt.return {returned} : {results}
}}
"""
    return tfrt.Model(text.encode(), name="test.mlir", **options)


def double(kind: str = "tensor<?xf32>", **options) -> tfrt.Model:
    """Opens a model that adds ``x`` to itself."""
    body = f'%y = "onnx.Add"(%x, %x) : ({kind}, {kind}) -> {kind}'
    return of_text({"x": kind}, {"y": kind}, body, **options)


def same(kind: str) -> tfrt.Model:
    """Opens a model that gives back what it is given."""
    body = f'%y = "onnx.Identity"(%x) : ({kind}) -> {kind}'
    return of_text({"x": kind}, {"y": kind}, body)


def long(n_products: int = 40, **options) -> tfrt.Model:
    """Opens a model of products of square matrices, each of which takes long with 512 rows."""
    kind = "tensor<?x?xf32>"
    lines = []
    last = "x"
    for index in range(n_products):
        lines.append(f'%p{index} = "onnx.MatMul"(%{last}, %x) : ({kind}, {kind}) -> {kind}')
        last = f"p{index}"
    lines.append(f'%y = "onnx.Identity"(%{last}) : ({kind}) -> {kind}')
    return of_text({"x": kind}, {"y": kind}, "\n  ".join(lines), **options)
