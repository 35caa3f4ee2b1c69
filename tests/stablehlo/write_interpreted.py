"""Writes interpreted.stablehlo: modules of types that JAX has no arrays of, each with the results that are expected.

    python tests/stablehlo/write_interpreted.py > tests/stablehlo/interpreted.stablehlo

Floats of 8 bits or less and truth values are calculated by the reference interpreter of StableHLO, which is in jaxlib.
That has no quantised types, and no bodies of wider numbers than the operands of a reduction: what these are to give is
calculated here with NumPy, by the formulas of the specification.
`crates/tfrt/tests/library/stablehlo/results.rs` runs all and compares. Needs `pip install jax`.
"""

import numpy
from jax.interpreters import mlir
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo

BYTES = ("f8E3M4", "f8E4M3", "f8E4M3B11FNUZ", "f8E4M3FN", "f8E4M3FNUZ", "f8E5M2", "f8E5M2FNUZ")
SMALL = BYTES + ("f6E2M3FN", "f6E3M2FN", "f4E2M1FN")

# Around powers of two: ties between floats of 4, 3 and 2 bits of mantissa, and what is beside them.
NUMBERS = numpy.array([2.0**power * (1 + step / 64) for power in range(-18, 17) for step in (0, 2, 4, 8, 13)], numpy.float32)
NUMBERS[1::3] *= -1
SPECIAL = numpy.array([0.0, -0.0, 1e30, -1e30, 1e-30, numpy.inf, -numpy.inf], numpy.float32)


def ty(value):
    """Returns the type of an array."""
    names = {"bool": "i1", "float32": "f32", "float64": "f64", "uint8": "ui8", "uint16": "ui16", "uint32": "ui32"}
    name = names.get(str(value.dtype), str(value.dtype).replace("int", "i"))
    return "tensor<" + "".join(f"{size}x" for size in value.shape) + name + ">"


def constant(name, value):
    """Returns the line of a constant."""
    if value.dtype == bool:
        elements = str(value.tolist()).lower()
    else:
        elements = f'"0x{numpy.ascontiguousarray(value).tobytes().hex().upper()}"'
    return f"%{name} = stablehlo.constant dense<{elements}> : {ty(value)}"


