//! Rows that change the extents of tensors.

use tfrt_bef::DType;

use crate::def::{AttrDef, AttrKind, OpDef, Traits, ValueDef};
use crate::dim::{Dim, Dims};
use crate::fact::{Fact, product, unknown_dims};
use crate::infer::{Infer, InferCall, InferError, StaticInts, without};
use crate::names::onnx::dtype;
use crate::structure::dims_of;
use crate::windows::scaled;

pub(crate) const OPS: &[OpDef] = &[
    OpDef::new("onnx.AffineGrid", "For each place of an image of a given size the coordinates that an affine map sends it to.").inputs(&[ValueDef::var("theta", "T1"), ValueDef::set("size", &[DType::I64])]).results(&[ValueDef::var("grid", "T1").by_values()]).attrs(&[AttrDef::int("align_corners", 0)]).infer(Infer::By(affine_grid)),
    OpDef::new("onnx.CenterCropPad", "The middle of its operand, cut or padded with 0 to the extents of `shape`.").inputs(&[ValueDef::var("input_data", "T"), ValueDef::set("shape", &[DType::I32, DType::I64])]).results(&[ValueDef::var("output_data", "T").by_values()]).attrs(&[AttrDef::new("axes", AttrKind::Ints)]).infer(Infer::By(center_crop_pad)),
    OpDef::new("onnx.Col2Im", "The image whose blocks are the columns; where blocks overlap their elements are added.").inputs(&[ValueDef::var("input", "T"), ValueDef::set("image_shape", &[DType::I64]), ValueDef::set("block_shape", &[DType::I64])]).results(&[ValueDef::var("output", "T").by_values()]).attrs(&[AttrDef::new("dilations", AttrKind::Ints), AttrDef::new("pads", AttrKind::Ints), AttrDef::new("strides", AttrKind::Ints)]).infer(Infer::By(col2im)),
    OpDef::new("onnx.Compress", "The slices along `axis` for which the condition is true.").inputs(&[ValueDef::var("input", "T"), ValueDef::set("condition", &[DType::I1])]).results(&[ValueDef::var("output", "T").data_dependent()]).attrs(&[AttrDef::new("axis", AttrKind::Int)]).infer(Infer::By(compress)),
    OpDef::new("onnx.DepthToSpace", "Blocks of `blocksize` by `blocksize` places, made of channels.").inputs(&[ValueDef::var("input", "T")]).results(&[ValueDef::var("output", "T")]).attrs(&[AttrDef::new("blocksize", AttrKind::Int).required(), AttrDef::text("mode", "DCR")]).infer(Infer::By(depth_to_space)),
    OpDef::new("onnx.EyeLike", "Ones on a diagonal, zeros elsewhere, in the extents of its operand.").inputs(&[ValueDef::var("input", "T1")]).results(&[ValueDef::var("output", "T2")]).attrs(&[AttrDef::new("dtype", AttrKind::Int), AttrDef::int("k", 0)]).infer(Infer::By(eye_like)),
    OpDef::new("onnx.Flatten", "Its operand as a matrix: the dimensions before `axis` are the rows.").inputs(&[ValueDef::var("input", "T")]).results(&[ValueDef::var("output", "T")]).attrs(&[AttrDef::int("axis", 1)]).infer(Infer::By(flatten)).traits(Traits::VIEW),
    OpDef::new("onnx.ReverseSequence", "Its operand with the first elements of each sequence in reverse order, as many as are stated.").inputs(&[ValueDef::var("input", "T"), ValueDef::set("sequence_lens", &[DType::I64])]).results(&[ValueDef::var("Y", "T")]).attrs(&[AttrDef::int("batch_axis", 1), AttrDef::int("time_axis", 0)]),
    OpDef::new("onnx.Scatter", "The old name of `ScatterElements`.").inputs(&[ValueDef::var("data", "T"), ValueDef::var("indices", "Tind"), ValueDef::var("updates", "T")]).results(&[ValueDef::var("output", "T")]).attrs(&[AttrDef::int("axis", 0)]).traits(Traits::IN_PLACE),
    OpDef::new("onnx.Size", "The number of its operand's elements.").inputs(&[ValueDef::var("data", "T")]).results(&[ValueDef::set("size", &[DType::I64])]).infer(Infer::By(size)),
    OpDef::new("onnx.SpaceToDepth", "Blocks of `blocksize` by `blocksize` places as channels.").inputs(&[ValueDef::var("input", "T")]).results(&[ValueDef::var("output", "T")]).attrs(&[AttrDef::new("blocksize", AttrKind::Int).required()]).infer(Infer::By(space_to_depth)),
    OpDef::new("onnx.Squeeze", "Its operand without dimensions of 1: those stated, or all.").inputs(&[ValueDef::var("data", "T"), ValueDef::set("axes", &[DType::I64]).optional()]).results(&[ValueDef::var("squeezed", "T").by_values()]).infer(Infer::By(squeeze)).traits(Traits::VIEW),
    OpDef::new("onnx.TensorScatter", "A cache with `update` written into it from given positions on.").inputs(&[ValueDef::var("past_cache", "T"), ValueDef::var("update", "T"), ValueDef::set("write_indices", &[DType::I64]).optional()]).results(&[ValueDef::var("present_cache", "T")]).attrs(&[AttrDef::int("axis", -2), AttrDef::text("mode", "linear")]).infer(Infer::By(tensor_scatter)).traits(Traits::IN_PLACE),
    OpDef::new("onnx.Trilu", "The upper or lower triangle of each matrix; the rest is 0.").inputs(&[ValueDef::var("input", "T"), ValueDef::set("k", &[DType::I64]).optional()]).results(&[ValueDef::var("output", "T")]).attrs(&[AttrDef::int("upper", 1)]).traits(Traits::IN_PLACE),
    OpDef::new("onnx.Unsqueeze", "Its operand with dimensions of 1 where `axes` say.").inputs(&[ValueDef::var("data", "T"), ValueDef::set("axes", &[DType::I64])]).results(&[ValueDef::var("expanded", "T").by_values()]).infer(Infer::By(unsqueeze)).traits(Traits::VIEW),
    OpDef::new("onnx.Upsample", "The old name of `Resize`.").inputs(&[ValueDef::var("X", "T"), ValueDef::set("scales", &[DType::F32])]).results(&[ValueDef::var("Y", "T").by_values()]).attrs(&[AttrDef::text("mode", "nearest")]).infer(Infer::By(upsample)),
];

