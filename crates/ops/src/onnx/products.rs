//! Rows of products of matrices and windows that `graph` has in another form.

use std::collections::BTreeMap;
use std::slice;

use tfrt_bef::DType;

use crate::def::{AttrDef, AttrKind, ElementFamily, OpDef, ValueDef};
use crate::dim::{Dim, Dims};
use crate::einsum::{Equation, Label};
use crate::fact::Fact;
use crate::infer::{Infer, InferCall, InferError, broadcast};
use crate::products::{conv_dims, dot_dims};
use crate::quantized::{Count, expect_numbers};

pub(crate) const OPS: &[OpDef] = &[
    OpDef::new("onnx.CausalConvWithState", "A convolution along time that sees what was before, and keeps what it needs for the next call.").inputs(&[ValueDef::var("input", "T"), ValueDef::var("weight", "T"), ValueDef::var("bias", "T").optional(), ValueDef::var("past_state", "T").optional()]).results(&[ValueDef::var("output", "T"), ValueDef::var("present_state", "T")]).attrs(&[AttrDef::text("activation", "none")]).infer(Infer::By(causal_conv)),
    OpDef::new("onnx.ConvInteger", "A convolution of small integers, summed in 32 bits.").inputs(&[ValueDef::var("x", "T1"), ValueDef::var("w", "T2"), ValueDef::var("x_zero_point", "T1").optional(), ValueDef::var("w_zero_point", "T2").optional()]).results(&[ValueDef::set("y", &[DType::I32]).by_values()]).attrs(&[AttrDef::text("auto_pad", "NOTSET"), AttrDef::new("dilations", AttrKind::Ints), AttrDef::int("group", 1), AttrDef::new("kernel_shape", AttrKind::Ints), AttrDef::new("pads", AttrKind::Ints), AttrDef::new("strides", AttrKind::Ints)]).infer(Infer::By(conv_integer)),
    OpDef::new("onnx.DeformConv", "A convolution whose windows are moved by offsets of their own.").inputs(&[ValueDef::var("X", "T"), ValueDef::var("W", "T"), ValueDef::var("offset", "T"), ValueDef::var("B", "T").optional(), ValueDef::var("mask", "T").optional()]).results(&[ValueDef::var("Y", "T").by_values()]).attrs(&[AttrDef::new("dilations", AttrKind::Ints), AttrDef::int("group", 1), AttrDef::new("kernel_shape", AttrKind::Ints), AttrDef::int("offset_group", 1), AttrDef::new("pads", AttrKind::Ints), AttrDef::new("strides", AttrKind::Ints)]).infer(Infer::By(deform_conv)).elements(ElementFamily::Float),
    OpDef::new("onnx.Det", "The determinant of each square matrix.").inputs(&[ValueDef::var("X", "T")]).results(&[ValueDef::var("Y", "T")]).infer(Infer::By(det)).elements(ElementFamily::Float),
    OpDef::new("onnx.Einsum", "Sums of products along the axes that an equation names.").inputs(&[ValueDef::var("Inputs", "T").rest(1)]).results(&[ValueDef::var("Output", "T")]).attrs(&[AttrDef::new("equation", AttrKind::Text).required()]).infer(Infer::By(einsum)),
    OpDef::new("onnx.Gemm", "`alpha` times the product of two matrices, plus `beta` times a third operand.").inputs(&[ValueDef::var("A", "T"), ValueDef::var("B", "T"), ValueDef::var("C", "T").optional()]).results(&[ValueDef::var("Y", "T")]).attrs(&[AttrDef::float("alpha", 1.0), AttrDef::float("beta", 1.0), AttrDef::int("transA", 0), AttrDef::int("transB", 0)]).infer(Infer::By(gemm)).elements(ElementFamily::Real),
    OpDef::new("onnx.LinearAttention", "Attention with a state of fixed size in place of keys and values.").inputs(&[ValueDef::var("query", "T"), ValueDef::var("key", "T"), ValueDef::var("value", "T"), ValueDef::var("past_state", "S").optional(), ValueDef::var("decay", "T").optional(), ValueDef::var("beta", "T").optional()]).results(&[ValueDef::var("output", "T"), ValueDef::var("present_state", "S")]).attrs(&[AttrDef::int("chunk_size", 64), AttrDef::new("kv_num_heads", AttrKind::Int).required(), AttrDef::new("q_num_heads", AttrKind::Int).required(), AttrDef::float("scale", 0.0), AttrDef::text("update_rule", "gated_delta")]).infer(Infer::By(linear_attention)),
    OpDef::new("onnx.MatMulInteger", "A product of matrices of small integers, summed in 32 bits.").inputs(&[ValueDef::var("A", "T1"), ValueDef::var("B", "T2"), ValueDef::var("a_zero_point", "T1").optional(), ValueDef::var("b_zero_point", "T2").optional()]).results(&[ValueDef::set("Y", &[DType::I32])]).infer(Infer::By(mat_mul_integer)),
    OpDef::new("onnx.QLinearConv", "A convolution of quantised numbers.").inputs(&[ValueDef::var("x", "T1"), ValueDef::set("x_scale", &[DType::F32]), ValueDef::var("x_zero_point", "T1"), ValueDef::var("w", "T2"), ValueDef::set("w_scale", &[DType::F32]), ValueDef::var("w_zero_point", "T2"), ValueDef::set("y_scale", &[DType::F32]), ValueDef::var("y_zero_point", "T3"), ValueDef::set("B", &[DType::I32]).optional()]).results(&[ValueDef::var("y", "T3").by_values()]).attrs(&[AttrDef::text("auto_pad", "NOTSET"), AttrDef::new("dilations", AttrKind::Ints), AttrDef::int("group", 1), AttrDef::new("kernel_shape", AttrKind::Ints), AttrDef::new("pads", AttrKind::Ints), AttrDef::new("strides", AttrKind::Ints)]).infer(Infer::By(qlinear_conv)),
    OpDef::new("onnx.QLinearMatMul", "A product of matrices of quantised numbers.").inputs(&[ValueDef::var("a", "T1"), ValueDef::var("a_scale", "TS"), ValueDef::var("a_zero_point", "T1"), ValueDef::var("b", "T2"), ValueDef::var("b_scale", "TS"), ValueDef::var("b_zero_point", "T2"), ValueDef::var("y_scale", "TS"), ValueDef::var("y_zero_point", "T3")]).results(&[ValueDef::var("y", "T3")]).infer(Infer::By(qlinear_mat_mul)),
    OpDef::new("onnx.RotaryEmbedding", "Pairs of elements, turned by angles that grow with the position.").inputs(&[ValueDef::var("X", "T"), ValueDef::var("cos_cache", "T"), ValueDef::var("sin_cache", "T"), ValueDef::set("position_ids", &[DType::I64]).optional()]).results(&[ValueDef::var("Y", "T")]).attrs(&[AttrDef::int("interleaved", 0), AttrDef::new("num_heads", AttrKind::Int), AttrDef::int("rotary_embedding_dim", 0)]),
    OpDef::new("onnx.preview.FlexAttention", "Attention with functions of a model's own for scores and probabilities.").inputs(&[ValueDef::var("Q", "T1"), ValueDef::var("K", "T1"), ValueDef::var("V", "T1")]).results(&[ValueDef::var("Y", "T1")]).attrs(&[AttrDef::new("scale", AttrKind::Float), AttrDef::new("softmax_precision", AttrKind::Int)]).infer(Infer::By(flex_attention)).regions(&["score_mod", "prob_mod"]),
];