def cases():
    """Yields names, lines, and the values that are returned, with their types."""
    x = constant("x", NUMBERS)
    n = f"{NUMBERS.size}x"
    for f in SMALL:
        # Types without infinity and without what is no number take neither.
        special = SPECIAL if f in BYTES else SPECIAL[:2]
        m = f"{special.size}x"
        limit = {"f6E2M3FN": 7.5, "f6E3M2FN": 28.0, "f4E2M1FN": 6.0}.get(f)
        numbers = NUMBERS if limit is None else NUMBERS[abs(NUMBERS) <= limit]
        k = f"{numbers.size}x"
        yield f"convert to {f}", [
            constant("x", numbers),
            constant("s", special),
            f"%0 = stablehlo.convert %x : (tensor<{k}f32>) -> tensor<{k}{f}>",
            f"%1 = stablehlo.convert %0 : (tensor<{k}{f}>) -> tensor<{k}f32>",
            f"%2 = stablehlo.convert %s : (tensor<{m}f32>) -> tensor<{m}{f}>",
            f"%3 = stablehlo.convert %2 : (tensor<{m}{f}>) -> tensor<{m}f32>",
        ], [("1", f"tensor<{k}f32>"), ("3", f"tensor<{m}f32>")]
        yield f"arithmetic of {f}", [
            f"%a = stablehlo.constant dense<[[0.5, 1.0, 1.5], [-2.0, 3.0, 4.0]]> : tensor<2x3x{f}>",
            f"%b = stablehlo.constant dense<[[1.5, -1.0, 2.0], [-0.5, 1.0, 0.5]]> : tensor<2x3x{f}>",
            f"%z = stablehlo.constant dense<0.0> : tensor<{f}>",
            f"%add = stablehlo.add %a, %b : tensor<2x3x{f}>",
            f"%mul = stablehlo.multiply %a, %b : tensor<2x3x{f}>",
            f"%abs = stablehlo.abs %b : tensor<2x3x{f}>",
            f"%max = stablehlo.maximum %a, %b : tensor<2x3x{f}>",
            f"%lt = stablehlo.compare LT, %a, %b : (tensor<2x3x{f}>, tensor<2x3x{f}>) -> tensor<2x3xi1>",
            f"%sel = stablehlo.select %lt, %a, %b : tensor<2x3xi1>, tensor<2x3x{f}>",
            f"%tr = stablehlo.transpose %a, dims = [1, 0] : (tensor<2x3x{f}>) -> tensor<3x2x{f}>",
            f"%dot = stablehlo.dot_general %b, %tr, contracting_dims = [1] x [0] : "
            f"(tensor<2x3x{f}>, tensor<3x2x{f}>) -> tensor<2x2xf32>",
            f"%red = stablehlo.reduce(%b init: %z) applies stablehlo.maximum across dimensions = [1] : "
            f"(tensor<2x3x{f}>, tensor<{f}>) -> tensor<2x{f}>",
            *[
                f"%{name}32 = stablehlo.convert %{name} : (tensor<{dims}{f}>) -> tensor<{dims}f32>"
                for name, dims in SHAPES.items()
            ],
        ], [*[(f"{name}32", f"tensor<{dims}f32>") for name, dims in SHAPES.items()], ("lt", "tensor<2x3xi1>"), ("dot", "tensor<2x2xf32>")]
    for f in BYTES:
        yield f"all of {f}", [
            "%0 = stablehlo.iota dim = 0 : tensor<256xui8>",
            f"%1 = stablehlo.bitcast_convert %0 : (tensor<256xui8>) -> tensor<256x{f}>",
            f"%2 = stablehlo.convert %1 : (tensor<256x{f}>) -> tensor<256xf32>",
            f"%3 = stablehlo.bitcast_convert %1 : (tensor<256x{f}>) -> tensor<256xui8>",
            f"%4 = stablehlo.negate %1 : tensor<256x{f}>",
            f"%5 = stablehlo.convert %4 : (tensor<256x{f}>) -> tensor<256xf32>",
            f"%6 = stablehlo.is_finite %2 : (tensor<256xf32>) -> tensor<256xi1>",
        ], [("2", "tensor<256xf32>"), ("3", "tensor<256xui8>"), ("5", "tensor<256xf32>"), ("6", "tensor<256xi1>")]
        yield f"f64 and integers to {f}", [
            x,
            f"%0 = stablehlo.convert %x : (tensor<{n}f32>) -> tensor<{n}f64>",
            f"%1 = stablehlo.convert %0 : (tensor<{n}f64>) -> tensor<{n}{f}>",
            f"%2 = stablehlo.convert %1 : (tensor<{n}{f}>) -> tensor<{n}f64>",
            f"%3 = stablehlo.constant dense<[-7, 0, 1, 6]> : tensor<4xi32>",
            f"%4 = stablehlo.convert %3 : (tensor<4xi32>) -> tensor<4x{f}>",
            f"%5 = stablehlo.convert %4 : (tensor<4x{f}>) -> tensor<4xi32>",
        ], [("2", f"tensor<{n}f64>"), ("5", "tensor<4xi32>")]
    yield "truth values of numbers", [
        constant("a", numpy.array([0, 1, 113, 255], numpy.uint8)),
        constant("b", numpy.array([[-2, 21845]], numpy.int16)),
        constant("c", numpy.array([0xDEADBEEF], numpy.uint32)),
        "%0 = stablehlo.bitcast_convert %a : (tensor<4xui8>) -> tensor<4x8xi1>",
        "%1 = stablehlo.bitcast_convert %b : (tensor<1x2xi16>) -> tensor<1x2x16xi1>",
        "%2 = stablehlo.bitcast_convert %c : (tensor<1xui32>) -> tensor<1x32xi1>",
    ], [("0", "tensor<4x8xi1>"), ("1", "tensor<1x2x16xi1>"), ("2", "tensor<1x32xi1>")]
    bits = numpy.array([[int(c) for c in f"{one:064b}"] for one in (0x0123456789ABCDEF, 0x8000000000000001)], bool)
    yield "numbers of truth values", [
        constant("a", bits),
        "%1 = stablehlo.reshape %a : (tensor<2x64xi1>) -> tensor<2x8x8xi1>",
        "%2 = stablehlo.reshape %a : (tensor<2x64xi1>) -> tensor<2x2x2x16xi1>",
        "%3 = stablehlo.bitcast_convert %a : (tensor<2x64xi1>) -> tensor<2xi64>",
        "%4 = stablehlo.bitcast_convert %1 : (tensor<2x8x8xi1>) -> tensor<2x8xi8>",
        "%5 = stablehlo.bitcast_convert %2 : (tensor<2x2x2x16xi1>) -> tensor<2x2x2xui16>",
        "%6 = stablehlo.bitcast_convert %a : (tensor<2x64xi1>) -> tensor<2x64xi1>",
    ], [("3", "tensor<2xi64>"), ("4", "tensor<2x8xi8>"), ("5", "tensor<2x2x2xui16>"), ("6", "tensor<2x64xi1>")]
    yield "order of bits", [
        constant("x", NUMBERS[:20].reshape(2, 10)),
        '%r = "stablehlo.sort"(%x) ({',
        "^bb0(%a: tensor<f32>, %b: tensor<f32>):",
        "  %c = stablehlo.bitcast_convert %a : (tensor<f32>) -> tensor<ui32>",
        "  %d = stablehlo.bitcast_convert %b : (tensor<f32>) -> tensor<ui32>",
        "  %e = stablehlo.compare GT, %c, %d, UNSIGNED : (tensor<ui32>, tensor<ui32>) -> tensor<i1>",
        "  stablehlo.return %e : tensor<i1>",
        "}) {dimension = 1 : i64, is_stable = true} : (tensor<2x10xf32>) -> tensor<2x10xf32>",
    ], [("r", "tensor<2x10xf32>")]
    for n_bits in (2, 4):
        small = f"i{n_bits}"
        per = 16 // n_bits
        yield f"numbers of {n_bits} bits of larger ones, and back", [
            constant("a", numpy.array([-2, 21845, 12345], numpy.int16)),
            f"%0 = stablehlo.bitcast_convert %a : (tensor<3xi16>) -> tensor<3x{per}x{small}>",
            f"%1 = stablehlo.convert %0 : (tensor<3x{per}x{small}>) -> tensor<3x{per}xi32>",
            f"%2 = stablehlo.bitcast_convert %0 : (tensor<3x{per}x{small}>) -> tensor<3xi16>",
            f"%3 = stablehlo.bitcast_convert %0 : (tensor<3x{per}x{small}>) -> tensor<3x{per}xu{small}>",
            f"%4 = stablehlo.convert %3 : (tensor<3x{per}xu{small}>) -> tensor<3x{per}xi32>",
            f"%5 = stablehlo.bitcast_convert %0 : (tensor<3x{per}x{small}>) -> tensor<3x{per}x{n_bits}xi1>",
        ], [
            ("1", f"tensor<3x{per}xi32>"),
            ("2", "tensor<3xi16>"),
            ("4", f"tensor<3x{per}xi32>"),
            ("5", f"tensor<3x{per}x{n_bits}xi1>"),
        ]


