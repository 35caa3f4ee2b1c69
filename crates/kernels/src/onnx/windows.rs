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
            let behind = match window.padding {
                Padding::Explicit(before, behind) if is_ceiled => {
                    window.padding = Padding::Explicit(before, behind + missing(window, *extent));
                    Some(behind)
                }
                Padding::Valid if is_ceiled => {
                    window.padding = Padding::Explicit(0, missing(window, *extent));
                    Some(0)
                }
                _ => None,
            };
            let (output, before, padded) = window
                .output(*extent)
                .map_err(|error| node.with_name(&error))?;
            stated.push(behind.unwrap_or(padded));
            let behind = padded;
            if !is_ceiled {
                continue;
            }
            // The next window counts if it begins in the image or in what is before it.
            let begin = output.checked_mul(window.stride);
            let covered = (window.extent - 1)
                .checked_mul(window.dilation)
                .and_then(|n| n.checked_add(1));
            let room = extent
                .checked_add(before)
                .and_then(|n| n.checked_add(behind));
            let (Some(begin), Some(covered), Some(room)) = (begin, covered, room) else {
                return Err(node.error("a window exceeds the largest integer"));
            };
            if begin < extent + before && begin + covered > room {
                let is_partial = (room - covered) % window.stride != 0;
                let more = if is_partial {
                    begin + covered - room
                } else {
                    0
                };
                window.padding = Padding::Explicit(before, behind + more);
            }
        }
        Ok((windows, stated))
    }
}

/// Returns the elements that an image lacks for its first window, which `ceil_mode` counts if they are fewer than a step;
/// 0 if there are more, or none.
fn missing(window: &Window, extent: usize) -> usize {
    let (before, behind) = match window.padding {
        Padding::Explicit(before, behind) => (before, behind),
        _ => (0, 0),
    };
    let room = extent.saturating_add(before).saturating_add(behind);
    let covered = (window.extent - 1)
        .saturating_mul(window.dilation)
        .saturating_add(1);
    let missing = covered.saturating_sub(room);
    // A window that begins behind the image does not count.
    match missing < window.stride && extent > 0 {
        true => missing,
        false => 0,
    }
}
