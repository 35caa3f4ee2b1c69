//! Operations that move elements: transpose, slice, pad, repeat, concatenate, split.

use tfrt_host::Error;
use tfrt_tensor::math::elementwise::broadcast_extents;
use tfrt_tensor::math::layout_copy::{
    Edge, LayoutCopy, Slice, Triangle, centered, concat_extents, concat_into,
    reverse_sequences_into, triangle_into, update_slice,
};
use tfrt_tensor::{Dims, Tensor};

use super::opaque::{OpaqueTensors, extents, reshaped};
use super::{NodeCall, Operations, Outputs, cache};

pub(super) const OPERATIONS: &Operations = &[
    ("onnx.CenterCropPad", center_crop_pad),
    ("concat", concat),
    ("onnx.DepthToSpace", depth_to_space),
    ("broadcast", expand),
    ("pad", pad),
    ("reverse", reverse),
    ("onnx.ReverseSequence", reverse_sequence),
    ("slice", slice),
    ("onnx.SpaceToDepth", space_to_depth),
    ("split", split),
    ("tile", tile),
    ("transpose", transpose),
    ("onnx.Trilu", trilu),
    ("update_slice", updated),
];

/// `Transpose(x)`, attribute `perm`: reverses the dimensions if it is not stated.
fn transpose(node: &NodeCall<'_>) -> Result<Outputs, Error> {
    let x = node.inputs.tensor(0)?;
    let found = extents(x);
    let order: Vec<usize> = match node.attributes.integers("perm")? {
        Some(order) => node.dimensions(order, found.len())?,
        None => (0..found.len()).rev().collect(),
    };
    let movement = LayoutCopy::transpose(&found, &order)?;
    // Elements stay where they are unless dimensions that have several change places.
    let several = order.iter().filter(|dimension| found[**dimension] != 1);
    match several.is_sorted() {
        true => Ok(reshaped(x, movement.extents())?.into()),
        false => moved(node, x, &movement),
    }
}

/// `Expand(x, shape)`: broadcasts both to each other.
fn expand(node: &NodeCall<'_>) -> Result<Outputs, Error> {
    let x = node.inputs.tensor(0)?;
    let found = extents(x);
    let wanted = sizes(node, &node.inputs.integers(1)?)?;
    let shape = broadcast_extents(&[&found, &wanted]).map_err(|error| node.with_name(&error))?;
    moved(node, x, &LayoutCopy::broadcast(&found, &shape)?)
}

/// `Tile(x, repeats)`.
fn tile(node: &NodeCall<'_>) -> Result<Outputs, Error> {
    let x = node.inputs.tensor(0)?;
    let times = sizes(node, &node.inputs.integers(1)?)?;
    moved(node, x, &LayoutCopy::tile(&extents(x), &times)?)
}

/// `Concat(xs..)`, attribute `axis`.
fn concat(node: &NodeCall<'_>) -> Result<Outputs, Error> {
    let axis = node
        .attributes
        .integer("axis")?
        .ok_or_else(|| node.attributes.missing("axis"))?;
    let tensors: Vec<&Tensor> = (0..node.inputs.len().max(1))
        .map(|index| node.inputs.tensor(index))
        .collect::<Result<_, _>>()?;
    node.joined(&tensors, axis)
}

impl NodeCall<'_> {
    /// Concatenates tensors.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if they differ in type, or in another extent, or if there is none.
    pub(super) fn joined(&self, tensors: &[&Tensor], axis: i64) -> Result<Outputs, Error> {
        let shapes: Vec<Dims> = tensors.iter().map(|tensor| extents(tensor)).collect();
        let axis = self.axis(axis, shapes.first().map_or(0, |shape| shape.len()))?;
        let shapes: Vec<&[usize]> = shapes.iter().map(|shape| &shape[..]).collect();
        let shape = concat_extents(&shapes, axis).map_err(|error| self.error(error.message()))?;
        if let [first, more @ ..] = tensors
            && let Tensor::Growable(first) = first
            && first.axis() == axis
        {
            return cache::appended(self, first, more).map(Outputs::from);
        }
        let opaque = OpaqueTensors::new(self, tensors)?;
        let out = opaque.output(self, &shape)?;
        let parts: Vec<_> = opaque.tensors.iter().collect();
        let chain = concat_into(self.execution, &parts, axis, &out)?;
        opaque.outputs(out, chain)
    }
}