SHAPES = {"add": "2x3x", "mul": "2x3x", "abs": "2x3x", "max": "2x3x", "sel": "2x3x", "tr": "3x2x", "red": "2x"}


class Quantized:
    """A quantised type: storage, its range, scales and zero points, along an axis or not."""

    def __init__(self, storage, scales, zeros, axis=None, limits=None):
        self.storage, self.axis, self.limits = storage, axis, limits
        self.scales, self.zeros = numpy.float32(scales), numpy.float32(zeros)
        n_bits = int(storage[1:])
        whole = (-(2 ** (n_bits - 1)), 2 ** (n_bits - 1) - 1) if storage[0] == "i" else (0, 2**n_bits - 1)
        self.least, self.most = limits or whole

    def __str__(self):
        limits = "" if self.limits is None else f"<{self.least}:{self.most}>"
        if self.axis is None:
            return f"!quant.uniform<{self.storage}{limits}:f32, {float(self.scales)}:{int(self.zeros)}>"
        steps = ", ".join(f"{float(scale)}:{int(zero)}" for scale, zero in zip(self.scales, self.zeros))
        return f"!quant.uniform<{self.storage}{limits}:f32:{self.axis}, {{{steps}}}>"

    def along(self, value, rank):
        if self.axis is None:
            return value
        return value.reshape([-1 if at == self.axis else 1 for at in range(rank)])

    def quantize(self, x):
        x = numpy.float32(x)
        moved = x / self.along(self.scales, x.ndim) + self.along(self.zeros, x.ndim)
        dtype = numpy.dtype(("int" if self.storage[0] == "i" else "uint") + self.storage[1:])
        return numpy.rint(numpy.clip(moved, numpy.float32(self.least), numpy.float32(self.most))).astype(dtype)

    def dequantize(self, q):
        difference = (q.astype(numpy.float64) - self.along(self.zeros, q.ndim)).astype(numpy.float32)
        return difference * self.along(self.scales, q.ndim)


