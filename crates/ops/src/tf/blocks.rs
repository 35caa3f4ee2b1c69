//! Rows that move elements: in blocks, along axes, around edges, by indices and conditions.

use tfrt_bef::DType;

use super::images::has_channels_first;
use super::{dims_text, text};
use crate::Attrs;
use crate::def::{AttrDef, AttrKind, OpDef, ValueDef};
use crate::dim::{Dim, Dims};
use crate::infer::{Infer, InferCall, InferError, axis_of};

const X: ValueDef = ValueDef::var("x", "T");
const Y: ValueDef = ValueDef::var("y", "T");
const INDEX: &[DType] = &[DType::I32, DType::I64];
const BLOCK: AttrDef = AttrDef::new("block_size", AttrKind::Int).required();
const FORMAT: AttrDef = AttrDef::text("data_format", "NHWC");

pub(crate) const OPS: &[OpDef] = &[
    OpDef::new("tf.BatchToSpaceND", "Images that are put together of a batch: of each block of `block_shape` one element comes from each of so many parts of the batch; then `crops` are cut off.")
        .inputs(&[X, ValueDef::set("block_shape", INDEX), ValueDef::set("crops", INDEX)])
        .results(&[Y.by_values()])
        .infer(Infer::By(batch_to_space)),
    OpDef::new("tf.DepthToSpace", "Images whose channels become blocks of `block_size` by `block_size` elements.")
        .inputs(&[X])
        .attrs(&[BLOCK, FORMAT])
        .infer(Infer::By(depth_to_space)),
    OpDef::new("tf.GatherV2", "The slices of a tensor along an axis that `indices` number; each of a batch of `batch_dims` dimensions has indices of its own.")
        .inputs(&[X, ValueDef::set("indices", INDEX), ValueDef::set("axis", INDEX)])
        .results(&[Y.by_values()])
        .attrs(&[AttrDef::int("batch_dims", 0)])
        .infer(Infer::By(gather)),
    OpDef::new("tf.MirrorPad", "A tensor with its elements mirrored around it: at the outermost ones (`mode` REFLECT), or behind them (SYMMETRIC).")
        .inputs(&[X, ValueDef::set("paddings", INDEX)])
        .results(&[Y.by_values()])
        .attrs(&[AttrDef::new("mode", AttrKind::Text).required()])
        .infer(Infer::By(mirror_pad)),
    OpDef::new("tf.Roll", "The elements moved by `shift` along axes; those that leave at one end come in at the other.")
        .inputs(&[X, ValueDef::set("shift", INDEX), ValueDef::set("axis", INDEX)])
        .infer(Infer::By(roll)),
    OpDef::new("tf.Select", "An element of the second operand where the condition is true, of the third elsewhere; a vector of conditions chooses rows.")
        .inputs(&[ValueDef::set("condition", &[DType::I1]), X, ValueDef::var("y", "T")])
        .results(&[ValueDef::var("z", "T")])
        .infer(Infer::By(select)),
    OpDef::new("tf.SpaceToBatchND", "A batch of images that are cut up: after `paddings` of zeros each element of a block of `block_shape` goes to another part of the batch.")
        .inputs(&[X, ValueDef::set("block_shape", INDEX), ValueDef::set("paddings", INDEX)])
        .results(&[Y.by_values()])
        .infer(Infer::By(space_to_batch)),
    OpDef::new("tf.SpaceToDepth", "Images whose blocks of `block_size` by `block_size` elements become channels.")
        .inputs(&[X])
        .attrs(&[BLOCK, FORMAT])
        .infer(Infer::By(space_to_depth)),
];

/// Returns the order of the dimensions of images: batch, height, width, channels.
fn image_order(call: &InferCall<'_>) -> Result<[usize; 4], InferError> {
    match has_channels_first(&call.attrs).map_err(|error| call.error(error))? {
        true => Ok([0, 2, 3, 1]),
        false => Ok([0, 1, 2, 3]),
    }
}

/// Returns batch, height, width and channels of images, and the size of blocks.
fn blocks(call: &InferCall<'_>, order: [usize; 4]) -> Result<([Dim; 4], i64), InferError> {
    let size = call.attrs.int("block_size").unwrap_or(0);
    // A square that fits the integers.
    if !(2..1 << 31).contains(&size) {
        return Err(call.error(format_args!(
            "expected attribute 'block_size' to be 2 or more, found {size}"
        )));
    }
    call.expect_rank(0, 4)?;
    let x = call.input(0);
    Ok((order.map(|at| x.dim(at)), size))
}

