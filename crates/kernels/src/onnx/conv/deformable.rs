//! `DeformConv`: a convolution in which each element of a window is moved by an offset of its own.

use tfrt_host::Error;
use tfrt_tensor::Dims;
use tfrt_tensor::math::Family;
use tfrt_tensor::math::conv::deformed::{DeformableConvolution, deformed_into};
use tfrt_tensor::math::window::Window;

use crate::onnx::pool::image;
use crate::onnx::windows::SpatialAttributes;
use crate::onnx::{NodeCall, Outputs};

pub(super) fn deformed(node: &NodeCall<'_>) -> Result<Outputs, Error> {
    let (x, filter, offsets) = (
        node.inputs.dense(0)?,
        node.inputs.dense(1)?,
        node.inputs.dense(2)?,
    );
    let (bias, mask) = (
        node.inputs.optional_dense(3)?,
        node.inputs.optional_dense(4)?,
    );
    let (dtype, extents) = (x.dtype(), image(node)?);
    let filter_extents = node.inputs.extents(1, extents.len())?;
    let spatial = SpatialAttributes::of(node, extents.len() - 2, Some(&filter_extents[2..]))?;
    let windows: Vec<Window> = spatial.windows(node, &extents[2..])?;
    let deformed = DeformableConvolution {
        windows,
        groups: node.attributes.size_or("group", 1)?,
        offset_groups: node.attributes.size_or("offset_group", 1)?,
    };
    let output: Dims = deformed
        .output_extents(&extents, &filter_extents)
        .map_err(|error| node.with_name(&error))?;
    let out = node.output(dtype, &output)?;
    node.inputs.expect(0, Family::Floats)?;
    let operands = [x, filter, offsets];
    let chain = deformed_into(node.execution, &deformed, operands, [bias, mask], &out);
    let chain = chain.map_err(|error| node.with_name(&error))?;
    Ok(Outputs::later(out, chain))
}