/// Returns the extents of an operand that must have this rank.
fn dims_of_rank(call: &InferCall<'_>, rank: usize) -> Result<Option<Dims>, InferError> {
    match &call.input(0).dims {
        Some(dims) if dims.len() != rank => {
            let found = dims.len();
            Err(call.error(format_args!(
                "expected an operand of {rank} dimensions, found {found}"
            )))
        }
        dims => Ok(dims.clone()),
    }
}

fn affine_grid(call: &mut InferCall<'_>) -> Result<(), InferError> {
    let dims = dims_of(call.input(1)).and_then(|size| {
        let n = size.len().checked_sub(2)?;
        let mut dims = Dims::from_iter([size[0].clone()]);
        dims.extend(size[2..].iter().cloned());
        dims.push(Dim::from(n));
        Some(dims)
    });
    let dtype = call.input(0).dtype;
    call.give(0, dtype, dims);
    Ok(())
}

/// The extents of the cache; those that it does not state are the update's, but along `axis`.
fn tensor_scatter(call: &mut InferCall<'_>) -> Result<(), InferError> {
    let (mut cache, update) = (call.input(0).clone(), call.input(1).clone());
    let ranks = cache.rank().zip(update.rank());
    if ranks.is_some_and(|(cache, update)| cache == update) {
        let axis = call.attrs.int("axis").unwrap_or(-2);
        let at = call.axis(axis, cache.rank().unwrap_or_default())?;
        let dims = cache.dims.iter_mut().flatten();
        let dims = dims.zip(update.dims.iter().flatten()).enumerate();
        for (place, (dim, updated)) in dims {
            if place != at
                && (dim.is_unknown() || dim.value().is_none() && updated.value().is_some())
            {
                dim.clone_from(updated);
            }
        }
    }
    call.give(0, cache.dtype, cache.dims);
    Ok(())
}