/// `split(x, sizes)`, attributes `axis`, `n`: parts of these extents, or as many as results, which are equal but for
/// the last.
fn split(node: &NodeCall<'_>) -> Result<Outputs, Error> {
    let x = node.inputs.tensor(0)?;
    let found = extents(x);
    let axis = node.axis(node.attributes.integer_or("axis", 0)?, found.len())?;
    let parts = match node.inputs.optional_integers(1)? {
        Some(parts) => sizes(node, &parts)?,
        None => match node.attributes.integers("sizes")? {
            Some(parts) => sizes(node, parts)?,
            None => {
                let n_parts = node.attributes.size_or("n", node.n_results)?;
                even_parts(node, found[axis], n_parts)?
            }
        },
    };
    if parts.len() < node.n_results {
        let message = format_args!(
            "{} results are asked for, there are {} parts",
            node.n_results,
            parts.len()
        );
        return Err(node.error(message));
    }
    let mut outputs = Outputs::new();
    for part in LayoutCopy::split(&found, axis, &parts)?.take(node.n_results) {
        outputs.push(node.moved(x, &part)?);
    }
    Ok(outputs)
}

/// Returns the extents of so many parts, which are equal but for the last, which may be smaller.
fn even_parts(node: &NodeCall<'_>, extent: usize, n_parts: usize) -> Result<Dims, Error> {
    // More would be empty.
    if n_parts == 0 || n_parts > extent.max(1) {
        return Err(node.error(format_args!(
            "an extent of {extent} can't be cut in {n_parts} parts"
        )));
    }
    let len = extent.div_ceil(n_parts);
    Ok((0..n_parts)
        .map(|part| len.min(extent.saturating_sub(part * len)))
        .collect())
}

/// `Slice(x, starts, ends, axes, steps)`; before version 10 all but `x` are attributes.
fn slice(node: &NodeCall<'_>) -> Result<Outputs, Error> {
    let x = node.inputs.tensor(0)?;
    let found = extents(x);
    let list = |index: usize, name: &str| -> Result<Option<Vec<i64>>, Error> {
        match node.inputs.optional_integers(index)? {
            Some(list) => Ok(Some(list)),
            None => Ok(node.attributes.integers(name)?.map(<[i64]>::to_vec)),
        }
    };
    let (Some(starts), Some(ends)) = (list(1, "starts")?, list(2, "ends")?) else {
        return Err(node.error("expected starts and ends, which are left out"));
    };
    let axes = match list(3, "axes")? {
        Some(axes) => node.dimensions(&axes, found.len())?,
        None => (0..starts.len()).collect(),
    };
    let steps = list(4, "steps")?.unwrap_or_else(|| vec![1; starts.len()]);
    let n = starts.len();
    if ends.len() != n || axes.len() != n || steps.len() != n || n > found.len() {
        return Err(node.error(format_args!(
            "expected starts, ends, axes and steps of as many dimensions, {} at most, found {n}, {}, {} and {}",
            found.len(),
            ends.len(),
            axes.len(),
            steps.len()
        )));
    }
    let mut slices = vec![Slice::ALL; found.len()];
    for (index, axis) in axes.iter().enumerate() {
        // Backwards, a start before the tensor is its first element; NumPy has it that there is nothing then.
        let is_before = i128::from(starts[index]) < -(found[*axis] as i128);
        let start = if steps[index] < 0 && is_before && found[*axis] > 0 {
            0
        } else {
            starts[index]
        };
        slices[*axis] = Slice::new(start, ends[index], steps[index]);
    }
    moved(node, x, &LayoutCopy::slice(&found, &slices)?)
}

/// `Pad(x, pads, value, axes)`, attribute `mode`; before version 11 `pads` and `value` are attributes.
fn pad(node: &NodeCall<'_>) -> Result<Outputs, Error> {
    let x = node.inputs.tensor(0)?;
    let found = extents(x);
    let pads = match node.inputs.optional_integers(1)? {
        Some(pads) => pads,
        None => node
            .attributes
            .integers("pads")?
            .ok_or_else(|| node.attributes.missing("pads"))?
            .to_vec(),
    };
    let axes = match node.inputs.optional_integers(3)? {
        Some(axes) => node.dimensions(&axes, found.len())?,
        None => (0..found.len()).collect(),
    };
    if pads.len() != axes.len() * 2 {
        return Err(node.error(format_args!(
            "expected what to put before and behind each of {} dimensions, found {pads:?}",
            axes.len()
        )));
    }
    let mut around = vec![(0, 0); found.len()];
    for (index, axis) in axes.iter().enumerate() {
        around[*axis] = (pads[index], pads[axes.len() + index]);
    }
    let edge = match node.attributes.string_or("mode", "constant")? {
        "constant" => Edge::Constant,
        "edge" => Edge::Repeat,
        "reflect" => Edge::Reflect,
        "wrap" => Edge::Wrap,
        other => {
            let message =
                format_args!("is expected to be constant, edge, reflect or wrap, found '{other}'");
            return Err(node.attributes.error("mode", message));
        }
    };
    let movement = LayoutCopy::pad(&found, &around, edge)?;
    let value = match node.inputs.optional_tensor(2)? {
        Some(value) => Some(value.clone()),
        None => match node.attributes.float("value")? {
            Some(value) => Some(node.constant(x.metadata().dtype, value.into())?.into()),
            None => None,
        },
    };
    let Some(value) = value.filter(|_| edge == Edge::Constant) else {
        return moved(node, x, &movement);
    };
    let opaque = OpaqueTensors::new(node, &[x, &value])?;
    let out = opaque.output(node, movement.extents())?;
    let [x, value] = &opaque.tensors[..] else {
        unreachable!("there are as many as were given");
    };
    if value.n_elements() != 1 {
        let found = value.n_elements();
        let message = format_args!("is expected to have one element, found {found}");
        return Err(node.inputs.error(2, message));
    }
    let chain = movement.run_around_into(node.execution, x, value, &out)?;
    opaque.outputs(out, chain)
}

