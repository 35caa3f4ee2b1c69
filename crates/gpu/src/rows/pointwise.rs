//! Pointwise rows.

use tfrt_host::device::DeviceSlice;
use tfrt_host::{DType, Error};
use tfrt_tensor::op::{OpCall, OpKernel, OpResults, RunFn};

use super::{
    Collapsed, begin, broadcast_steps, dims, elements, float, number_of, queue, rearrange,
    row_major, scratch, size_of,
};
use crate::kernels::Number;
use crate::{KIND, kernels};

/// Rows of one operand, and their kernels.
pub(super) const UNARY: &[(&str, &str)] = &[
    ("sin", "sin"),
    ("cos", "cos"),
    ("tan", "tan"),
    ("asin", "asin"),
    ("acos", "acos"),
    ("atan", "atan"),
    ("sinh", "sinh"),
    ("cosh", "cosh"),
    ("asinh", "asinh"),
    ("acosh", "acosh"),
    ("atanh", "atanh"),
    ("onnx.Softsign", "softsign"),
    ("onnx.Mish", "mish"),
    ("onnx.Selu", "selu"),
    ("onnx.Celu", "celu"),
    ("onnx.Swish", "swish"),
    ("onnx.ThresholdedRelu", "thresholded_relu"),
    ("onnx.Shrink", "shrink"),
    ("neg", "neg"),
    ("abs", "abs"),
    ("sign", "sign"),
    ("reciprocal", "reciprocal"),
    ("square", "square"),
    ("sqrt", "sqrt"),
    ("rsqrt", "rsqrt"),
    ("exp", "exp"),
    ("expm1", "expm1"),
    ("log", "log"),
    ("log1p", "log1p"),
    ("tanh", "tanh"),
    ("erf", "erf"),
    ("floor", "floor"),
    ("ceil", "ceil"),
    ("round", "round"),
    ("trunc", "trunc"),
    ("sigmoid", "sigmoid"),
    ("relu", "relu"),
    ("relu6", "relu6"),
    ("gelu", "gelu"),
    ("softplus", "softplus"),
    ("elu", "elu"),
    ("leaky_relu", "leaky_relu"),
    ("hard_sigmoid", "hard_sigmoid"),
    ("onnx.HardSwish", "hard_swish"),
];

/// Rows of two operands, and their kernels.
pub(super) const BINARY: &[(&str, &str)] = &[
    ("add", "add"),
    ("tfrt_test.add", "add"),
    ("onnx.PRelu", "prelu"),
    ("sub", "sub"),
    ("mul", "mul"),
    ("div", "div"),
    ("pow", "pow"),
    ("min", "min"),
    ("max", "max"),
    ("squared_difference", "squared_difference"),
    ("eq", "eq"),
    ("ne", "ne"),
    ("lt", "lt"),
    ("le", "le"),
    ("gt", "gt"),
    ("ge", "ge"),
];

/// Rows that have kernels for integers and `f64`, too.
pub(super) const OF_NUMBERS: &[&str] = &[
    "neg",
    "abs",
    "sign",
    "square",
    "relu",
    "add",
    "tfrt_test.add",
    "sub",
    "mul",
    "min",
    "max",
    "squared_difference",
    "eq",
    "ne",
    "lt",
    "le",
    "gt",
    "ge",
];

/// Rows that have kernels for truth values.
pub(super) const OF_TRUTH: &[&str] = &["not", "and", "or", "xor", "eq", "ne"];

/// Rows of truth values alone, and their kernels.
const LOGIC: &[(&str, &str)] = &[("not", "not"), ("and", "and"), ("or", "or"), ("xor", "xor")];

/// Rows that have kernels for `f64`, and not for integers.
pub(super) const OF_F64: &[&str] = &[
    "reciprocal",
    "sqrt",
    "rsqrt",
    "exp",
    "log",
    "tanh",
    "floor",
    "ceil",
    "round",
    "trunc",
    "sigmoid",
    "div",
];

/// Returns the kernel of a row for operands of some types.
pub(super) const fn of_types(row: &'static str, types: &'static [DType]) -> OpKernel {
    let mut is_unary = is_same(row, "not");
    let mut at = 0;
    while at < UNARY.len() {
        is_unary |= is_same(UNARY[at].0, row);
        at += 1;
    }
    let run: RunFn = if is_unary { unary } else { binary };
    OpKernel::new(row, KIND, run).types(types)
}

const fn is_same(a: &str, b: &str) -> bool {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    let mut at = 0;
    while at < a.len() && at < b.len() && a[at] == b[at] {
        at += 1;
    }
    at == a.len() && at == b.len()
}