fn give_image(call: &mut InferCall<'_>, order: [usize; 4], extents: [Dim; 4]) {
    let mut dims: Dims = extents.iter().cloned().collect();
    for (at, extent) in order.into_iter().zip(extents) {
        dims[at] = extent;
    }
    let dtype = call.input(0).dtype;
    call.give(0, dtype, Some(dims));
}

/// Returns an extent divided, if it can be.
fn divided(call: &InferCall<'_>, what: &str, extent: &Dim, by: i64) -> Result<Dim, InferError> {
    match extent.value() {
        Some(extent) if by < 1 || extent % by != 0 => Err(call.error(format_args!(
            "expected {what} that {by} divides, found {extent}"
        ))),
        Some(extent) => Ok(Dim::Known(extent / by)),
        None => Ok(Dim::Unknown),
    }
}

fn depth_to_space(call: &mut InferCall<'_>) -> Result<(), InferError> {
    let order = image_order(call)?;
    let ([n, height, width, channels], size) = blocks(call, order)?;
    let channels = divided(call, "channels", &channels, size * size)?;
    let size = Dim::Known(size);
    give_image(call, order, [n, &height * &size, &width * &size, channels]);
    Ok(())
}

fn space_to_depth(call: &mut InferCall<'_>) -> Result<(), InferError> {
    let order = image_order(call)?;
    let ([n, height, width, channels], size) = blocks(call, order)?;
    let height = divided(call, "a height", &height, size)?;
    let width = divided(call, "a width", &width, size)?;
    let all = Dim::Known(size * size);
    give_image(call, order, [n, height, width, &channels * &all]);
    Ok(())
}

/// The sizes of blocks, and pairs of what is padded or cropped.
type Blocks = (Vec<i64>, Vec<i64>);

/// Returns the sizes of blocks and the padding or cropping, if both are known.
///
/// Shapes are checked even if the values are not known yet: the rank of a scalar is its whole shape, so that inference does
/// not come again when they are.
fn stated_blocks(call: &InferCall<'_>) -> Result<Option<Blocks>, InferError> {
    call.expect_rank(1, 1)?;
    call.expect_rank(2, 2)?;
    let n_blocks = call.input(1).dim(0).value();
    let n_pairs = call.input(2).dim(0).value();
    let n_each = call.input(2).dim(1).value();
    if n_each.is_some_and(|n| n != 2) || n_blocks.zip(n_pairs).is_some_and(|(n, pairs)| n != pairs)
    {
        let (sizes, found) = (text(call.input(1)), text(call.input(2)));
        return Err(call.error(format_args!(
            "expected a pair of integers for each size of a block of {sizes}, found {found}"
        )));
    }
    let n_blocks = n_blocks.or(n_pairs).unwrap_or(0);
    if let Some(rank) = call.input(0).rank()
        && i64::try_from(rank).is_ok_and(|rank| rank <= n_blocks)
    {
        let found = text(call.input(0));
        return Err(call.error(format_args!(
            "expected a batch with {n_blocks} dimensions or more, found {found}"
        )));
    }
    let (Some(sizes), Some(around)) = (call.input(1).numbers(), call.input(2).numbers()) else {
        return Ok(None);
    };
    if let Some(size) = sizes.iter().find(|size| **size < 1) {
        return Err(call.error(format_args!(
            "expected blocks of 1 or more elements, found {size}"
        )));
    }
    if let Some(found) = around.iter().find(|size| **size < 0) {
        return Err(call.error(format_args!("expected no negative integers, found {found}")));
    }
    Ok(Some((sizes, around)))
}

/// Returns the product of sizes of blocks; the largest integer if it exceeds that.
fn n_parts(sizes: &[i64]) -> i64 {
    sizes
        .iter()
        .fold(1, |product: i64, size| product.saturating_mul(*size))
}

fn space_to_batch(call: &mut InferCall<'_>) -> Result<(), InferError> {
    let x = call.input(0).clone();
    let Some((sizes, around)) = stated_blocks(call)? else {
        return give_rank(call);
    };
    let Some(mut dims) = x.dims else {
        call.give(0, x.dtype, None);
        return Ok(());
    };
    dims[0] = &dims[0] * &Dim::Known(n_parts(&sizes));
    for (at, (size, pair)) in sizes.iter().zip(around.chunks_exact(2)).enumerate() {
        let padded = &(&dims[at + 1] + &Dim::Known(pair[0])) + &Dim::Known(pair[1]);
        dims[at + 1] = divided(call, "a padded extent", &padded, *size)?;
    }
    call.give(0, x.dtype, Some(dims));
    Ok(())
}