fn causal_conv(call: &mut InferCall<'_>) -> Result<(), InferError> {
    let (x, filter) = (call.input(0).clone(), call.input(1).clone());
    if let Some(rank) = x.rank() {
        call.expect_rank(3, rank)?;
    }
    let past = call.input(3).clone();
    // (batch, channels, length): the state has as many elements as the window sees of the past.
    let window = &filter.dim(2) - &Dim::Known(1);
    let state = x
        .dims
        .as_ref()
        .filter(|dims| dims.len() == 3)
        .map(|dims| Dims::from_iter([dims[0].clone(), dims[1].clone(), window]));
    call.give(0, x.dtype, x.dims);
    let state = call.agree(&past, &Fact::new(x.dtype, state))?;
    call.set(1, state);
    Ok(())
}

fn conv_integer(call: &mut InferCall<'_>) -> Result<(), InferError> {
    expect_numbers(call, &[2], Count::One)?;
    let filters = call.input(1).dim(0);
    expect_numbers(call, &[3], Count::OneOrEach(&filters, "filter"))?;
    let dims = conv_dims(call, call.input(0), call.input(1), "group")?;
    call.give(0, Some(DType::I32), dims);
    Ok(())
}

fn deform_conv(call: &mut InferCall<'_>) -> Result<(), InferError> {
    let dims = conv_dims(call, call.input(0), call.input(1), "group")?;
    let dtype = call.input(0).dtype;
    call.give(0, dtype, dims);
    Ok(())
}

