//! Tests of constants that are prepared for kernels: results are, bit for bit, those of weights that come with a
//! call.

use std::fmt::Write;

use tfrt_host::AnyAsyncValue;
use tfrt_tensor::{DType, DenseHostTensor, Tensor, TensorMetadata, TensorShape};

use super::{Opened, numbers, open};

/// A tensor of floats of any type, or of bytes.
struct Floats {
    dtype: DType,
    shape: Vec<usize>,
    bytes: Vec<u8>,
}

impl Floats {
    fn new(dtype: DType, seed: u32, shape: &[usize]) -> Floats {
        let drawn = numbers(seed, shape.iter().product());
        let bytes = drawn.into_iter().flat_map(|number| match dtype {
            DType::F64 => f64::from(number).to_le_bytes().to_vec(),
            DType::F32 => number.to_le_bytes().to_vec(),
            DType::Ui8 | DType::I8 => vec![number.to_le_bytes()[1]],
            DType::Bf16 => number.to_le_bytes()[2..].to_vec(),
            // Any bits below the largest exponent are numbers.
            _ => vec![number.to_le_bytes()[0], number.to_le_bytes()[1] & 0xb7],
        });
        let (shape, bytes) = (shape.to_vec(), bytes.collect());
        Floats {
            dtype,
            shape,
            bytes,
        }
    }

    fn ty(&self) -> String {
        let extents: String = self.shape.iter().map(|n| format!("{n}x")).collect();
        let element = match self.dtype {
            DType::Ui8 => "ui8".to_owned(),
            dtype => dtype.to_string(),
        };
        format!("tensor<{extents}{element}>")
    }

    fn line(&self) -> String {
        let mut bytes = String::new();
        for byte in &self.bytes {
            write!(bytes, "{byte:02X}").unwrap();
        }
        let ty = self.ty();
        format!("%w = \"onnx.Constant\"() {{value = dense<\"0x{bytes}\"> : {ty}}} : () -> {ty}\n")
    }

    fn value(&self, model: &Opened) -> AnyAsyncValue {
        let metadata = TensorMetadata::new(self.dtype, TensorShape::new(&self.shape).unwrap());
        let tensor = DenseHostTensor::from_bytes(model.host.allocator(), metadata, &self.bytes);
        AnyAsyncValue::new(Tensor::from(tensor.unwrap()))
    }
}

/// Returns the bytes of the result of a call.
fn called(model: &Opened, arguments: &[&Floats]) -> Vec<u8> {
    let arguments = arguments.iter().map(|floats| floats.value(model));
    let arguments = arguments.chain(model.constants.iter().cloned());
    let results = model.call("main", arguments.collect());
    let dense = results[0].get::<Tensor>().unwrap().as_dense().unwrap();
    dense.read().unwrap().bytes().to_vec()
}