fn batch_to_space(call: &mut InferCall<'_>) -> Result<(), InferError> {
    let x = call.input(0).clone();
    let Some((sizes, around)) = stated_blocks(call)? else {
        return give_rank(call);
    };
    let Some(mut dims) = x.dims else {
        call.give(0, x.dtype, None);
        return Ok(());
    };
    dims[0] = divided(call, "a batch", &dims[0], n_parts(&sizes))?;
    for (at, (size, pair)) in sizes.iter().zip(around.chunks_exact(2)).enumerate() {
        let whole = &dims[at + 1] * &Dim::Known(*size);
        let left = &(&whole - &Dim::Known(pair[0])) - &Dim::Known(pair[1]);
        if let Some(left) = left.value().filter(|left| *left < 0) {
            return Err(call.error(format_args!(
                "expected to cut off no more than there is, found {left} left in dimension {}",
                at + 1
            )));
        }
        dims[at + 1] = left;
    }
    call.give(0, x.dtype, Some(dims));
    Ok(())
}

/// Infers a result with as many dimensions as the first operand.
fn give_rank(call: &mut InferCall<'_>) -> Result<(), InferError> {
    let x = call.input(0);
    let (dtype, dims) = (x.dtype, x.rank().map(crate::fact::unknown_dims));
    call.give(0, dtype, dims);
    Ok(())
}

fn mirror_pad(call: &mut InferCall<'_>) -> Result<(), InferError> {
    let x = call.input(0).clone();
    let inner = mirrored_edge(&call.attrs).map_err(|error| call.error(error))?;
    call.expect_rank(1, 2)?;
    let (Some(dims), Some(pads)) = (&x.dims, call.input(1).numbers()) else {
        return give_rank(call);
    };
    let rank = dims.len();
    if pads.len() != 2 * rank {
        let found = text(call.input(1));
        return Err(call.error(format_args!(
            "expected a pair of integers for each of {rank} dimensions, found {found}"
        )));
    }
    let mut padded = dims.clone();
    for (at, pair) in pads.chunks_exact(2).enumerate() {
        let most = dims[at].value().map_or(i64::MAX, |extent| extent - inner);
        if let Some(found) = pair.iter().find(|pad| **pad < 0 || **pad > most) {
            return Err(call.error(format_args!(
                "expected to put 0 to {} elements around dimension {at}, found {found}",
                most.max(0)
            )));
        }
        padded[at] = &(&dims[at] + &Dim::Known(pair[0])) + &Dim::Known(pair[1]);
    }
    call.give(0, x.dtype, Some(padded));
    Ok(())
}

/// Returns how many of the outermost elements a mirror leaves out, by the attribute `mode`: 1 of REFLECT, 0 of SYMMETRIC.
///
/// # Errors
///
/// If it is neither. What is said does not name the operation.
pub fn mirrored_edge(attrs: &Attrs<'_>) -> Result<i64, InferError> {
    match attrs.text("mode") {
        "REFLECT" => Ok(1),
        "SYMMETRIC" => Ok(0),
        found => Err(InferError::new(format!(
            "expected attribute 'mode' to be REFLECT or SYMMETRIC, found '{}'",
            found.escape_debug()
        ))),
    }
}

fn roll(call: &mut InferCall<'_>) -> Result<(), InferError> {
    let x = call.input(0).clone();
    let (shift, axes) = (call.input(1), call.input(2));
    for list in [shift, axes] {
        if list.rank().is_some_and(|rank| rank > 1) {
            let found = text(list);
            return Err(call.error(format_args!(
                "expected integers in a vector, or one, found {found}"
            )));
        }
    }
    if let (Some(shifts), Some(axes)) = (shift.n_elements().value(), axes.n_elements().value())
        && shifts != axes
    {
        return Err(call.error(format_args!(
            "expected a shift for each axis, found {shifts} for {axes}"
        )));
    }
    if let (Some(dims), Some(axes)) = (&x.dims, axes.numbers()) {
        axes.iter()
            .try_for_each(|axis| call.axis(*axis, dims.len()).map(drop))?;
    }
    if x.rank() == Some(0) {
        return Err(call.error("expected one dimension or more, found []"));
    }
    call.give(0, x.dtype, x.dims);
    Ok(())
}