fn name_in(table: &[(&str, &'static str)], row: &str) -> Result<&'static str, Error> {
    let mut found = table.iter().chain(LOGIC);
    let found = found.find(|(name, _)| *name == row);
    found
        .map(|(_, kernel)| *kernel)
        .ok_or_else(|| Error::internal(format!("no kernel of {row} on GPUs")))
}

pub(super) fn unary(call: &OpCall<'_>) -> Result<OpResults, Error> {
    let name = name_in(UNARY, call.op.name)?;
    let (call, out, done) = begin(call)?;
    let attributes = match call.name {
        "elu" | "leaky_relu" | "onnx.Celu" | "onnx.Swish" | "onnx.ThresholdedRelu" => {
            Some([float(&call, "alpha"), 0.0])
        }
        "onnx.Selu" => Some([float(&call, "alpha"), float(&call, "gamma")]),
        "onnx.Shrink" => Some([float(&call, "lambd"), float(&call, "bias")]),
        "hard_sigmoid" => Some([float(&call, "alpha"), float(&call, "beta")]),
        _ => None,
    };
    let name = match call.attrs.has("approximate") && call.attrs.text("approximate") == "tanh" {
        true => "gelu_tanh",
        false => name,
    };
    let (n, number) = (out.metadata().n_elements()?, number_of(&out)?);
    let (y, x) = (elements(&out), elements(call.input(0)?));
    Ok(queue(&call, out, done, move || {
        kernels::unary((name, number), &y, &x, n, attributes)
    }))
}

pub(super) fn binary(call: &OpCall<'_>) -> Result<OpResults, Error> {
    let name = name_in(BINARY, call.op.name)?;
    let (call, out, done) = begin(call)?;
    let to = dims(&out);
    let (size, number) = (size_of(&out)?, number_of(call.input(0)?)?);
    let steps = [0, 1].map(|index| {
        call.input(index)
            .map(|input| broadcast_steps(&dims(input), &to))
    });
    let [x_steps, y_steps] = steps;
    let steps = [x_steps?, y_steps?];
    let (z, x, y) = (
        elements(&out),
        elements(call.input(0)?),
        elements(call.input(1)?),
    );
    let work = move || {
        let collapsed = Collapsed::new(&to, &steps);
        let (x, y, collapsed) = match collapsed.dims.len() > 4 {
            false => (x, y, collapsed),
            // Both are repeated first, so that all lie alike.
            true => {
                let n = to.iter().product();
                let [whole_x, whole_y] = [(); 2].map(|()| scratch(&z, n, number.size()));
                let (whole_x, whole_y) = (whole_x?, whole_y?);
                let [x_steps, y_steps] = steps;
                rearrange(number.size(), &whole_x, &x, &to, x_steps)?;
                rearrange(number.size(), &whole_y, &y, &to, y_steps)?;
                let plain = row_major(&to);
                (
                    whole_x,
                    whole_y,
                    Collapsed::new(&to, &[plain.clone(), plain]),
                )
            }
        };
        let operands = collapsed.padded::<4>(0).zip(collapsed.padded::<4>(1));
        let ((dims, x_steps), (_, y_steps)) =
            operands.ok_or_else(|| Error::internal("too many dimensions"))?;
        let operands = [(&x, x_steps), (&y, y_steps)];
        kernels::binary((name, number), (&z, size), operands, dims, None)
    };
    Ok(queue(&call, out, done, work))
}

/// Joins operands by one function, each broadcast to the result: `onnx.Max`, `onnx.Sum`, `onnx.Mean`.
pub(super) fn fold(call: &OpCall<'_>) -> Result<OpResults, Error> {
    let (call, out, done) = begin(call)?;
    let function = match call.name {
        "onnx.Max" => "max",
        "onnx.Min" => "min",
        _ => "add",
    };
    let to = dims(&out);
    let n = out.metadata().n_elements()?;
    let operands: Vec<(DeviceSlice, Vec<usize>)> = call
        .inputs()
        .map(|input| (elements(input), broadcast_steps(&dims(input), &to)))
        .collect();
    let is_mean = call.name == "onnx.Mean";
    let z = elements(&out);
    let work = move || {
        let n_operands = operands.len();
        let mut whole = operands.into_iter().map(|(x, steps)| {
            let made = scratch(&z, n, 4)?;
            rearrange(4, &made, &x, &to, steps)?;
            Ok::<_, Error>(made)
        });
        let first = whole.next();
        let mut all = first.ok_or_else(|| Error::internal("no operand"))??;
        let (dims, steps) = ([1, 1, 1, n], kernels::plain_steps([1, 1, 1, n]));
        for other in whole {
            let (other, made) = (other?, scratch(&z, n, 4)?);
            let operands = [(&all, steps), (&other, steps)];
            kernels::binary((function, Number::F32), (&made, 4), operands, dims, None)?;
            all = made;
        }
        let factor = if is_mean {
            1.0 / n_operands as f32
        } else {
            1.0
        };
        kernels::unary(("scale", Number::F32), &z, &all, n, Some([factor, 0.0]))
    };
    Ok(queue(&call, out, done, work))
}

/// Limits elements to what lies between two numbers.
pub(super) fn clip(call: &OpCall<'_>) -> Result<OpResults, Error> {
    let (call, out, done) = begin(call)?;
    let n = out.metadata().n_elements()?;
    let bounds = [1, 2].map(|index| call.input(index).ok().map(elements));
    let (y, x) = (elements(&out), elements(call.input(0)?));
    let work = move || kernels::clip(&y, &x, bounds.each_ref().map(Option::as_ref), n);
    Ok(queue(&call, out, done, work))
}
