//! Attributes of sliding windows: extents, strides, dilations, padding.

use tfrt_host::Error;
use tfrt_tensor::math::window::{Padding, Window};

use super::NodeCall;

/// The attributes of a convolution or pooling.
#[derive(Debug)]
pub(super) struct SpatialAttributes<'a> {
    pub(super) kernel: Vec<usize>,
    pub(super) strides: Vec<usize>,
    pub(super) dilations: Vec<usize>,
    pub(super) padding: AutoPad<'a>,
}

/// The padding of an image.
#[derive(Clone, Copy, Debug)]
pub(super) enum AutoPad<'a> {
    /// So many elements before all dimensions, then behind.
    Explicit(&'a [i64]),
    /// No padding.
    Valid,
    /// As much as gives a result for each stride; an odd element is added behind or before.
    Same { is_behind: bool },
}

impl<'a> SpatialAttributes<'a> {
    /// Reads the attributes for so many dimensions. The extents of windows are stated, or those of the filter.
    pub(super) fn of(
        node: &NodeCall<'a>,
        rank: usize,
        filter: Option<&[usize]>,
    ) -> Result<SpatialAttributes<'a>, Error> {
        let list = |name: &str, default: Option<usize>| -> Result<Vec<usize>, Error> {
            let Some(found) = node.attributes.integers(name)? else {
                return match default {
                    Some(default) => Ok(vec![default; rank]),
                    None => Err(node.attributes.missing(name)),
                };
            };
            let sizes: Result<Vec<usize>, _> =
                found.iter().map(|one| usize::try_from(*one)).collect();
            match sizes {
                Ok(sizes) if sizes.len() == rank && (name == "pads" || !sizes.contains(&0)) => {
                    Ok(sizes)
                }
                _ => {
                    let message =
                        format_args!("is expected to have {rank} numbers above 0, found {found:?}");
                    Err(node.attributes.error(name, message))
                }
            }
        };
        let kernel = match filter {
            Some(filter) if !node.attributes.has("kernel_shape") => filter.to_vec(),
            _ => list("kernel_shape", None)?,
        };
        if filter.is_some_and(|filter| filter != kernel) {
            let message = format_args!("is {kernel:?}, but the filter's windows are {filter:?}");
            return Err(node.attributes.error("kernel_shape", message));
        }
        if kernel.contains(&0) {
            return Err(node.error(format_args!("windows of extents {kernel:?} see nothing")));
        }
        let padding = match node.attributes.string_or("auto_pad", "NOTSET")? {
            "NOTSET" | "" => AutoPad::Explicit(node.attributes.integers("pads")?.unwrap_or(&[])),
            "VALID" => AutoPad::Valid,
            "SAME_UPPER" => AutoPad::Same { is_behind: true },
            "SAME_LOWER" => AutoPad::Same { is_behind: false },
            other => {
                let message = format_args!("is not recognized: '{}'", other.escape_debug());
                return Err(node.attributes.error("auto_pad", message));
            }
        };
        if let AutoPad::Explicit(pads) = padding
            && !(pads.is_empty() || pads.len() == 2 * rank)
        {
            let message = format_args!("is expected to have {} numbers, found {pads:?}", 2 * rank);
            return Err(node.attributes.error("pads", message));
        }
        Ok(SpatialAttributes {
            kernel,
            strides: list("strides", Some(1))?,
            dilations: list("dilations", Some(1))?,
            padding,
        })
    }

    /// Returns the window of a dimension, without padding.
    pub(super) fn bare(&self, index: usize) -> Window {
        Window {
            extent: self.kernel[index],
            stride: self.strides[index],
            dilation: self.dilations[index],
            padding: Padding::Valid,
        }
    }

    /// Returns the stated padding of a dimension.
    pub(super) fn stated(
        &self,
        node: &NodeCall<'_>,
        index: usize,
    ) -> Result<(usize, usize), Error> {
        let AutoPad::Explicit(pads) = self.padding else {
            return Ok((0, 0));
        };
        let at = |index: usize| match pads.get(index) {
            None => Ok(0),
            Some(pad) => usize::try_from(*pad).map_err(|_| {
                node.attributes.error(
                    "pads",
                    format_args!("is expected to be 0 or more, found {pads:?}"),
                )
            }),
        };
        Ok((at(index)?, at(index + self.kernel.len())?))
    }

    /// Returns the windows for an image of these extents.
    pub(super) fn windows(
        &self,
        node: &NodeCall<'_>,
        extents: &[usize],
    ) -> Result<Vec<Window>, Error> {
        let window = |(index, extent): (usize, &usize)| {
            let bare = self.bare(index);
            let padding = match self.padding {
                AutoPad::Valid => Padding::Valid,
                AutoPad::Same { is_behind: true } => Padding::Same,
                AutoPad::Same { is_behind: false } => {
                    let same = Window {
                        padding: Padding::Same,
                        ..bare
                    };
                    let (_, before, behind) = same
                        .output(*extent)
                        .map_err(|error| node.with_name(&error))?;
                    Padding::Explicit(behind, before)
                }
                AutoPad::Explicit(_) => {
                    let (before, behind) = self.stated(node, index)?;
                    Padding::Explicit(before, behind)
                }
            };
            Ok(Window { padding, ..bare })
        };
        extents.iter().enumerate().map(window).collect()
    }

    /// Returns windows as [`windows`](Self::windows) does, with padding behind so that the last ones lie partly
    /// outside if the attribute `ceil_mode` says so; and the stated padding behind each dimension.
    pub(super) fn pooled(
        &self,
        node: &NodeCall<'_>,
        extents: &[usize],
    ) -> Result<(Vec<Window>, Vec<usize>), Error> {
        let is_ceiled = node.attributes.flag("ceil_mode", false)?;
        let mut windows = self.windows(node, extents)?;
        let mut stated = Vec::with_capacity(windows.len());
        for (window, extent) in windows.iter_mut().zip(extents) {
            let (before, behind) = match window.padding {
                Padding::Valid => (0, 0),
                Padding::Explicit(before, behind) => (before, behind),
                Padding::Same => {
                    let laid = window.output(*extent);
                    let (_, before, behind) = laid.map_err(|error| node.with_name(&error))?;
                    (before, behind)
                }
            };
            stated.push(behind);
            if is_ceiled {
                let behind = behind_ceiled(window, *extent, (before, behind));
                let behind =
                    behind.ok_or_else(|| node.error("a window exceeds the largest integer"))?;
                window.padding = Padding::Explicit(before, behind);
            }
            window
                .output(*extent)
                .map_err(|error| node.with_name(&error))?;
        }
        Ok((windows, stated))
    }
}

/// Returns the padding behind an image with which its last window, as `ceil_mode` counts, lies in it; `None` if an integer
/// is too large.
///
/// A window counts that reaches out by less than a step, if it begins in the image or in the padding before it.
fn behind_ceiled(
    window: &Window,
    extent: usize,
    (before, behind): (usize, usize),
) -> Option<usize> {
    let covered = (window.extent - 1)
        .checked_mul(window.dilation)?
        .checked_add(1)?;
    let image = extent.checked_add(before)?;
    let room = image.checked_add(behind)?;
    let begin = match room.checked_sub(covered) {
        // Steps of no element are refused where windows are laid out.
        _ if window.stride == 0 => return Some(behind),
        Some(left) => left.div_ceil(window.stride).checked_mul(window.stride)?,
        None if covered - room < window.stride => 0,
        None => return Some(behind),
    };
    let missing = match begin < image {
        true => begin.checked_add(covered)?.saturating_sub(room),
        false => 0,
    };
    behind.checked_add(missing)
}