fn center_crop_pad(call: &mut InferCall<'_>) -> Result<(), InferError> {
    let x = call.input(0).clone();
    let wanted = dims_of(call.input(1));
    let axes = call.attrs.ints("axes");
    let dims = match (x.dims, wanted) {
        (Some(mut dims), Some(wanted)) => {
            let axes: Vec<i64> =
                axes.map_or_else(|| (0..).take(dims.len()).collect(), |axes| axes.to_vec());
            if axes.len() != wanted.len() {
                let (expected, found) = (axes.len(), wanted.len());
                return Err(call.error(format_args!("expected {expected} extents, found {found}")));
            }
            for (axis, extent) in axes.iter().zip(wanted) {
                let at = call.axis(*axis, dims.len())?;
                dims[at] = extent;
            }
            Some(dims)
        }
        (Some(dims), None) => Some(unknown_dims(dims.len())),
        (None, wanted) => wanted.filter(|_| axes.is_none()),
    };
    call.give(0, x.dtype, dims);
    Ok(())
}

fn col2im(call: &mut InferCall<'_>) -> Result<(), InferError> {
    let x = call.input(0).clone();
    let block = match &call.input(2).values {
        Some(values) => product(values),
        None => Dim::Unknown,
    };
    let dims = dims_of(call.input(1)).map(|image| {
        let mut dims = Dims::from_iter([x.dim(0), x.dim(1).exact_div(&block)]);
        dims.extend(image);
        dims
    });
    call.give(0, x.dtype, dims);
    Ok(())
}

fn compress(call: &mut InferCall<'_>) -> Result<(), InferError> {
    let x = call.input(0).clone();
    let dims = match (x.dims, call.attrs.int("axis")) {
        (_, None) => Some(unknown_dims(1)),
        (Some(mut dims), Some(axis)) => {
            let at = call.axis(axis, dims.len())?;
            dims[at] = Dim::Unknown;
            Some(dims)
        }
        (None, Some(_)) => None,
    };
    call.give(0, x.dtype, dims);
    Ok(())
}

fn depth_to_space(call: &mut InferCall<'_>) -> Result<(), InferError> {
    blocks(call, |[n, channels, height, width], block| {
        let area = block * block;
        [
            n.clone(),
            channels.exact_div(&area),
            height * block,
            width * block,
        ]
    })
}

fn space_to_depth(call: &mut InferCall<'_>) -> Result<(), InferError> {
    blocks(call, |[n, channels, height, width], block| {
        let area = block * block;
        [
            n.clone(),
            channels * &area,
            height.exact_div(block),
            width.exact_div(block),
        ]
    })
}

fn blocks(call: &mut InferCall<'_>, of: fn(&[Dim; 4], &Dim) -> [Dim; 4]) -> Result<(), InferError> {
    let block = call.attrs.int("blocksize").map_or(Dim::Unknown, Dim::Known);
    let dims = dims_of_rank(call, 4)?.map(|dims| {
        let list = [0, 1, 2, 3].map(|at| dims[at].clone());
        Dims::from_iter(of(&list, &block))
    });
    let dtype = call.input(0).dtype;
    call.give(0, dtype, dims);
    Ok(())
}

fn eye_like(call: &mut InferCall<'_>) -> Result<(), InferError> {
    let dtype = call.attrs.int("dtype").map_or(call.input(0).dtype, dtype);
    let dims = call.input(0).dims.clone();
    call.give(0, dtype, dims);
    Ok(())
}