I8 = Quantized("i8", 0.25, -3)
U8 = Quantized("u8", 0.125, 128)
NARROW = Quantized("i8", 0.5, 0, limits=(-100, 100))
I16 = Quantized("i16", 0.0078125, 5)
I32 = Quantized("i32", 0.0625, 0)
ROWS = Quantized("i8", [0.5, 0.25], [0, -10], axis=0)
LAST = Quantized("u8", [0.5, 0.25, 2.0], [0, 100, 7], axis=1)


def calculated():
    """Yields names, lines, and what is returned: names, types and values."""
    n = NUMBERS[:24].reshape(2, 12).astype(numpy.float64)
    wide = [
        "^bb0(%a: tensor<f64>, %b: tensor<f64>):",
        "  %s = stablehlo.add %a, %b : tensor<f64>",
        "  stablehlo.return %s : tensor<f64>",
    ]
    yield "reductions by numbers wider than their operands", [
        constant("x", n.astype(numpy.float32)),
        "%z = stablehlo.constant dense<0.0> : tensor<f32>",
        "%i = stablehlo.constant dense<[[1], [0]]> : tensor<2x1xi32>",
        '%r = "stablehlo.reduce"(%x, %z) ({',
        *wide,
        "}) {dimensions = array<i64: 1>} : (tensor<2x12xf32>, tensor<f32>) -> tensor<2xf64>",
        '%w = "stablehlo.reduce_window"(%x, %z) ({',
        *wide,
        "}) {window_dimensions = array<i64: 1, 3>} : (tensor<2x12xf32>, tensor<f32>) -> tensor<2x10xf64>",
        '%c = "stablehlo.scatter"(%x, %i, %x) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], '
        "inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({",
        *wide,
        "}) : (tensor<2x12xf32>, tensor<2x1xi32>, tensor<2x12xf32>) -> tensor<2x12xf64>",
    ], [
        ("r", "tensor<2xf64>", n.sum(1)),
        ("w", "tensor<2x10xf64>", n[:, :-2] + n[:, 1:-1] + n[:, 2:]),
        ("c", "tensor<2x12xf64>", n + n[::-1]),
    ]
    x = numpy.array([[1.3, -2.7, 100.0], [0.125, -40.0, 6.375]], numpy.float32)
    y = numpy.array([[0.5, 2.25, -9.5], [3.0, 0.875, -1.0]], numpy.float32)
    for name, own in dict(i8=I8, u8=U8, narrow=NARROW, i16=I16, i32=I32, rows=ROWS, last=LAST).items():
        stored = own.quantize(x)
        storage = f"tensor<2x3x{own.storage.replace('u', 'ui')}>"
        yield f"quantize and dequantize, {name}", [
            constant("x", x),
            f"%q = stablehlo.uniform_quantize %x : (tensor<2x3xf32>) -> tensor<2x3x{own}>",
            f"%f = stablehlo.uniform_dequantize %q : (tensor<2x3x{own}>) -> tensor<2x3xf32>",
            f"%i = stablehlo.bitcast_convert %q : (tensor<2x3x{own}>) -> {storage}",
        ], [("i", storage, stored), ("f", "tensor<2x3xf32>", own.dequantize(stored))]
    a, b = I8.quantize(x), I8.quantize(y)
    fa, fb = I8.dequantize(a), I8.dequantize(b)
    head = [
        constant("x", x),
        constant("y", y),
        f"%a = stablehlo.uniform_quantize %x : (tensor<2x3xf32>) -> tensor<2x3x{I8}>",
        f"%b = stablehlo.uniform_quantize %y : (tensor<2x3xf32>) -> tensor<2x3x{I8}>",
    ]
    functions = {
        "add": fa + fb,
        "subtract": fa - fb,
        "multiply": fa * fb,
        "maximum": numpy.maximum(fa, fb),
    }
    for name, value in functions.items():
        for to, own in dict(i8=I8, i32=I32, rows=ROWS).items():
            storage = f"tensor<2x3x{own.storage}>"
            yield f"{name} of quantised numbers, to {to}", [
                *head,
                f'%q = "stablehlo.{name}"(%a, %b) : (tensor<2x3x{I8}>, tensor<2x3x{I8}>) -> tensor<2x3x{own}>',
                f"%i = stablehlo.bitcast_convert %q : (tensor<2x3x{own}>) -> {storage}",
            ], [("i", storage, own.quantize(value))]
    yield "comparison of quantised numbers", [
        *head,
        f"%c = stablehlo.compare LT, %a, %b : (tensor<2x3x{I8}>, tensor<2x3x{I8}>) -> tensor<2x3xi1>",
    ], [("c", "tensor<2x3xi1>", fa < fb)]
    yield "product of quantised numbers", [
        *head,
        f"%t = stablehlo.transpose %b, dims = [1, 0] : (tensor<2x3x{I8}>) -> tensor<3x2x{I8}>",
        f"%q = stablehlo.dot_general %a, %t, contracting_dims = [1] x [0] : "
        f"(tensor<2x3x{I8}>, tensor<3x2x{I8}>) -> tensor<2x2x{I32}>",
        f"%i = stablehlo.bitcast_convert %q : (tensor<2x2x{I32}>) -> tensor<2x2xi32>",
    ], [("i", "tensor<2x2xi32>", I32.quantize(fa @ fb.T))]
    yield "sum of quantised numbers, quantised once", [
        *head,
        f"%z = stablehlo.constant() {{value = dense<{int(I8.zeros)}> : tensor<i8>}} : () -> tensor<{I8}>",
        f"%r = stablehlo.reduce(%a init: %z) applies stablehlo.add across dimensions = [1] : "
        f"(tensor<2x3x{I8}>, tensor<{I8}>) -> tensor<2x{I8}>",
        f"%i = stablehlo.bitcast_convert %r : (tensor<2x{I8}>) -> tensor<2xi8>",
    ], [("i", "tensor<2xi8>", I8.quantize(fa.sum(1)))]
    yield "moves of quantised numbers", [
        *head,
        f"%c = stablehlo.concatenate %a, %b, dim = 0 : (tensor<2x3x{I8}>, tensor<2x3x{I8}>) -> tensor<4x3x{I8}>",
        f"%s = stablehlo.slice %c [1:4, 0:3:2] : (tensor<4x3x{I8}>) -> tensor<3x2x{I8}>",
        f"%r = stablehlo.reverse %s, dims = [0] : tensor<3x2x{I8}>",
        f"%z = stablehlo.constant() {{value = dense<9> : tensor<i8>}} : () -> tensor<{I8}>",
        f"%p = stablehlo.pad %r, %z, low = [0, 1], high = [0, 0], interior = [0, 0] : "
        f"(tensor<3x2x{I8}>, tensor<{I8}>) -> tensor<3x3x{I8}>",
        f"%i = stablehlo.bitcast_convert %p : (tensor<3x3x{I8}>) -> tensor<3x3xi8>",
    ], [("i", "tensor<3x3xi8>", numpy.pad(numpy.concatenate([a, b])[1:4, ::2][::-1], ((0, 0), (1, 0)), constant_values=9))]
    turns = fa
    for _ in range(3):
        turns = I8.dequantize(I8.quantize(turns + fb))
    yield "loop that carries quantised numbers", [
        *head,
        "%n = stablehlo.constant dense<3> : tensor<i32>",
        "%one = stablehlo.constant dense<1> : tensor<i32>",
        "%none = stablehlo.constant dense<0> : tensor<i32>",
        f"%l:2 = stablehlo.while(%at = %none, %v = %a) : tensor<i32>, tensor<2x3x{I8}>",
        "cond {",
        "  %go = stablehlo.compare LT, %at, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>",
        "  stablehlo.return %go : tensor<i1>",
        "} do {",
        "  %next = stablehlo.add %at, %one : tensor<i32>",
        f"  %sum = stablehlo.add %v, %b : tensor<2x3x{I8}>",
        f"  stablehlo.return %next, %sum : tensor<i32>, tensor<2x3x{I8}>",
        "}",
        f"%f = stablehlo.uniform_dequantize %l#1 : (tensor<2x3x{I8}>) -> tensor<2x3xf32>",
    ], [("f", "tensor<2x3xf32>", turns)]
    yield "requantised numbers", [
        *head,
        f"%q = stablehlo.uniform_quantize %a : (tensor<2x3x{I8}>) -> tensor<2x3x{LAST}>",
        f"%i = stablehlo.bitcast_convert %q : (tensor<2x3x{LAST}>) -> tensor<2x3xui8>",
    ], [("i", "tensor<2x3xui8>", LAST.quantize(fa))]


