//! `Col2Im`: adds columns of patches to a picture.

use tfrt_host::Error;
use tfrt_tensor::Dims;
use tfrt_tensor::math::Family;
use tfrt_tensor::math::fold::{PatchAxis, fold_into};

use super::movement::sizes;
use super::{NodeCall, Operations, Outputs};

pub(super) const OPERATIONS: &Operations = &[("onnx.Col2Im", col2im)];

/// `Col2Im(x, image_shape, block_shape)`, attributes `dilations`, `pads`, `strides`.
fn col2im(node: &NodeCall<'_>) -> Result<Outputs, Error> {
    let x = node.inputs.dense(0)?;
    let found = node.inputs.extents(0, 3)?;
    let picture = sizes(node, &node.inputs.integers(1)?)?;
    let block = sizes(node, &node.inputs.integers(2)?)?;
    let rank = picture.len();
    let list = |name, n: usize, default: usize| -> Result<Dims, Error> {
        let list = match node.attributes.integers(name)? {
            Some(list) => sizes(node, list)?,
            None => Dims::from_elem(default, n),
        };
        match list.len() == n {
            true => Ok(list),
            false => Err(node
                .attributes
                .error(name, format_args!("is expected to have {n} numbers"))),
        }
    };
    if block.len() != rank {
        let message = format_args!("is expected to have {rank} extents, found {}", block.len());
        return Err(node.inputs.error(2, message));
    }
    let (strides, dilations) = (list("strides", rank, 1)?, list("dilations", rank, 1)?);
    let pads = list("pads", rank * 2, 0)?;
    let patches = |dimension: usize| PatchAxis {
        picture: picture[dimension],
        taps: block[dimension],
        dilation: dilations[dimension],
        stride: strides[dimension],
        pads: (pads[dimension], pads[rank + dimension]),
    };
    let patches: Vec<PatchAxis> = (0..rank).map(patches).collect();
    let n_taps = block
        .iter()
        .try_fold(1_usize, |product, taps| product.checked_mul(*taps));
    let n_taps = n_taps
        .filter(|n| *n > 0 && found[1].is_multiple_of(*n))
        .ok_or_else(|| {
            node.error(format_args!(
                "{} rows can't be channels of blocks {block:?}",
                found[1]
            ))
        })?;
    let mut shape = Dims::from_slice(&[found[0], found[1] / n_taps]);
    shape.extend_from_slice(&picture);
    let out = node.output(x.dtype(), &shape)?;
    node.inputs.expect(0, Family::Numbers)?;
    let chain = fold_into(node.execution, x, &patches, &out)?;
    Ok(Outputs::later(out, chain))
}
