//! Modules of StableHLO that verify in no version of it: operands, regions and nesting that are wrong.

use super::{Case, rejected};

const TENSOR: &str = "tensor<2x3xf32>";

/// Returns a function of two tensors whose result is `%r`.
fn function(body: &str) -> String {
    format!(
        "func.func @main(%x: {TENSOR}, %y: {TENSOR}, %n: tensor<3xi32>, %p: tensor<i1>, %f: tensor<f32>) -> {TENSOR} {{\n\
         {body}\n  return %r : {TENSOR}\n}}\n"
    )
}

pub fn cases() -> Vec<Case> {
    [
        operations(),
        loops(),
        branches(),
        bodies(),
        quantised(),
        nested(),
    ]
    .concat()
}

/// Returns a case of a function with this body; the message begins at a line and a column.
fn wrong(kind: &'static str, body: &str, stderr: &'static str) -> Case {
    rejected(kind, function(body), stderr)
}

fn operations() -> Vec<Case> {
    vec![
        wrong(
            "StableHLO: sum of floats and integers",
            "  %k = stablehlo.constant dense<1> : tensor<2x3xi32>\n  %r = \"stablehlo.add\"(%x, %k) : (tensor<2x3xf32>, \
             tensor<2x3xi32>) -> tensor<2x3xf32>",
            "input.mlir:3:8: error: 'stablehlo.add' op takes operands of f32 and i32, expected one type [TF0516]",
        ),
        wrong(
            "StableHLO: sum of two shapes",
            "  %k = stablehlo.constant dense<1.0> : tensor<3xf32>\n  %r = \"stablehlo.add\"(%x, %k) : (tensor<2x3xf32>, \
             tensor<3xf32>) -> tensor<2x3xf32>",
            "input.mlir:3:8: error: 'stablehlo.add' op has an operand 1 of extents [3], expected those of the result, [2, 3]",
        ),
        wrong(
            "StableHLO: choice by a condition of another shape",
            "  %k = stablehlo.constant dense<true> : tensor<3xi1>\n  %r = \"stablehlo.select\"(%k, %x, %y) : (tensor<3xi1>, \
             tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>",
            "input.mlir:3:8: error: 'stablehlo.select' op has an operand 0 of extents [3], expected those of the result, [2, 3]",
        ),
        wrong(
            "StableHLO: result of another type",
            "  %q = \"stablehlo.add\"(%x, %y) : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf64>\n  \
             %r = stablehlo.convert %q : (tensor<2x3xf64>) -> tensor<2x3xf32>",
            "input.mlir:2:8: error: 'stablehlo.add' op has a result of f64, expected f32 [TF0516]",
        ),
        wrong(
            "StableHLO: operation without operands",
            "  %r = \"stablehlo.add\"() : () -> tensor<2x3xf32>",
            "input.mlir:2:8: error: 'stablehlo.add' op expected an operand 0, found 0 operands [TF0516]",
        ),
        wrong(
            "StableHLO: operation without results",
            "  \"stablehlo.add\"(%x, %y) : (tensor<2x3xf32>, tensor<2x3xf32>) -> ()\n  %r = stablehlo.abs %x : tensor<2x3xf32>",
            "input.mlir:2:3: error: 'stablehlo.add' op has 0 results, expected 1 [TF0516]",
        ),
        wrong(
            "StableHLO: operation without its attribute",
            "  %q = \"stablehlo.transpose\"(%x) : (tensor<2x3xf32>) -> tensor<3x2xf32>\n  %r = stablehlo.abs %x : tensor<2x3xf32>",
            "input.mlir:2:8: error: 'stablehlo.transpose' op requires attribute 'permutation' [TF0516]",
        ),
        rejected(
            "StableHLO: function that returns nothing it says",
            "func.func @main(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {\n  %r = stablehlo.abs %x : tensor<2x3xf32>\n}\n",
            "input.mlir:1:1: error: 'func.func' op has a body that ends in 'stablehlo.abs', expected a return [TF0516]",
        ),
    ]
}

