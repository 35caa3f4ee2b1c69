//! Pointwise rows.

use tfrt_host::{DType, Error};
use tfrt_tensor::op::{OpCall, OpKernel, OpResults, RunFn};

use super::{
    Collapsed, begin, broadcast_steps, dims, elements, float, number_of, queue, rearrange,
    row_major, scratch, size_of,
};
use crate::{KIND, kernels};

/// Rows of one operand, and their kernels.
pub(super) const UNARY: &[(&str, &str)] = &[
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
    let mut is_unary = false;
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
    let found = table.iter().find(|(name, _)| *name == row);
    found
        .map(|(_, kernel)| *kernel)
        .ok_or_else(|| Error::internal(format!("no kernel of {row} on GPUs")))
}

pub(super) fn unary(call: &OpCall<'_>) -> Result<OpResults, Error> {
    let name = name_in(UNARY, call.op.name)?;
    let (call, out, done) = begin(call)?;
    let attributes = match call.name {
        "elu" | "leaky_relu" => Some([float(&call, "alpha"), 0.0]),
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
                let [whole_x, whole_y] = [&x, &y].map(|own| scratch(own, n, number.size()));
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
        kernels::binary(
            (name, number),
            (&z, size),
            [(&x, x_steps), (&y, y_steps)],
            dims,
        )
    };
    Ok(queue(&call, out, done, work))
}
