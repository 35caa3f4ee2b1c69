//! Tests of each pointwise operation of ONNX in each type that it takes, in a chain of three that becomes one kernel.

use tfrt_host::{AnyAsyncValue, ExecutionContext, RequestContext};
use tfrt_tensor::math::cast::{Casting, cast_into};
use tfrt_tensor::{DType, DenseHostTensor, Tensor, TensorMetadata, TensorShape};

use super::{Opened, open};

/// The number of elements: more than a block, and not a multiple of a vector.
const N: usize = 1037;

const FLOATS: &[DType] = &[DType::F32, DType::F64, DType::F16, DType::Bf16];
const REALS: &[DType] = &[
    DType::F32,
    DType::F64,
    DType::F16,
    DType::Bf16,
    DType::I32,
    DType::I64,
    DType::Ui8,
];
const INTEGERS: &[DType] = &[DType::I32, DType::I64, DType::Ui8];
const UNSIGNED: &[DType] = &[DType::Ui8, DType::Ui16, DType::Ui32, DType::Ui64];
const TRUTH: &[DType] = &[DType::I1];
const ANY: &[DType] = &[
    DType::F32,
    DType::F64,
    DType::F16,
    DType::Bf16,
    DType::I32,
    DType::I64,
    DType::I1,
];

fn ty(dtype: DType) -> String {
    format!("tensor<{N}x{}>", dtype.mlir_name())
}

/// Returns a tensor of any type, with some special elements.
fn tensor(model: &Opened, dtype: DType, seed: u64) -> DenseHostTensor {
    let mut state = seed;
    let special = [
        0.0,
        -0.0,
        f64::NAN,
        f64::INFINITY,
        1e9,
        -1e-9,
        f64::NEG_INFINITY,
    ];
    let numbers: Vec<f64> = (0..N)
        .map(|_| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            let which = usize::try_from(state >> 32).unwrap() % special.len();
            match state >> 60 {
                0 => special[which],
                _ => f64::from(u32::try_from(state >> 40).unwrap()) / f64::from(1 << 21) - 3.0,
            }
        })
        .collect();
    let allocator = model.host.allocator();
    let wide = DenseHostTensor::from_slice(allocator, &[N], &numbers).unwrap();
    let metadata = TensorMetadata::new(dtype, TensorShape::new(&[N]).unwrap());
    let out = DenseHostTensor::unspecified(allocator, metadata).unwrap();
    let request = RequestContext::new(&model.host);
    let execution = ExecutionContext::new(&request);
    let done = cast_into(&execution, Casting::default(), &wide, &out).unwrap();
    model.host.queue().await_all(&[done.into_any()]).unwrap();
    out
}

impl Opened {
    /// Calls the model with tensors; returns type and bytes of its only result.
    fn bytes(&self, inputs: &[DenseHostTensor]) -> (DType, Vec<u8>) {
        let inputs = inputs
            .iter()
            .map(|input| AnyAsyncValue::new(Tensor::from(input.clone())));
        let arguments = inputs.chain(self.constants.iter().cloned()).collect();
        let results = self.call("main", arguments);
        let dense = results[0].get::<Tensor>().unwrap().as_dense().unwrap();
        let reading = dense.read().unwrap();
        (dense.dtype(), reading.bytes().to_vec())
    }
}

/// Returns whether bytes are those of a NaN.
fn is_none(dtype: DType, bytes: &[u8]) -> bool {
    let mut all = [0; 8];
    all[..bytes.len()].copy_from_slice(bytes);
    let bits = u64::from_le_bytes(all);
    match dtype {
        DType::F32 => bits & 0x7fff_ffff > 0x7f80_0000,
        DType::F64 => bits & (u64::MAX >> 1) > 0x7ff << 52,
        DType::F16 => bits & 0x7fff > 0x7c00,
        DType::Bf16 => bits & 0x7fff > 0x7f80,
        _ => false,
    }
}