/// `DepthToSpace(x)`, attributes `blocksize`, `mode`: channels become blocks of the image.
fn depth_to_space(node: &NodeCall<'_>) -> Result<Outputs, Error> {
    let (x, [batch, channels, height, width], block) = picture(node)?;
    let n_each = block
        .checked_mul(block)
        .filter(|n| channels.is_multiple_of(*n));
    let Some(n_each) = n_each else {
        let message =
            format_args!("{channels} channels can't be laid out in squares of {block} by {block}");
        return Err(node.error(message));
    };
    let rest = channels / n_each;
    let (seen, order) = match node.attributes.string_or("mode", "DCR")? {
        "DCR" => (
            [batch, block, block, rest, height, width],
            [0, 3, 4, 1, 5, 2],
        ),
        "CRD" => (
            [batch, rest, block, block, height, width],
            [0, 1, 4, 2, 5, 3],
        ),
        other => {
            let message = format_args!("is expected to be DCR or CRD, found '{other}'");
            return Err(node.attributes.error("mode", message));
        }
    };
    let shape = [
        Some(batch),
        Some(rest),
        height.checked_mul(block),
        width.checked_mul(block),
    ];
    turned(node, x, &seen, &order, shape)
}

/// `SpaceToDepth(x)`, attributes `blocksize`, `mode`: blocks of the image become channels.
fn space_to_depth(node: &NodeCall<'_>) -> Result<Outputs, Error> {
    let (x, [batch, channels, height, width], block) = picture(node)?;
    if !height.is_multiple_of(block) || !width.is_multiple_of(block) {
        let message =
            format_args!("{height} by {width} can't be cut in squares of {block} by {block}");
        return Err(node.error(message));
    }
    let (rows, columns) = (height / block, width / block);
    let seen = [batch, channels, rows, block, columns, block];
    let order = match node.attributes.string_or("mode", "DCR")? {
        "DCR" => [0, 3, 5, 1, 2, 4],
        "CRD" => [0, 1, 3, 5, 2, 4],
        other => {
            let message = format_args!("is expected to be DCR or CRD, found '{other}'");
            return Err(node.attributes.error("mode", message));
        }
    };
    let depth = channels
        .checked_mul(block)
        .and_then(|depth| depth.checked_mul(block));
    turned(
        node,
        x,
        &seen,
        &order,
        [Some(batch), depth, Some(rows), Some(columns)],
    )
}

/// Returns an image and the side of its blocks.
fn picture<'a>(node: &NodeCall<'a>) -> Result<(&'a Tensor, [usize; 4], usize), Error> {
    let x = node.inputs.tensor(0)?;
    let found = extents(x);
    let Ok(shape) = <[usize; 4]>::try_from(&found[..]) else {
        return Err(node.inputs.error(
            0,
            format_args!("is expected to have 4 dimensions, found {found:?}"),
        ));
    };
    match node.attributes.size_or("blocksize", 0)? {
        0 => Err(node
            .attributes
            .error("blocksize", "is expected to be above 0")),
        block => Ok((x, shape, block)),
    }
}

/// Reshapes a tensor, transposes it, and reshapes the result.
fn turned(
    node: &NodeCall<'_>,
    x: &Tensor,
    seen: &[usize],
    order: &[usize],
    shape: [Option<usize>; 4],
) -> Result<Outputs, Error> {
    let Some(shape) = shape.into_iter().collect::<Option<Dims>>() else {
        return Err(node.error("the result has an extent above the largest integer"));
    };
    let movement = LayoutCopy::transpose(seen, order)?;
    let opaque = OpaqueTensors::new(node, &[x])?;
    let words = opaque.tensors[0].reshape(tfrt_tensor::TensorShape::new(seen)?)?;
    let out = opaque.output(node, movement.extents())?;
    let chain = movement.run_into(node.execution, &words, &out)?;
    opaque.outputs(out.reshape(tfrt_tensor::TensorShape::new(&shape)?)?, chain)
}

