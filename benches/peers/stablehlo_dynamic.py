"""Modules with extents that are known only when they run, beside XLA: the same results.

    stablehlo_dynamic.py COMMAND FOLDER [--filter WORD] [--extent N] [--keep FOLDER]

FOLDER is `stablehlo/testdata/dynamic` of a checkout of openxla/stablehlo: modules that JAX wrote of functions whose
arguments have unknown extents, without values. COMMAND opens each file as it is, and runs it on inputs drawn from a seed,
with N (3) elements along each unknown extent. What it gives is compared with what XLA gives for the module whose arguments
have these extents, refined as `jax.export` does.

    pip install jax
    python benches/peers/stablehlo_dynamic.py target/release/tfrt CHECKOUT/stablehlo/testdata/dynamic
"""

import argparse
import pathlib
import re
import subprocess
import sys
import tempfile

import jax
import ml_dtypes
import numpy
from jax._src.lib import _jax
from jax._src.interpreters import mlir
from jaxlib import xla_client
from jaxlib.mlir import ir

jax.config.update("jax_enable_x64", True)

TYPES = {
    "f32": numpy.float32, "f64": numpy.float64, "f16": numpy.float16, "bf16": ml_dtypes.bfloat16, "i1": numpy.bool_,
    "complex<f32>": numpy.complex64, "complex<f64>": numpy.complex128,
    **{f"i{n}": numpy.dtype(f"int{n}").type for n in (8, 16, 32, 64)},
    **{f"ui{n}": numpy.dtype(f"uint{n}").type for n in (8, 16, 32, 64)},
}


def split(text):
    """Splits at commas that are in no brackets."""
    parts, depth = [""], 0
    for letter in text:
        depth += letter in "<({["
        depth -= letter in ">)}]"
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return [part.strip() for part in parts if part.strip()]


def signature(text):
    """Returns the name, the type and whether it is an extent, of each argument; and where they are in the text."""
    start = text.index("@main(") + len("@main(")
    depth, end = 1, start
    while depth:
        depth += text[end] in "(<{["
        depth -= text[end] in ")>}]"
        end += 1
    arguments = []
    for argument in split(text[start : end - 1]):
        name, rest = argument.split(":", 1)
        ty = re.match(r"\s*tensor<(.*?)>\s*(\{|$)", rest).group(1)
        arguments.append((name.strip(), ty, ty == "i64" and "{" not in rest))
    return arguments, start, end - 1


def fixed(text, extent):
    """Returns the module with arguments of known extents."""
    arguments, start, end = signature(text)
    names, lines = [], []
    for name, ty, is_extent in arguments:
        static = ty.replace("?", str(extent))
        if is_extent:
            lines.append(f"    {name} = stablehlo.constant dense<{extent}> : tensor<i64>")
        elif static == ty:
            names.append(f"{name}: tensor<{ty}>")
        else:
            names.append(f"{name}_fixed: tensor<{static}>")
            lines.append(f"    {name} = stablehlo.convert {name}_fixed : (tensor<{static}>) -> tensor<{ty}>")
    body = text.index("{\n", end) + 2
    return text[:start] + ", ".join(names) + text[end:body] + "\n".join(lines) + "\n" + text[body:]


def drawn(ty, extent, draw, most):
    *dims, element = ty.split("x") if "<" not in ty else [*ty[: ty.index("complex")].split("x")[:-1], ty[ty.index("complex") :]]
    shape = [extent if dim == "?" else int(dim) for dim in dims]
    dtype = TYPES[element]
    if numpy.issubdtype(dtype, numpy.complexfloating):
        return (draw.normal(size=shape) + 1j * draw.normal(size=shape)).astype(dtype)
    if dtype is numpy.bool_:
        return draw.integers(0, 2, shape).astype(dtype)
    if numpy.issubdtype(dtype, numpy.integer):
        return draw.integers(0, most, shape, endpoint=True).astype(dtype)
    return draw.normal(size=shape).astype(dtype)


def expected(text, extent, inputs):
    with mlir.make_ir_context():
        module = ir.Module.parse(fixed(text, extent))
        refined = _jax.mlir.refine_polymorphic_shapes(mlir.module_to_bytecode(module))
    client = jax.devices("cpu")[0].client
    devices = xla_client.DeviceList(tuple(jax.devices("cpu")[:1]))
    program = client.compile_and_load(refined, devices, xla_client.CompileOptions())
    given = [jax.device_put(value) for value in inputs]
    results = program.execute_sharded(given).disassemble_into_single_device_arrays()
    return [numpy.asarray(result[0]) for result in results]


def plain(value):
    return value.astype(numpy.float32) if value.dtype == ml_dtypes.bfloat16 else value


def run(command, path, folder, extent):
    text = path.read_text()
    draw = numpy.random.default_rng(len(path.name))
    arguments, _, _ = signature(text)
    # A slice that begins elsewhere than at 0 may end outside, of which nothing is said.
    most = 0 if "real_dynamic_slice" in text else 3
    inputs = [
        numpy.int64(extent) if is_extent else drawn(ty, extent, draw, most) for _, ty, is_extent in arguments
    ]
    given = [value for value, (_, _, is_extent) in zip(inputs, arguments) if not is_extent]
    try:
        outputs = expected(text, extent, given)
    except Exception as error:
        return None, f"XLA refuses it: {str(error).strip().splitlines()[0][:120]}"
    folder = folder / path.stem
    folder.mkdir(parents=True, exist_ok=True)
    line = [str(command), "run", str(path), "--tolerance", "1e-2" if "f16" in text else "1e-4"]
    for index, value in enumerate(inputs):
        numpy.save(folder / f"arg{index}.npy", plain(numpy.asarray(value)))
        line += ["--input", f"arg{index}={folder}/arg{index}.npy"]
    for index, value in enumerate(outputs):
        numpy.save(folder / f"result{index}.npy", plain(value))
        line += ["--expect", f"result{index}={folder}/result{index}.npy"]
    done = subprocess.run(line, capture_output=True, text=True)
    told = (done.stderr or done.stdout).strip().splitlines()
    return done.returncode == 0, told[0] if told else str(done.returncode)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("command", type=pathlib.Path)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--filter", default="")
    parser.add_argument("--extent", type=int, default=3)
    parser.add_argument("--keep", type=pathlib.Path)
    options = parser.parse_args()
    paths = sorted(path for path in options.folder.glob("*.mlir") if options.filter in path.name)
    counts = {True: 0, False: 0, None: 0}
    with tempfile.TemporaryDirectory() as folder:
        for path in paths:
            verdict, told = run(options.command, path, options.keep or pathlib.Path(folder), options.extent)
            counts[verdict] += 1
            if not verdict:
                print(f"{'DIFFERS' if verdict is False else 'SKIPPED'} {path.name}: {told}", flush=True)
    print(f"{counts[True]} of {len(paths)} modules give what XLA gives; XLA refuses {counts[None]}")
    sys.exit(counts[False] > 0)


main()