fn loops() -> Vec<Case> {
    const STOP: &str = "    stablehlo.return %p : tensor<i1>";
    const SAME: &str = "    stablehlo.return %a : tensor<2x3xf32>";
    let turns = |kind, arguments: [&str; 2], condition: &str, body: &str, stderr| {
        let [first, second] = arguments;
        let text = format!(
            "  %r = \"stablehlo.while\"(%x) ({{\n  ^bb0({first}):\n{condition}\n  }}, {{\n  ^bb0({second}):\n{body}\n  }}) : \
             ({TENSOR}) -> {TENSOR}"
        );
        wrong(kind, &text, stderr)
    };
    let fine = ["%a: tensor<2x3xf32>"; 2];
    vec![
        turns(
            "StableHLO: loop whose body has an argument more",
            [fine[0], "%a: tensor<2x3xf32>, %b: tensor<2x3xf32>"],
            STOP,
            SAME,
            "input.mlir:2:8: error: 'stablehlo.while' op has a region 1 of 2 arguments, expected 1 [TF0516]",
        ),
        turns(
            "StableHLO: loop whose condition is of other values",
            ["%a: tensor<2x3xi32>", fine[1]],
            STOP,
            SAME,
            "input.mlir:2:8: error: 'stablehlo.while' op has 'tensor<2x3xi32>' as argument 0 of region 0, expected \
             'tensor<2x3xf32>' [TF0516]",
        ),
        turns(
            "StableHLO: loop whose condition is no truth value",
            fine,
            "    stablehlo.return %f : tensor<f32>",
            SAME,
            "input.mlir:2:8: error: 'stablehlo.while' op has 'tensor<f32>' as value 0 that region 0 returns, expected \
             'tensor<i1>' [TF0516]",
        ),
        turns(
            "StableHLO: loop whose body gives two values",
            fine,
            STOP,
            "    stablehlo.return %a, %a : tensor<2x3xf32>, tensor<2x3xf32>",
            "input.mlir:2:8: error: 'stablehlo.while' op has a region 1 that returns 2 values, expected 1 [TF0516]",
        ),
        turns(
            "StableHLO: loop whose body gives another type",
            fine,
            STOP,
            "    stablehlo.return %n : tensor<3xi32>",
            "input.mlir:2:8: error: 'stablehlo.while' op has 'tensor<3xi32>' as value 0 that region 1 returns, expected \
             'tensor<2x3xf32>' [TF0516]",
        ),
        turns(
            "StableHLO: loop whose body returns nothing",
            fine,
            STOP,
            "    %b = stablehlo.abs %a : tensor<2x3xf32>",
            "input.mlir:2:8: error: 'stablehlo.while' op has a body that ends in 'stablehlo.abs', expected a return [TF0516]",
        ),
    ]
}

fn branches() -> Vec<Case> {
    let of = |kind, name: &str, chooser: &str, arguments: &str, value: &str, stderr| {
        let text = format!(
            "  %r = \"stablehlo.{name}\"({chooser}) ({{\n  {arguments}\n    stablehlo.return {value}\n  }}, {{\n    \
             stablehlo.return %x : {TENSOR}\n  }}) : (tensor<{}>) -> {TENSOR}",
            if chooser == "%f" { "f32" } else { "i1" },
        );
        wrong(kind, &text, stderr)
    };
    vec![
        of(
            "StableHLO: branch by a float",
            "if",
            "%f",
            "",
            "%y : tensor<2x3xf32>",
            "input.mlir:2:8: error: 'stablehlo.if' op has 'tensor<f32>' as operand 0, expected 'tensor<i1>' [TF0516]",
        ),
        of(
            "StableHLO: case by a truth value",
            "case",
            "%p",
            "",
            "%y : tensor<2x3xf32>",
            "input.mlir:2:8: error: 'stablehlo.case' op has 'tensor<i1>' as operand 0, expected 'tensor<i32>' [TF0516]",
        ),
        of(
            "StableHLO: branch that takes an argument",
            "if",
            "%p",
            "^bb0(%a: tensor<2x3xf32>):",
            "%a : tensor<2x3xf32>",
            "input.mlir:2:8: error: 'stablehlo.if' op has a region 0 of 1 arguments, expected 0 [TF0516]",
        ),
        of(
            "StableHLO: branches of two types",
            "if",
            "%p",
            "",
            "%n : tensor<3xi32>",
            "input.mlir:2:8: error: 'stablehlo.if' op has 'tensor<3xi32>' as value 0 that region 0 returns, expected \
             'tensor<2x3xf32>' [TF0516]",
        ),
    ]
}