/// `Trilu(x, k)`, attribute `upper`: a triangle of each matrix, zeros elsewhere.
fn trilu(node: &NodeCall<'_>) -> Result<Outputs, Error> {
    let x = node.inputs.tensor(0)?;
    let diagonal = if node.inputs.has(1) {
        node.inputs.integer(1)?
    } else {
        0
    };
    let triangle = match node.attributes.flag("upper", true)? {
        true => Triangle::Upper,
        false => Triangle::Lower,
    };
    let opaque = OpaqueTensors::new(node, &[x])?;
    let out = opaque.output(node, &extents(x))?;
    let chain = triangle_into(node.execution, &opaque.tensors[0], triangle, diagonal, &out)?;
    opaque.outputs(out, chain)
}

/// `reverse(x)`, attribute `axes`.
fn reverse(node: &NodeCall<'_>) -> Result<Outputs, Error> {
    let x = node.inputs.tensor(0)?;
    let axes = node.attributes.integers("axes")?;
    let axes = axes.ok_or_else(|| node.attributes.missing("axes"))?;
    let found = extents(x);
    let axes = node.dimensions(axes, found.len())?;
    moved(node, x, &LayoutCopy::reverse(&found, &axes)?)
}

/// `update_slice(x, update, starts)`: an update that goes beyond the end is moved back.
fn updated(node: &NodeCall<'_>) -> Result<Outputs, Error> {
    let (x, update) = (node.inputs.tensor(0)?, node.inputs.tensor(1)?);
    let starts = node.inputs.integers(2)?;
    let opaque = OpaqueTensors::new(node, &[x, update])?;
    let [x, update] = &opaque.tensors[..] else {
        unreachable!("there are as many as were given");
    };
    let out = update_slice(node.execution, x, update, &starts);
    let out = out.map_err(|error| node.with_name(&error))?;
    opaque.outputs(out, tfrt_host::AsyncValue::available(tfrt_host::Chain))
}

/// `ReverseSequence(x, lens)`, attributes `batch_axis`, `time_axis`.
fn reverse_sequence(node: &NodeCall<'_>) -> Result<Outputs, Error> {
    let x = node.inputs.tensor(0)?;
    let lens = node.inputs.integers(1)?;
    let rank = extents(x).len();
    let batch = node.axis(node.attributes.integer_or("batch_axis", 1)?, rank)?;
    let time = node.axis(node.attributes.integer_or("time_axis", 0)?, rank)?;
    let opaque = OpaqueTensors::new(node, &[x])?;
    let out = opaque.output(node, &extents(x))?;
    let chain = reverse_sequences_into(
        node.execution,
        &opaque.tensors[0],
        [batch, time],
        &lens,
        &out,
    )?;
    opaque.outputs(out, chain)
}

/// `CenterCropPad(x, shape)`, attribute `axes`: crops, or pads, by equal amounts at both ends.
fn center_crop_pad(node: &NodeCall<'_>) -> Result<Outputs, Error> {
    let x = node.inputs.tensor(0)?;
    let found = extents(x);
    let wanted = sizes(node, &node.inputs.integers(1)?)?;
    let axes = match node.attributes.integers("axes")? {
        Some(axes) => node.dimensions(axes, found.len())?,
        None => (0..found.len()).collect(),
    };
    if axes.len() != wanted.len() {
        let (n_axes, n_wanted) = (axes.len(), wanted.len());
        return Err(node.error(format_args!(
            "expected extents of {n_axes} dimensions, found {n_wanted}"
        )));
    }
    let mut pads = vec![(0, 0); found.len()];
    for (axis, extent) in axes.iter().zip(&wanted) {
        pads[*axis] = centered(found[*axis], *extent);
    }
    moved(node, x, &LayoutCopy::pad(&found, &pads, Edge::Constant)?)
}

fn moved(node: &NodeCall<'_>, x: &Tensor, movement: &LayoutCopy) -> Result<Outputs, Error> {
    let mut outputs = Outputs::new();
    outputs.push(node.moved(x, movement)?);
    Ok(outputs)
}

/// Returns integers as sizes.
///
/// # Errors
///
/// `InvalidArgument` if one is below 0.
pub(super) fn sizes(node: &NodeCall<'_>, list: &[i64]) -> Result<Dims, Error> {
    let sizes = list.iter().map(|size| usize::try_from(*size));
    let sizes: Result<Dims, _> = sizes.collect();
    sizes.map_err(|_| node.error(format_args!("expected sizes of 0 or more, found {list:?}")))
}