/// Compiles `lines`, which make `%r` of `%v` and `%y`, of a type, and `%c`, a truth value, between two other
/// operations; checks that one kernel is left, and that bits are those of the operations one after the other.
fn check(what: &str, lines: &str, dtype: DType, made: DType) {
    let (own, result, truth) = (ty(dtype), ty(made), ty(DType::I1));
    let first = if dtype == DType::I1 { "Xor" } else { "Add" };
    let last = match made {
        DType::I1 => format!("\"onnx.Not\"(%r) : ({result}) -> {result}"),
        _ => format!("\"onnx.Mul\"(%r, %r) : ({result}, {result}) -> {result}"),
    };
    let body = format!(
        "func.func @main(%x: {own}, %y: {own}, %c: {truth}) -> {result} attributes {{
             model.input_names = [\"x\", \"y\", \"c\"], model.output_names = [\"z\"]}} {{
           %v = \"onnx.{first}\"(%x, %y) : ({own}, {own}) -> {own}
           {lines}
           %z = {last}
           tfrt.return %z : {result}
         }}"
    );
    let (fused, plain) = (open(&body, true), open(&body, false));
    let is_one = fused.text.matches("\"cpu.fused.elementwise\"").count() == 1;
    let others = ["\"cpu.onnx.", "\"cpu.graph."].map(|dialect| fused.text.matches(dialect).count());
    let others: usize = others.iter().sum();
    let constants = ["\"cpu.onnx.Constant\"", "\"cpu.graph.prepare\""]
        .map(|kernel| fused.text.matches(kernel).count());
    let constants: usize = constants.iter().sum();
    assert!(
        is_one && others == constants,
        "{what} {dtype}: {}",
        fused.text
    );
    assert!(!plain.text.contains("cpu.fused"), "{}", plain.text);
    let inputs = [
        tensor(&fused, dtype, 1),
        tensor(&fused, dtype, 2),
        tensor(&fused, DType::I1, 3),
    ];
    let ((of, found), (wanted_of, wanted)) = (fused.bytes(&inputs), plain.bytes(&inputs));
    assert_eq!((of, wanted_of), (made, made), "{what}");
    let size = found.len() / N;
    for (index, (found, wanted)) in found.chunks(size).zip(wanted.chunks(size)).enumerate() {
        let are_none = is_none(made, found) && is_none(made, wanted);
        assert!(
            found == wanted || are_none,
            "{what} {dtype} at {index}: {found:?} {wanted:?}"
        );
    }
}

/// Checks an operation of `operands` for each type; `attributes` is empty or in braces.
fn each(name: &str, operands: &[&str], attributes: &str, types: &[DType], made: Option<DType>) {
    for &dtype in types {
        let made = made.unwrap_or(dtype);
        let kinds = operands.iter().map(|operand| match *operand {
            "%c" => ty(DType::I1),
            _ => ty(dtype),
        });
        let kinds = kinds.collect::<Vec<_>>().join(", ");
        let (list, result) = (operands.join(", "), ty(made));
        let line = format!("%r = \"onnx.{name}\"({list}) {attributes} : ({kinds}) -> {result}");
        check(name, &line, dtype, made);
    }
}

/// Checks an operation of `%v` and constants of one element, of these shapes and types.
fn with_constants(name: &str, constants: &[(&str, DType, Option<&str>)], types: &[DType]) {
    for &dtype in types {
        let (mut lines, mut list, mut kinds) = (String::new(), String::from("%v"), ty(dtype));
        for (index, (extents, of, value)) in constants.iter().enumerate() {
            let of = if *of == DType::String { dtype } else { *of };
            list += &format!(", %k{index}");
            let Some(value) = value else {
                lines += &format!("%k{index} = \"graph.none\"() : () -> none\n");
                kinds += ", none";
                continue;
            };
            let value = match of.is_integer() {
                true => value.split('.').next().unwrap(),
                false => value,
            };
            let kind = format!("tensor<{extents}{}>", of.mlir_name());
            lines += &format!(
                "%k{index} = \"onnx.Constant\"() {{value = dense<{value}> : {kind}}} : () -> {kind}\n"
            );
            kinds += &format!(", {kind}");
        }
        let result = ty(dtype);
        lines += &format!("%r = \"onnx.{name}\"({list}) : ({kinds}) -> {result}\n");
        check(name, &lines, dtype, dtype);
    }
}

