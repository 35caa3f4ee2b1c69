//! Pointwise rows.

use tfrt_host::Error;
use tfrt_tensor::op::{OpCall, OpResults};

use super::{
    Collapsed, begin, broadcast_steps, dims, elements, float, queue, rearrange, row_major, scratch,
};
use crate::kernels;

/// Rows of one operand, and their kernels.
pub(super) const UNARY: &[(&str, &str)] = &[
    ("neg", "neg_f32"),
    ("abs", "abs_f32"),
    ("sign", "sign_f32"),
    ("reciprocal", "reciprocal_f32"),
    ("square", "square_f32"),
    ("sqrt", "sqrt_f32"),
    ("rsqrt", "rsqrt_f32"),
    ("exp", "exp_f32"),
    ("expm1", "expm1_f32"),
    ("log", "log_f32"),
    ("log1p", "log1p_f32"),
    ("tanh", "tanh_f32"),
    ("erf", "erf_f32"),
    ("floor", "floor_f32"),
    ("ceil", "ceil_f32"),
    ("round", "round_f32"),
    ("trunc", "trunc_f32"),
    ("sigmoid", "sigmoid_f32"),
    ("relu", "relu_f32"),
    ("relu6", "relu6_f32"),
    ("gelu", "gelu_f32"),
    ("softplus", "softplus_f32"),
    ("elu", "elu_f32"),
    ("leaky_relu", "leaky_relu_f32"),
    ("hard_sigmoid", "hard_sigmoid_f32"),
    ("onnx.HardSwish", "hard_swish_f32"),
];

/// Rows of two operands, and their kernels.
pub(super) const BINARY: &[(&str, &str)] = &[
    ("add", "add_f32"),
    ("sub", "sub_f32"),
    ("mul", "mul_f32"),
    ("div", "div_f32"),
    ("pow", "pow_f32"),
    ("min", "min_f32"),
    ("max", "max_f32"),
    ("squared_difference", "squared_difference_f32"),
    ("eq", "eq_f32"),
    ("ne", "ne_f32"),
    ("lt", "lt_f32"),
    ("le", "le_f32"),
    ("gt", "gt_f32"),
    ("ge", "ge_f32"),
];

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
        true => "gelu_tanh_f32",
        false => name,
    };
    let n = out.metadata().n_elements()?;
    let (y, x) = (elements(&out), elements(call.input(0)?));
    Ok(queue(&call, out, done, move || {
        kernels::unary(name, &y, &x, n, attributes)
    }))
}

pub(super) fn binary(call: &OpCall<'_>) -> Result<OpResults, Error> {
    let name = name_in(BINARY, call.op.name)?;
    let (call, out, done) = begin(call)?;
    let to = dims(&out);
    let size = out
        .metadata()
        .len_bytes()?
        .checked_div(out.metadata().n_elements()?)
        .unwrap_or(1);
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
                let [whole_x, whole_y] = [scratch(&z, n)?, scratch(&z, n)?];
                let [x_steps, y_steps] = steps;
                rearrange(&whole_x, &x, &to, x_steps)?;
                rearrange(&whole_y, &y, &to, y_steps)?;
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
        kernels::binary(name, (&z, size), [(&x, x_steps), (&y, y_steps)], dims)
    };
    Ok(queue(&call, out, done, work))
}