fn det(call: &mut InferCall<'_>) -> Result<(), InferError> {
    let x = call.input(0);
    let dims = match x.dims.as_deref() {
        Some([batch @ .., _, _]) => Some(batch.into()),
        Some(dims) => {
            return Err(call.error(format_args!(
                "expected matrices, found {} dimensions",
                dims.len()
            )));
        }
        None => None,
    };
    let dtype = x.dtype;
    call.give(0, dtype, dims);
    Ok(())
}

/// Infers `Einsum`: each letter is one extent wherever it stands; three points stand for dimensions that are
/// broadcast.
fn einsum(call: &mut InferCall<'_>) -> Result<(), InferError> {
    let dtype = call.inputs.iter().flatten().find_map(|input| input.dtype);
    let dims = einsum_dims(call.inputs, call.attrs.text("equation")).transpose();
    let dims = dims.map_err(|error| call.error(error))?;
    call.give(0, dtype, dims);
    Ok(())
}

fn einsum_dims(inputs: &[Option<Fact>], equation: &str) -> Option<Result<Dims, InferError>> {
    let inputs = inputs.iter().map(|input| input.as_ref()?.dims.as_ref());
    let inputs: Vec<&Dims> = inputs.collect::<Option<_>>()?;
    let ranks: Vec<usize> = inputs.iter().map(|dims| dims.len()).collect();
    let equation = Equation::parse(equation, &ranks).ok()?;
    let mut known: BTreeMap<Label, Dim> = BTreeMap::new();
    for (labels, dims) in equation.operands.iter().zip(inputs) {
        for (label, dim) in labels.iter().zip(dims) {
            let Some(other) = known.get_mut(label) else {
                known.insert(*label, dim.clone());
                continue;
            };
            if let Label::Unnamed(_) = label {
                match broadcast(&[slice::from_ref(other), slice::from_ref(dim)]) {
                    Ok(both) => *other = both.into_iter().next().unwrap_or_default(),
                    Err(error) => return Some(Err(error)),
                }
                continue;
            }
            // An extent of 1 is broadcast.
            let is_number = dim.value().is_some_and(|value| value != 1);
            if other.is_unknown() || *other == Dim::Known(1) || is_number {
                other.clone_from(dim);
            }
        }
    }
    let result = equation
        .result
        .iter()
        .map(|label| known.get(label).cloned());
    result.collect::<Option<Dims>>().map(Ok)
}

fn gemm(call: &mut InferCall<'_>) -> Result<(), InferError> {
    call.expect_rank(0, 2)?;
    call.expect_rank(1, 2)?;
    let (a, b) = (call.input(0), call.input(1));
    let flips = ["transA", "transB"].map(|name| call.attrs.flag(name));
    // Extents that do not fit are an error.
    dot_dims(call, [a, b], flips)?;
    let dims = [a.dim(usize::from(flips[0])), b.dim(usize::from(!flips[1]))];
    let dtype = a.dtype.or(b.dtype);
    call.give(0, dtype, Some(dims.into_iter().collect()));
    Ok(())
}