#[test]
fn operations_of_one_operand_fuse() {
    for name in ["Abs", "Neg", "Relu", "Sign", "Shrink"] {
        each(name, &["%v"], "", REALS, None);
    }
    for name in [
        "Acos",
        "Acosh",
        "Asin",
        "Asinh",
        "Atan",
        "Atanh",
        "Ceil",
        "Celu",
        "Cos",
        "Cosh",
        "Elu",
        "Erf",
        "Exp",
        "Floor",
        "Gelu",
        "HardSigmoid",
        "HardSwish",
        "LeakyRelu",
        "Log",
        "Mish",
        "Reciprocal",
        "Round",
        "Selu",
        "Sigmoid",
        "Sin",
        "Sinh",
        "Softplus",
        "Softsign",
        "Sqrt",
        "Swish",
        "Tan",
        "Tanh",
        "ThresholdedRelu",
    ] {
        each(name, &["%v"], "", FLOATS, None);
    }
    each("BitwiseNot", &["%v"], "", INTEGERS, None);
    each("Identity", &["%v"], "", ANY, None);
    each("IsInf", &["%v"], "", FLOATS, Some(DType::I1));
    each("IsNaN", &["%v"], "", FLOATS, Some(DType::I1));
    each("Not", &["%v"], "", TRUTH, None);
}

#[test]
fn attributes_become_parameters() {
    for (name, attributes) in [
        ("Celu", "{alpha = 0.7 : f32}"),
        ("Elu", "{alpha = 0.7 : f32}"),
        ("Gelu", "{approximate = \"tanh\"}"),
        ("HardSigmoid", "{alpha = 0.3 : f32, beta = 0.1 : f32}"),
        ("LeakyRelu", "{alpha = 0.1 : f32}"),
        ("Selu", "{alpha = 1.1 : f32, gamma = 0.9 : f32}"),
        ("Shrink", "{lambd = 0.3 : f32, bias = 0.1 : f32}"),
        ("Swish", "{alpha = 1.7 : f32}"),
        ("ThresholdedRelu", "{alpha = 0.3 : f32}"),
    ] {
        each(name, &["%v"], attributes, FLOATS, None);
    }
    for attributes in ["{detect_positive = 0 : i64}", "{detect_negative = 0 : i64}"] {
        each("IsInf", &["%v"], attributes, FLOATS, Some(DType::I1));
    }
    each("Mod", &["%v", "%y"], "{fmod = 1 : i64}", REALS, None);
    for direction in ["LEFT", "RIGHT"] {
        let attributes = format!("{{direction = \"{direction}\"}}");
        each("BitShift", &["%v", "%y"], &attributes, UNSIGNED, None);
    }
}

#[test]
fn operations_of_more_operands_fuse() {
    for name in [
        "Add", "Div", "Max", "Min", "Mod", "Mul", "PRelu", "Sub", "Sum", "Pow",
    ] {
        each(name, &["%v", "%y"], "", REALS, None);
    }
    for name in ["Max", "Min", "Sum"] {
        each(name, &["%v", "%y", "%x"], "", REALS, None);
        each(name, &["%v"], "", REALS, None);
    }
    for operands in [&["%v"][..], &["%v", "%y"], &["%v", "%y", "%x"]] {
        each("Mean", operands, "", FLOATS, None);
    }
    for name in ["BitwiseAnd", "BitwiseOr", "BitwiseXor"] {
        each(name, &["%v", "%y"], "", INTEGERS, None);
    }
    for name in ["And", "Or", "Xor"] {
        each(name, &["%v", "%y"], "", TRUTH, None);
    }
    for name in ["Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual"] {
        each(name, &["%v", "%y"], "", REALS, Some(DType::I1));
    }
    each("Equal", &["%v", "%y"], "", TRUTH, Some(DType::I1));
    each("Where", &["%c", "%v", "%y"], "", ANY, None);
}