fn bodies() -> Vec<Case> {
    let of = |kind, arguments: &str, value: &str, stderr| {
        let text = format!(
            "  %q = \"stablehlo.reduce\"(%x, %f) ({{\n  ^bb0({arguments}):\n    stablehlo.return {value}\n  }}) \
             {{dimensions = array<i64: 1>}} : ({TENSOR}, tensor<f32>) -> tensor<2xf32>\n  %r = stablehlo.abs %x : {TENSOR}"
        );
        wrong(kind, &text, stderr)
    };
    vec![
        of(
            "StableHLO: body of one argument",
            "%a: tensor<f32>",
            "%a : tensor<f32>",
            "input.mlir:2:8: error: 'stablehlo.reduce' op has a region 0 of 1 arguments, expected 2 [TF0516]",
        ),
        of(
            "StableHLO: body of integers for floats",
            "%a: tensor<i32>, %b: tensor<i32>",
            "%a : tensor<i32>",
            "input.mlir:2:8: error: 'stablehlo.reduce' op has 'tensor<i32>' as argument 0 of region 0, expected 'tensor<f32>'",
        ),
        of(
            "StableHLO: body of narrower numbers",
            "%a: tensor<f16>, %b: tensor<f16>",
            "%a : tensor<f16>",
            "input.mlir:2:8: error: 'stablehlo.reduce' op has 'tensor<f16>' as argument 0 of region 0, expected 'tensor<f32>'",
        ),
        of(
            "StableHLO: body of tensors for numbers",
            "%a: tensor<2xf32>, %b: tensor<2xf32>",
            "%a : tensor<2xf32>",
            "input.mlir:2:8: error: 'stablehlo.reduce' op has 'tensor<2xf32>' as argument 0 of region 0, expected 'tensor<f32>'",
        ),
        of(
            "StableHLO: body of what is no tensor",
            "%a: f32, %b: f32",
            "%a : f32",
            "input.mlir:2:8: error: 'stablehlo.reduce' op has 'f32' as argument 0 of region 0, expected 'tensor<f32>'",
        ),
        of(
            "StableHLO: body that gives two values",
            "%a: tensor<f32>, %b: tensor<f32>",
            "%a, %b : tensor<f32>, tensor<f32>",
            "input.mlir:2:8: error: 'stablehlo.reduce' op has a region 0 that returns 2 values, expected 1 [TF0516]",
        ),
        wrong(
            "StableHLO: comparator that gives a number",
            "  %r = \"stablehlo.sort\"(%x) ({\n  ^bb0(%a: tensor<f32>, %b: tensor<f32>):\n    stablehlo.return %a : tensor<f32>\n  \
             }) {dimension = 1 : i64} : (tensor<2x3xf32>) -> tensor<2x3xf32>",
            "input.mlir:2:8: error: 'stablehlo.sort' op has 'tensor<f32>' as value 0 that region 0 returns, expected \
             'tensor<i1>' [TF0516]",
        ),
    ]
}