fn select(call: &mut InferCall<'_>) -> Result<(), InferError> {
    let condition = call.input(0);
    let agreed = call.agree(call.input(1), call.input(2))?;
    if let (Some(own), Some(dims)) = (&condition.dims, &agreed.dims) {
        let is_list = own.len() == 1 && !dims.is_empty();
        let wanted = if is_list { &dims[..1] } else { &dims[..] };
        let differs = |(own, other): (&Dim, &Dim)| {
            let both = own.value().zip(other.value());
            both.is_some_and(|(own, other)| own != other)
        };
        let fits = own.len() == wanted.len() && !own.iter().zip(wanted).any(differs);
        if !fits && !own.is_empty() {
            let (own, wanted) = (dims_text(own), dims_text(dims));
            return Err(call.error(format_args!(
                "expected a condition for all, each row or each element of {wanted}, found {own}"
            )));
        }
    }
    call.set(0, agreed);
    Ok(())
}

/// Returns the axis of a `tf.GatherV2`, and the number of its batch dimensions.
///
/// # Errors
///
/// If there are no such dimensions. What is said does not name the operation.
pub fn gathered(
    attrs: &Attrs<'_>,
    axis: i64,
    rank: usize,
    indices_rank: usize,
) -> Result<[usize; 2], InferError> {
    let at = axis_of(axis, rank).ok_or_else(|| {
        InferError::new(format!(
            "expected an axis of {rank} dimensions, found {axis}"
        ))
    })?;
    let batch = attrs.int("batch_dims").unwrap_or(0);
    let own = i64::try_from(indices_rank).unwrap_or(i64::MAX);
    let from_start = if batch < 0 {
        batch.saturating_add(own)
    } else {
        batch
    };
    match usize::try_from(from_start) {
        Ok(n) if n <= indices_rank && n <= at => Ok([at, n]),
        _ => Err(InferError::new(format!(
            "expected attribute 'batch_dims' to be no more than axis {at} and the {indices_rank} dimensions of \
             indices, found {batch}"
        ))),
    }
}

fn gather(call: &mut InferCall<'_>) -> Result<(), InferError> {
    let (x, indices) = (call.input(0).clone(), call.input(1).clone());
    let one = call.input(2).n_elements().value();
    if let Some(n) = one.filter(|n| *n != 1) {
        return Err(call.error(format_args!("expected one axis, found {n}")));
    }
    let (Some(dims), Some(own)) = (&x.dims, &indices.dims) else {
        call.give(0, x.dtype, None);
        return Ok(());
    };
    let Some(axis) = call.input(2).number() else {
        let batch = call.attrs.int("batch_dims").unwrap_or(0);
        let n = if batch < 0 {
            own.len()
                .checked_sub(usize::try_from(batch.unsigned_abs()).unwrap_or(usize::MAX))
        } else {
            usize::try_from(batch).ok()
        };
        let rank = n.and_then(|n| (dims.len() + own.len()).checked_sub(n + 1));
        call.give(0, x.dtype, rank.map(crate::fact::unknown_dims));
        return Ok(());
    };
    let [at, n_batch] =
        gathered(&call.attrs, axis, dims.len(), own.len()).map_err(|error| call.error(error))?;
    let mut result: Dims = dims[..at].iter().cloned().collect();
    for (index, extent) in own[..n_batch].iter().enumerate() {
        match (result[index].value(), extent.value()) {
            (Some(found), Some(other)) if found != other => {
                return Err(call.error(format_args!(
                    "expected batches that agree, found {found} and {other} in dimension {index}"
                )));
            }
            (None, Some(_)) => result[index] = extent.clone(),
            _ => (),
        }
    }
    result.extend(own[n_batch..].iter().cloned());
    result.extend(dims[at + 1..].iter().cloned());
    // Of a list its integers are followed.
    let values = match (x.values.as_deref(), indices.numbers(), &own[..]) {
        (Some(all), Some(places), [] | [_]) if dims.len() == 1 && n_batch == 0 => {
            let of = |place: &i64| all.get(usize::try_from(*place).ok()?).cloned();
            places.iter().map(of).collect()
        }
        _ => None,
    };
    call.set(
        0,
        crate::fact::Fact {
            values,
            ..crate::fact::Fact::new(x.dtype, Some(result))
        },
    );
    Ok(())
}