/// Runs an operation on an input and weights, which are constants or come with the call. Returns whether they were
/// prepared.
fn is_prepared(operation: &str, attributes: &str, [x, w]: [&Floats; 2]) -> bool {
    let (x_type, w_type) = (x.ty(), w.ty());
    let y_type = match x.dtype {
        DType::Ui8 | DType::I8 => "tensor<*xi32>".to_owned(),
        dtype => format!("tensor<*x{dtype}>"),
    };
    let call = format!(
        "%y = \"{operation}\"(%x, %w) {{{attributes}}} : ({x_type}, {w_type}) -> {y_type}
         tfrt.return %y : {y_type}"
    );
    let of_call = open(
        &format!(
            "func.func @main(%x: {x_type}, %w: {w_type}) -> {y_type}
               attributes {{model.input_names = [\"x\", \"w\"], model.output_names = [\"y\"]}} {{ {call} }}"
        ),
        true,
    );
    let constant = open(
        &format!(
            "func.func @main(%x: {x_type}) -> {y_type}
               attributes {{model.input_names = [\"x\"], model.output_names = [\"y\"]}} {{ {}{call} }}",
            w.line()
        ),
        true,
    );
    // What was prepared serves many calls.
    for _ in 0..2 {
        assert_eq!(called(&constant, &[x]), called(&of_call, &[x, w]));
    }
    assert!(!of_call.text.contains("cpu.graph.prepare"));
    constant.text.contains("cpu.graph.prepare")
}

#[test]
fn filters_of_channels_first_are_brought_into_order_once() {
    for dtype in [DType::F64, DType::F16, DType::Bf16] {
        let floats = |seed, shape: &[usize]| Floats::new(dtype, seed, shape);
        let (x, w) = (floats(1, &[2, 4, 6, 5]), floats(2, &[6, 2, 3, 2]));
        assert!(is_prepared("onnx.Conv", "group = 2 : i64", [&x, &w]));
        let w = floats(2, &[4, 3, 2, 2]);
        let attributes = "strides = [2 : i64, 1 : i64]";
        assert!(is_prepared("onnx.ConvTranspose", attributes, [&x, &w]));
    }
    for rank in [1, 3] {
        let shape = |leading: [usize; 2]| [&leading[..], &vec![3; rank]].concat();
        let x = Floats::new(DType::F32, 3, &shape([2, 4]));
        let w = Floats::new(DType::F32, 4, &shape([5, 4]));
        assert!(is_prepared("onnx.Conv", "", [&x, &w]));
    }
}

#[test]
fn filters_of_bytes_are_packed_once() {
    for (x_type, w_type) in [(DType::Ui8, DType::I8), (DType::I8, DType::Ui8)] {
        let x = Floats::new(x_type, 1, &[2, 4, 9, 7]);
        let w = Floats::new(w_type, 2, &[6, 2, 3, 2]);
        assert!(is_prepared("onnx.ConvInteger", "group = 2 : i64", [&x, &w]));
        let w = Floats::new(w_type, 2, &[4, 1, 3, 3]);
        let attributes = "group = 4 : i64, pads = [1 : i64, 1 : i64, 0 : i64, 2 : i64]";
        assert!(is_prepared("onnx.ConvInteger", attributes, [&x, &w]));
    }
}

#[test]
fn halves_of_right_sides_are_widened_once() {
    for dtype in [DType::F16, DType::Bf16] {
        let floats = |seed, shape: &[usize]| Floats::new(dtype, seed, shape);
        let (x, w) = (floats(1, &[2, 3, 300]), floats(2, &[300, 40]));
        assert!(is_prepared("onnx.MatMul", "", [&x, &w]));
        let (list, stack) = (floats(3, &[300]), floats(4, &[2, 300, 7]));
        assert!(is_prepared("onnx.MatMul", "", [&x, &list]));
        assert!(is_prepared("onnx.MatMul", "", [&x, &stack]));
        let (x, w) = (floats(5, &[9, 33]), floats(6, &[12, 33]));
        let attributes = "transB = 1 : i64, alpha = 5.0e-1 : f32";
        assert!(is_prepared("onnx.Gemm", attributes, [&x, &w]));
    }
    let floats = |seed, shape: &[usize]| Floats::new(DType::F64, seed, shape);
    let (x, w) = (floats(1, &[3, 30]), floats(2, &[30, 4]));
    assert!(!is_prepared("onnx.MatMul", "", [&x, &w]));
}

#[test]
fn right_sides_of_bytes_are_packed_once() {
    for (rows, dtype) in [(1, DType::Ui8), (5, DType::Ui8), (3, DType::I8)] {
        let x = Floats::new(dtype, 1, &[rows, 37]);
        let w = Floats::new(DType::I8, 2, &[37, 20]);
        assert!(is_prepared("onnx.MatMulInteger", "", [&x, &w]));
    }
    // A right side that is no matrix is kept as it is.
    let x = Floats::new(DType::Ui8, 1, &[2, 3, 5]);
    let w = Floats::new(DType::Ui8, 2, &[2, 5, 4]);
    is_prepared("onnx.MatMulInteger", "", [&x, &w]);
}

#[test]
fn constants_that_are_no_filter_are_told_in_the_call() {
    let body = "func.func @main(%x: tensor<1x2x3x4xf64>) -> tensor<*xf64>
        attributes {model.input_names = [\"x\"], model.output_names = [\"y\"]} {
          %w = \"onnx.Constant\"() {value = dense<1.0> : tensor<2x2x1xf64>} : () -> tensor<2x2x1xf64>
          %y = \"onnx.Conv\"(%x, %w) : (tensor<1x2x3x4xf64>, tensor<2x2x1xf64>) -> tensor<*xf64>
          tfrt.return %y : tensor<*xf64>
        }";
    let model = open(body, false);
    let x = Floats::new(DType::F64, 1, &[1, 2, 3, 4]).value(&model);
    let arguments = [x].into_iter().chain(model.constants.iter().cloned());
    let error = model.error("main", arguments.collect());
    let wanted = "operand 1 has 4 dimensions, found extents [2, 2, 1]";
    assert!(error.message().contains(wanted), "{error}");
}