/// Quantised types that mean nothing, or not this tensor.
fn quantised() -> Vec<Case> {
    let of = |kind, ty: &str, stderr| {
        let text = format!(
            "  %q = stablehlo.uniform_quantize %x : (tensor<2x3xf32>) -> tensor<2x3x!quant.uniform<{ty}>>\n  \
             %r = stablehlo.uniform_dequantize %q : (tensor<2x3x!quant.uniform<{ty}>>) -> tensor<2x3xf32>"
        );
        wrong(kind, &text, stderr)
    };
    const FORM: &str = "expected '!quant.uniform<i8:f32, SCALE:ZERO_POINT>'";
    vec![
        of("quantised: scale of 0", "i8:f32, 0.0:1", FORM),
        of("quantised: scale below 0", "i8:f32, -0.5:1", FORM),
        of("quantised: scale that is no number", "i8:f32, nan", FORM),
        of(
            "quantised: zero point outside of its storage",
            "i8:f32, 0.5:128",
            FORM,
        ),
        of(
            "quantised: range outside of its storage",
            "i8<-129:127>:f32, 0.5",
            FORM,
        ),
        of(
            "quantised: range that ends before it begins",
            "i8<5:4>:f32, 0.5",
            FORM,
        ),
        of("quantised: storage of 7 bits", "i7:f32, 0.5", FORM),
        of(
            "quantised: integers that stand for integers",
            "i8:i32, 0.5",
            FORM,
        ),
        of(
            "quantised: list of scales without an axis",
            "i8:f32, {0.5, 0.25}",
            FORM,
        ),
        of(
            "quantised: axis outside of the tensor",
            "i8:f32:2, {0.5, 0.25}",
            "input.mlir:2:8: error: 'stablehlo.uniform_quantize' op is quantised along the dimension 2 of a tensor of rank 2",
        ),
        of(
            "quantised: three scales along two places",
            "i8:f32:0, {0.5, 0.25, 1.0}",
            "input.mlir:2:8: error: 'stablehlo.uniform_quantize' op has 3 scales along a dimension of 2 elements",
        ),
        wrong(
            "quantised: constant of another storage",
            "  %q = stablehlo.constant() {value = dense<1> : tensor<2x3xui8>} : () -> tensor<2x3x!quant.uniform<i8:f32, 0.5>>\n  \
             %r = stablehlo.uniform_dequantize %q : (tensor<2x3x!quant.uniform<i8:f32, 0.5>>) -> tensor<2x3xf32>",
            "input.mlir:2:8: error: 'stablehlo.constant' op states numbers of ui8, expected i8",
        ),
        wrong(
            "quantised: floats that are dequantised",
            "  %r = stablehlo.uniform_dequantize %x : tensor<2x3xf32>",
            "input.mlir:2:8: error: 'stablehlo.uniform_dequantize' op expected a tensor of quantised numbers",
        ),
        wrong(
            "bits: seven truth values as a byte",
            "  %k = stablehlo.constant dense<true> : tensor<7xi1>\n  \
             %q = stablehlo.bitcast_convert %k : (tensor<7xi1>) -> tensor<ui8>\n  %r = stablehlo.abs %x : tensor<2x3xf32>",
            "input.mlir:3:8: error: 'stablehlo.bitcast_convert' op ",
        ),
        wrong(
            "bits: a byte as seven truth values",
            "  %k = stablehlo.constant dense<1> : tensor<ui8>\n  \
             %q = stablehlo.bitcast_convert %k : (tensor<ui8>) -> tensor<7xi1>\n  %r = stablehlo.abs %x : tensor<2x3xf32>",
            "input.mlir:3:8: error: 'stablehlo.bitcast_convert' op ",
        ),
        wrong(
            "bits: a number of 6 bits as a byte",
            "  %k = stablehlo.constant dense<1.0> : tensor<f6E2M3FN>\n  \
             %q = stablehlo.bitcast_convert %k : (tensor<f6E2M3FN>) -> tensor<ui8>\n  %r = stablehlo.abs %x : tensor<2x3xf32>",
            "input.mlir:3:8: error: 'stablehlo.bitcast_convert' op casts elements of f6E2M3FN, 6 bits each, with extents [], \
             to ui8, of 8 bits",
        ),
        wrong(
            "bits: three numbers of 4 bits as a byte",
            "  %k = stablehlo.constant dense<1> : tensor<3xi4>\n  \
             %q = stablehlo.bitcast_convert %k : (tensor<3xi4>) -> tensor<ui8>\n  %r = stablehlo.abs %x : tensor<2x3xf32>",
            "input.mlir:3:8: error: 'stablehlo.bitcast_convert' op casts elements of i4, 4 bits each, with extents [3], \
             to ui8, of 8 bits",
        ),
        wrong(
            "bits: a word as three bytes",
            "  %k = stablehlo.constant dense<1> : tensor<i32>\n  \
             %q = stablehlo.bitcast_convert %k : (tensor<i32>) -> tensor<3xi8>\n  %r = stablehlo.abs %x : tensor<2x3xf32>",
            "input.mlir:3:8: error: 'stablehlo.bitcast_convert' op has a result of extents [3], expected [4]",
        ),
    ]
}

/// Nesting of 100,000 levels, in the forms that are this dialect's own.
fn nested() -> Vec<Case> {
    const DEPTH: usize = 100_000;
    let deep = |kind, open: &str, close: &str| {
        let text = format!("  {}{}", open.repeat(DEPTH), close.repeat(DEPTH));
        rejected(
            kind,
            function(&text),
            "error: nesting is deeper than 256 levels [TF0116]",
        )
    };
    let mut loops = String::new();
    for turn in 0..DEPTH {
        loops.push_str(&format!(
            "stablehlo.while(%a{turn} = %x) : tensor<2x3xf32> cond {{\n"
        ));
    }
    vec![
        deep(
            "StableHLO: branches 100,000 deep",
            "\"stablehlo.if\"(%p) ({\n",
            "}) : (tensor<i1>) -> ()\n",
        ),
        rejected(
            "StableHLO: loops 100,000 deep",
            function(&loops),
            "error: nesting is deeper than 256 levels [TF0116]",
        ),
        rejected(
            "StableHLO: tuples 100,000 deep",
            function(&format!(
                "  %q = \"stablehlo.tuple\"(%x) : (tensor<2x3xf32>) -> {}f32{}",
                "tuple<".repeat(DEPTH),
                ">".repeat(DEPTH)
            )),
            "error: nesting is deeper than 256 levels [TF0116]",
        ),
        rejected(
            "StableHLO: elements 100,000 deep",
            function(&format!(
                "  %r = stablehlo.constant dense<{}1.0{}> : tensor<2x3xf32>",
                "[".repeat(DEPTH),
                "]".repeat(DEPTH)
            )),
            "error: nesting is deeper than 256 levels [TF0116]",
        ),
    ]
}
