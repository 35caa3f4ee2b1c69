//! TransposedConvolution convolutions: each element of the input is multiplied by a whole window of the output.

use tfrt_host::Error;
use tfrt_tensor::Dims;
use tfrt_tensor::math::conv::TransposedConvolution;
use tfrt_tensor::math::conv::channels_first::transposed_extents;
use tfrt_tensor::math::window::{Padding, Window};

use super::{Filter, Form, convolved};
use crate::onnx::pool::image;
use crate::onnx::windows::{AutoPad, SpatialAttributes};
use crate::onnx::{NodeCall, Outputs};

pub(super) fn transposed(node: &NodeCall<'_>, filter: Filter<'_>) -> Result<Outputs, Error> {
    let extents = image(node)?;
    let filter_extents = filter.extents(node, extents.len())?;
    let transposed = described(node, &extents, &filter_extents)?;
    let output: Dims = transposed_extents(&transposed, &extents, &filter_extents)
        .map_err(|error| node.with_name(&error))?;
    convolved(node, Form::Transposed(transposed), filter, &output)
}

fn described(
    node: &NodeCall<'_>,
    extents: &[usize],
    filter: &[usize],
) -> Result<TransposedConvolution, Error> {
    let rank = extents.len() - 2;
    let spatial = SpatialAttributes::of(node, rank, Some(&filter[2..]))?;
    let sizes = |name: &str| -> Result<Option<Vec<usize>>, Error> {
        let Some(list) = node.attributes.integers(name)? else {
            return Ok(None);
        };
        let list: Result<Vec<usize>, _> = list.iter().map(|one| usize::try_from(*one)).collect();
        let list = list.ok().filter(|list| {
            list.len() == rank || (name == "output_shape" && list.len() == rank + 2)
        });
        let list = list.ok_or_else(|| {
            node.attributes.error(
                name,
                format_args!("is expected to have {rank} numbers of 0 or more"),
            )
        })?;
        Ok(Some(list[list.len() - rank..].to_vec()))
    };
    let mut more = sizes("output_padding")?.unwrap_or_else(|| vec![0; rank]);
    let wanted = sizes("output_shape")?;
    let mut windows = Vec::with_capacity(rank);
    for index in 0..rank {
        let (bare, input) = (spatial.bare(index), extents[index + 2]);
        let wanted = match (&wanted, spatial.padding) {
            (Some(wanted), _) => Some(wanted[index]),
            (None, AutoPad::Same { .. }) => input.checked_mul(bare.stride),
            _ => None,
        };
        let padding = match wanted {
            None => {
                let (before, behind) = spatial.stated(node, index)?;
                Padding::Explicit(before, behind)
            }
            Some(wanted) => {
                let covered = bare.dilation.checked_mul(bare.extent - 1);
                let all = input.saturating_sub(1).checked_mul(bare.stride);
                let all = all.zip(covered).and_then(|(all, covered)| {
                    all.checked_add(covered)?
                        .checked_add(1)?
                        .checked_add(more[index])
                });
                let all =
                    all.ok_or_else(|| node.error("the result exceeds the largest integer"))?;
                // What no window reaches lies behind.
                more[index] += wanted.saturating_sub(all);
                let cut = all.saturating_sub(wanted);
                match spatial.padding {
                    AutoPad::Same { is_behind: true } => Padding::Explicit(cut / 2, cut - cut / 2),
                    _ => Padding::Explicit(cut - cut / 2, cut / 2),
                }
            }
        };
        windows.push(Window { padding, ..bare });
    }
    Ok(TransposedConvolution {
        output_padding: more.into(),
        groups: node.attributes.size_or("groups", 1)?,
        ..TransposedConvolution::new(&windows)
    })
}