fn flatten(call: &mut InferCall<'_>) -> Result<(), InferError> {
    let x = call.input(0);
    let axis = call.attrs.int("axis").unwrap_or(1);
    let dims = match &x.dims {
        Some(dims) => {
            // Counted from the end it is a dimension; from the start it may be behind all.
            let at = call.axis(axis, dims.len() + usize::from(axis >= 0))?;
            Dims::from_iter([product(&dims[..at]), product(&dims[at..])])
        }
        None => unknown_dims(2),
    };
    let dtype = x.dtype;
    call.give(0, dtype, Some(dims));
    Ok(())
}

fn size(call: &mut InferCall<'_>) -> Result<(), InferError> {
    let values = call
        .input(0)
        .dims
        .as_deref()
        .map(|dims| vec![product(dims)]);
    call.set(
        0,
        Fact {
            values,
            ..Fact::new(Some(DType::I64), Some(Dims::new()))
        },
    );
    Ok(())
}

fn squeeze(call: &mut InferCall<'_>) -> Result<(), InferError> {
    let x = call.input(0).clone();
    let dims = match (&x.dims, call.ints(1, "axes")) {
        (Some(dims), StaticInts::Known(axes)) => {
            let gone = call.axes(&axes, dims.len())?;
            let is_one = |at: &&usize| dims[**at].value().is_none_or(|extent| extent == 1);
            if let Some(at) = gone.iter().find(|at| !is_one(at)) {
                let extent = &dims[*at];
                return Err(call.error(format_args!(
                    "expected dimensions of extent 1, found {extent} at dimension {at}"
                )));
            }
            Some(without(dims, &gone, false))
        }
        (Some(dims), StaticInts::Absent) => {
            let sizes: Option<Vec<i64>> = dims.iter().map(Dim::value).collect();
            sizes.map(|sizes| {
                let gone: Vec<usize> = (0..dims.len()).filter(|at| sizes[*at] == 1).collect();
                without(dims, &gone, false)
            })
        }
        (Some(dims), StaticInts::Unknown) => match call.input(1).dims.as_deref() {
            Some([Dim::Known(n)]) => usize::try_from(*n)
                .ok()
                .and_then(|n| dims.len().checked_sub(n))
                .map(unknown_dims),
            _ => None,
        },
        (None, _) => None,
    };
    call.set(0, Fact { dims, ..x });
    Ok(())
}

fn unsqueeze(call: &mut InferCall<'_>) -> Result<(), InferError> {
    let x = call.input(0).clone();
    let dims = match (&x.dims, call.ints(1, "axes")) {
        (Some(dims), StaticInts::Known(axes)) => {
            let rank = dims.len() + axes.len();
            let new = call.axes(&axes, rank)?;
            let mut old = dims.iter();
            let one = |at: usize| match new.contains(&at) {
                true => Dim::Known(1),
                false => old.next().cloned().unwrap_or_default(),
            };
            Some((0..rank).map(one).collect())
        }
        (Some(dims), _) => match call.input(1).dims.as_deref() {
            Some([Dim::Known(n @ 0..=64)]) => usize::try_from(*n)
                .ok()
                .map(|n| unknown_dims(dims.len() + n)),
            _ => None,
        },
        (None, _) => None,
    };
    call.set(0, Fact { dims, ..x });
    Ok(())
}

fn upsample(call: &mut InferCall<'_>) -> Result<(), InferError> {
    let x = call.input(0);
    let dims = x.dims.as_ref().map(|dims| match &call.input(1).floats {
        Some(scales) if scales.len() == dims.len() => dims
            .iter()
            .zip(scales)
            .map(|(dim, scale)| scaled(dim, *scale))
            .collect(),
        _ => unknown_dims(dims.len()),
    });
    let dtype = x.dtype;
    call.give(0, dtype, dims);
    Ok(())
}
