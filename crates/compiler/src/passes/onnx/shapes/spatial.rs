//! Windows over images: convolutions, pools, paddings.

use tfrt_ir::{Module, OpId};

use super::{Extent, Known, Shape, node};

/// How windows lie on the spatial dimensions.
struct Windows {
    kernel: Vec<i64>,
    strides: Vec<i64>,
    dilations: Vec<i64>,
    /// In front and behind.
    pads: Vec<(i64, i64)>,
    /// Padded so that the result has as many as the input has, divided by the stride.
    same: bool,
    rounds_up: bool,
}

impl Windows {
    fn new(module: &Module, op: OpId, kernel: Vec<i64>) -> Option<Windows> {
        let n = kernel.len();
        let list = |name: &str| node::ints(module, op, name).unwrap_or_else(|| vec![1; n]);
        let pads = node::ints(module, op, "pads").unwrap_or_else(|| vec![0; 2 * n]);
        let (strides, dilations) = (list("strides"), list("dilations"));
        if strides.len() != n || dilations.len() != n || pads.len() != 2 * n {
            return None;
        }
        let auto = node::text(module, op, "auto_pad");
        let explicit = auto.is_empty() || auto == "NOTSET";
        Some(Windows {
            kernel,
            strides,
            dilations,
            pads: (0..n)
                .map(|at| {
                    if explicit {
                        (pads[at], pads[at + n])
                    } else {
                        (0, 0)
                    }
                })
                .collect(),
            same: auto.starts_with("SAME"),
            rounds_up: node::int(module, op, "ceil_mode", 0) != 0,
        })
    }

    fn output(&self, at: usize, input: &Extent) -> Option<Extent> {
        let stride = self.strides[at];
        if self.same {
            return input
                .plus(&Extent::known(stride.checked_sub(1)?))?
                .divided_by(stride);
        }
        let reach = self.kernel[at]
            .checked_sub(1)?
            .checked_mul(self.dilations[at])?;
        let (front, behind) = self.pads[at];
        let around = front
            .checked_add(behind)?
            .checked_sub(reach)?
            .checked_sub(1)?;
        if self.rounds_up {
            // The last window may not begin behind the input, which depends on more than a rounding.
            let size = input.value()?;
            let first = size.checked_add(around)?;
            let mut steps = first
                .checked_add(stride.checked_sub(1)?)?
                .div_euclid(stride.max(1));
            if steps.checked_mul(stride)? >= size.checked_add(front)? {
                steps -= 1;
            }
            return Some(Extent::known(steps.checked_add(1)?));
        }
        let steps = input.plus(&Extent::known(around))?.divided_by(stride)?;
        steps.plus(&Extent::known(1))
    }

    fn outputs(&self, spatial: &[Option<Extent>]) -> Option<Shape> {
        if spatial.len() != self.kernel.len() {
            return None;
        }
        let of = |(at, extent): (usize, &Option<Extent>)| self.output(at, extent.as_ref()?);
        Some(spatial.iter().enumerate().map(of).collect())
    }
}

pub(super) fn convolved(module: &Module, op: OpId, input: &Known, filter: &Known) -> Option<Shape> {
    let filter = filter.shape.as_ref()?;
    let [filters, _, window @ ..] = &filter[..] else {
        return None;
    };
    let Some(shape) = &input.shape else {
        let mut shape = vec![None, filters.clone()];
        shape.extend(window.iter().map(|_| None));
        return Some(shape);
    };
    let kernel = window.iter().map(|extent| extent.as_ref()?.value());
    let windows = Windows::new(module, op, kernel.collect::<Option<_>>()?)?;
    let mut result = vec![shape.first()?.clone(), filters.clone()];
    result.extend(windows.outputs(shape.get(2..)?)?);
    Some(result)
}

pub(super) fn pooled(module: &Module, op: OpId, input: &Known) -> Option<Shape> {
    let shape = input.shape.as_ref()?;
    let windows = Windows::new(module, op, node::ints(module, op, "kernel_shape")?)?;
    let mut result = shape.get(..2)?.to_vec();
    result.extend(windows.outputs(shape.get(2..)?)?);
    Some(result)
}

pub(super) fn padded(shape: Option<&Shape>, pads: &Known, has_axes: bool) -> Option<Shape> {
    let (shape, pads) = (shape?, pads.values.as_ref()?);
    if has_axes || pads.len() != 2 * shape.len() {
        return Some(vec![None; shape.len()]);
    }
    let of = |(at, extent): (usize, &Option<Extent>)| {
        let around = pads[at].as_ref()?.plus(pads[at + shape.len()].as_ref()?)?;
        extent.as_ref()?.plus(&around)
    };
    Some(shape.iter().enumerate().map(of).collect())
}