/// Infers `LinearAttention`: queries, keys and values are (batch, length, heads * size), the state is (batch, heads,
/// size, size of values).
fn linear_attention(call: &mut InferCall<'_>) -> Result<(), InferError> {
    let (query, key, value, past) = (
        call.input(0).clone(),
        call.input(1).clone(),
        call.input(2).clone(),
        call.input(3).clone(),
    );
    call.expect_rank(3, 4)?;
    let heads = |name: &str| call.attrs.int(name).map_or(Dim::Unknown, Dim::Known);
    let (q_heads, kv_heads) = (heads("q_num_heads"), heads("kv_num_heads"));
    let v_size = value.dim(2).exact_div(&kv_heads);
    let k_size = key.dim(2).exact_div(&kv_heads);
    let dims = Dims::from_iter([query.dim(0), query.dim(1), &q_heads * &v_size]);
    let state = Dims::from_iter([query.dim(0), kv_heads, k_size, v_size]);
    call.give(0, query.dtype, Some(dims));
    let state = call.agree(&past, &Fact::new(query.dtype, Some(state)))?;
    call.set(1, state);
    Ok(())
}

fn mat_mul_integer(call: &mut InferCall<'_>) -> Result<(), InferError> {
    of_rows_and_columns(call, (0, &[2]), (1, &[3]))?;
    let dims = dot_dims(call, [call.input(0), call.input(1)], [false; 2])?;
    call.give(0, Some(DType::I32), dims);
    Ok(())
}

fn qlinear_conv(call: &mut InferCall<'_>) -> Result<(), InferError> {
    expect_numbers(call, &[1, 2, 6, 7], Count::One)?;
    let filters = call.input(3).dim(0);
    expect_numbers(call, &[4, 5], Count::OneOrEach(&filters, "filter"))?;
    expect_numbers(call, &[8], Count::Each(&filters, "filter"))?;
    let dims = conv_dims(call, call.input(0), call.input(3), "group")?;
    let dtype = call.input(7).dtype;
    call.give(0, dtype, dims);
    Ok(())
}

/// Expects scales and zero points of two matrices, which are operands, to have one number, or one for each row of the
/// left one, each column of the right one.
fn of_rows_and_columns(
    call: &InferCall<'_>,
    (left, of_left): (usize, &[usize]),
    (right, of_right): (usize, &[usize]),
) -> Result<(), InferError> {
    let (left, right) = (call.input(left), call.input(right));
    let rows = match left.rank() {
        Some(1) => Dim::Known(1),
        Some(rank) => left.dim(rank.saturating_sub(2)),
        None => Dim::Unknown,
    };
    let columns = match right.rank() {
        Some(1) => Dim::Known(1),
        Some(rank) => right.dim(rank.saturating_sub(1)),
        None => Dim::Unknown,
    };
    expect_numbers(call, of_left, Count::OneOrEach(&rows, "row"))?;
    expect_numbers(call, of_right, Count::OneOrEach(&columns, "column"))
}

fn qlinear_mat_mul(call: &mut InferCall<'_>) -> Result<(), InferError> {
    of_rows_and_columns(call, (0, &[1, 2]), (3, &[4, 5]))?;
    expect_numbers(call, &[6, 7], Count::One)?;
    let dims = dot_dims(call, [call.input(0), call.input(3)], [false; 2])?;
    let dtype = call.input(7).dtype;
    call.give(0, dtype, dims);
    Ok(())
}

/// Infers `FlexAttention`: queries, keys and values are (batch, heads, length, size).
fn flex_attention(call: &mut InferCall<'_>) -> Result<(), InferError> {
    let (query, value) = (call.input(0), call.input(2));
    let dims = query.dims.as_ref().filter(|dims| dims.len() == 4);
    let dims = dims.map(|dims| {
        Dims::from_iter([
            dims[0].clone(),
            dims[1].clone(),
            dims[2].clone(),
            value.dim(3),
        ])
    });
    let dtype = query.dtype;
    call.give(0, dtype, dims);
    Ok(())
}