#[test]
fn constants_of_any_type_become_numbers() {
    let own = DType::String;
    for name in ["Add", "Div", "Max", "Mod", "Mul", "PRelu"] {
        with_constants(name, &[("", own, Some("3.0"))], REALS);
        with_constants(name, &[("1x", own, Some("3.0"))], REALS);
    }
    for exponent in ["2.0", "0.5", "3.0", "-1.5"] {
        with_constants("Pow", &[("", own, Some(exponent))], FLOATS);
        with_constants("Pow", &[("1x", DType::F64, Some(exponent))], REALS);
    }
    for exponent in ["0", "2", "7", "-1"] {
        with_constants("Pow", &[("", DType::I64, Some(exponent))], REALS);
    }
    let (low, high) = (Some("1.0"), Some("2.5"));
    for bounds in [[low, high], [low, None], [None, high], [None, None]] {
        with_constants("Clip", &bounds.map(|bound| ("", own, bound)), REALS);
    }
    with_constants("Clip", &[("1x1x", own, low)], REALS);
    // As an `f64` it would be another.
    with_constants("Add", &[("", own, Some("9007199254740993"))], &[DType::I64]);
}

#[test]
fn conversions_fuse() {
    let number = |dtype: DType| match dtype {
        DType::F32 => 1,
        DType::Ui8 => 2,
        DType::I32 => 6,
        DType::I64 => 7,
        DType::I1 => 9,
        DType::F16 => 10,
        DType::F64 => 11,
        _ => 16,
    };
    for &to in ANY.iter().chain(&[DType::Ui8]) {
        let attributes = format!("{{to = {} : i64}}", number(to));
        each("Cast", &["%v"], &attributes, ANY, Some(to));
    }
}

#[test]
fn types_may_change_within_a_program() {
    for &dtype in FLOATS {
        let (own, truth, half) = (ty(dtype), ty(DType::I1), ty(DType::F16));
        let lines = format!(
            "%one = \"onnx.Constant\"() {{value = dense<1.0> : tensor<{0}>}} : () -> tensor<{0}>
             %two = \"onnx.Constant\"() {{value = dense<2.0> : tensor<{0}>}} : () -> tensor<{0}>
             %l = \"onnx.Less\"(%v, %y) : ({own}, {own}) -> {truth}
             %n = \"onnx.IsNaN\"(%v) : ({own}) -> {truth}
             %o = \"onnx.Or\"(%l, %n) : ({truth}, {truth}) -> {truth}
             %a = \"onnx.And\"(%o, %c) : ({truth}, {truth}) -> {truth}
             %k = \"onnx.Where\"(%a, %one, %two) : ({truth}, tensor<{0}>, tensor<{0}>) -> {own}
             %h = \"onnx.Cast\"(%k) {{to = 10 : i64}} : ({own}) -> {half}
             %e = \"onnx.Exp\"(%h) : ({half}) -> {half}
             %r = \"onnx.Cast\"(%e) {{to = 10 : i64}} : ({half}) -> {half}",
            dtype.mlir_name()
        );
        check("mixed", &lines, dtype, DType::F16);
    }
}

#[test]
fn programs_of_older_files_are_refused() {
    let body = "func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> attributes {model.input_names = [\"x\"], model.output_names = [\"y\"]} {
        %y = \"onnx.Tanh\"(%x) : (tensor<4xf32>) -> tensor<4xf32>
        tfrt.return %y : tensor<4xf32>
      }";
    let model = open(body, true);
    let text = model.text.replace("tanh a0", "Tanh a0");
    let error = super::constants_error(&text);
    assert_eq!(
        error.message(),
        "expected a function and its operands, found 'Tanh a0'"
    );
    let notes = error.notes().to_vec();
    assert!(
        notes
            .iter()
            .any(|note| note.contains("compile the model again")),
        "{notes:?}"
    );
}