def chunk(name, lines, returned):
    """Returns a module that gives its own results, and behind them those that are expected."""
    lines = list(lines)
    for at, (_, _, value) in enumerate(returned):
        lines.append(constant(f"expected_{at}", value))
    names = [f"%{own}" for own, _, _ in returned] + [f"%expected_{at}" for at in range(len(returned))]
    types = [own for _, own, _ in returned] * 2
    types = ", ".join(types)
    lines.append(f"return {', '.join(names)} : {types}")
    return f"// {name}\nfunc.func @main() -> ({types}) {{\n  " + "\n  ".join(lines) + "\n}\n"


def interpreted(lines, returned):
    """Returns the values that the reference interpreter gives."""
    names, types = ", ".join(f"%{name}" for name, _ in returned), ", ".join(own for _, own in returned)
    text = f"func.func @main() -> ({types}) {{\n" + "\n".join(lines) + f"\nreturn {names} : {types}\n}}\n"
    with mlir.make_ir_context(), ir.Location.unknown():
        values = stablehlo.eval_module(ir.Module.parse(text), [])
        return [numpy.array(value) for value in values]


def main():
    chunks = []
    for name, lines, returned in cases():
        values = interpreted(lines, returned)
        chunks.append(chunk(name, lines, [(*own, value) for own, value in zip(returned, values)]))
    chunks += [chunk(*case) for case in calculated()]
    print("\n// -----\n".join(chunks), end="")


main()
