//! Pooling and convolutions: descriptors, and calls whose sizes are checked.

use tfrt_host::{Chain, Error};
use tfrt_tensor::Tensor;

use super::buffers::Buffer;
use super::count;
use super::linear::call;
use super::objects::Stream;
use crate::driver::DevicePointer;
use crate::driver::library::{ConvolutionPart, Extents, LibraryCall, Number, PoolKind, Windows};

/// Returns the type that the library has the number for.
pub(super) fn number(code: i64) -> Result<Number, Error> {
    match code {
        0 => Ok(Number::F32),
        1 => Ok(Number::F64),
        2 => Ok(Number::F16),
        3..=8 => Err(Error::invalid_argument(format!(
            "expected a tensor of f32, f64 or f16, found cudnnDataType {code}"
        ))),
        _ => Err(Error::invalid_argument(format!(
            "Invalid cudnnDataType value: {code}"
        ))),
    }
}

fn sizes(what: &str, all: &[i64], least: i64) -> Result<Vec<usize>, Error> {
    let most = i64::from(i32::MAX);
    let each = all.iter().map(|n| match *n < least || *n > most {
        true => Err(Error::invalid_argument(format!(
            "expected {what} of {least} or more, found {n}"
        ))),
        false => count(what, *n),
    });
    each.collect()
}

/// Returns integers of an attribute as those that most calls take.
pub(super) fn longs(all: &[i32]) -> Vec<i64> {
    all.iter().map(|n| i64::from(*n)).collect()
}

/// Returns the elements of a tensor of one dimension on the host.
pub(super) fn list(what: &str, tensor: &Tensor) -> Result<Vec<i64>, Error> {
    let dense = tensor.as_dense()?;
    if dense.metadata().shape.rank() != 1 {
        let metadata = dense.metadata();
        let message = format!("expected {what} as a tensor of one dimension, found {metadata}");
        return Err(Error::invalid_argument(message));
    }
    let reading = dense.read()?;
    Ok(longs(reading.elements::<i32>()?))
}

/// Returns what a tensor is like.
pub(super) fn extents(number: Number, dims: &[i64], strides: &[i64]) -> Result<Extents, Error> {
    if dims.len() != strides.len() || !(3..=8).contains(&dims.len()) {
        let (n, n_strides) = (dims.len(), strides.len());
        let message =
            format!("expected 3 to 8 dimensions and as many strides, found {n} and {n_strides}");
        return Err(Error::invalid_argument(message));
    }
    let extents = Extents {
        number,
        dims: sizes("dimensions", dims, 1)?,
        strides: sizes("strides", strides, 0)?,
    };
    let n = extents
        .dims
        .iter()
        .try_fold(number.len_bytes(), |n, dim| n.checked_mul(*dim));
    match n.zip(extents.span()) {
        Some((n, span)) if n <= span => Ok(extents),
        _ => Err(Error::invalid_argument(format!(
            "expected strides by which elements lie apart, found {strides:?} of dimensions {dims:?}"
        ))),
    }
}

/// Returns what a filter is like whose elements lie without gaps.
pub(super) fn filter(number: Number, layout: i32, dims: &[i64]) -> Result<Extents, Error> {
    let found = sizes("dimensions", dims, 1)?;
    let mut order: Vec<usize> = (0..found.len()).collect();
    match layout {
        0 => (),
        // Channels lie behind space.
        1 if order.len() > 2 => {
            let channels = order.remove(1);
            order.push(channels);
        }
        _ => {
            return Err(Error::invalid_argument(format!(
                "Invalid cudnnTensorFormat value: {layout}"
            )));
        }
    }
    let mut strides = vec![0; found.len()];
    let mut next = 1_usize;
    for axis in order.into_iter().rev() {
        strides[axis] = i64::try_from(next).unwrap_or(i64::MAX);
        next = next.saturating_mul(found[axis]);
    }
    extents(number, dims, &strides)
}

/// A tensor of a call, and its buffer.
pub(super) type Given<'b> = (&'b Extents, &'b Buffer);

fn checked(what: &str, (extents, buffer): Given<'_>) -> Result<(Extents, DevicePointer), Error> {
    buffer.expect_len(what, extents.span())?;
    Ok((extents.clone(), DevicePointer(0)))
}

/// A pooling.
#[derive(Clone)]
pub(super) struct Pooling {
    kind: PoolKind,
    keeps_nan: bool,
    window: Vec<usize>,
    windows: Windows,
}

impl Pooling {
    pub(super) fn new(
        mode: u32,
        nan: u32,
        window: &[i64],
        paddings: &[i64],
        strides: &[i64],
    ) -> Result<Pooling, Error> {
        let kind = match mode {
            0 | 3 => PoolKind::Max,
            1 => PoolKind::MeanWithPadding,
            2 => PoolKind::Mean,
            _ => {
                return Err(Error::invalid_argument(format!(
                    "Invalid cudnnPoolingMode value: {mode}"
                )));
            }
        };
        if nan > 1 {
            let message = format!("Invalid cudnnNanPropagation value: {nan}");
            return Err(Error::invalid_argument(message));
        }
        let n = window.len();
        if paddings.len() != n || strides.len() != n {
            let (n_paddings, n_strides) = (paddings.len(), strides.len());
            let message = format!(
                "expected paddings and strides for each of {n} dimensions of a window, found {n_paddings} and {n_strides}"
            );
            return Err(Error::invalid_argument(message));
        }
        Ok(Pooling {
            kind,
            keeps_nan: nan == 1,
            window: sizes("sizes of a window", window, 1)?,
            windows: Windows {
                padding: sizes("paddings", paddings, 0)?,
                step: sizes("strides", strides, 1)?,
                dilation: vec![1; n],
            },
        })
    }

    /// Queues the pooling of `x`, or with gradients: the gradient of `x`, given that of `y`.
    pub(super) fn queue(
        &self,
        stream: &Stream,
        factors: [f32; 2],
        x: Given<'_>,
        y: Given<'_>,
        gradients: Option<[Given<'_>; 2]>,
    ) -> Result<Chain, Error> {
        let window = &self.window;
        results(x.0, y.0, window, &self.windows)?;
        if x.0.dims[..2] != y.0.dims[..2] {
            let (from, to) = (&x.0.dims, &y.0.dims);
            let message = format!("expected as many images and channels in {to:?} as in {from:?}");
            return Err(Error::invalid_argument(message));
        }
        let mut buffers = vec![x.1, y.1];
        let gradients = match gradients {
            None => None,
            Some([dy, dx]) => {
                if dy.0.dims != y.0.dims || dx.0.dims != x.0.dims {
                    let message = "expected gradients of the dimensions of what they are of";
                    return Err(Error::invalid_argument(message));
                }
                buffers.extend([dy.1, dx.1]);
                Some([
                    checked("the result's gradient", dy)?,
                    checked("the image's gradient", dx)?,
                ])
            }
        };
        let library = LibraryCall::Pool {
            kind: self.kind,
            keeps_nan: self.keeps_nan,
            window: window.clone(),
            windows: self.windows.clone(),
            factors: factors.map(f64::from),
            x: checked("the image", x)?,
            y: checked("the result", y)?,
            gradients,
        };
        call(stream, &buffers, library, |call, at| {
            if let LibraryCall::Pool {
                x, y, gradients, ..
            } = call
            {
                (x.1, y.1) = (at[0], at[1]);
                if let Some([dy, dx]) = gradients {
                    (dy.1, dx.1) = (at[2], at[3]);
                }
            }
        })
    }
}

/// Checks that windows over an image give as many results as there are.
fn results(x: &Extents, y: &Extents, window: &[usize], windows: &Windows) -> Result<(), Error> {
    let rank = window.len() + 2;
    if x.dims.len() != rank || y.dims.len() != rank {
        let (from, to) = (&x.dims, &y.dims);
        let message = format!("expected images of {rank} dimensions, found {from:?} and {to:?}");
        return Err(Error::invalid_argument(message));
    }
    // Each window is looked at element by element.
    const MOST: usize = 1 << 24;
    let n = window
        .iter()
        .try_fold(1_usize, |n, size| n.checked_mul(*size));
    if n.is_none_or(|n| n > MOST) {
        let message = format!("expected a window of at most {MOST} elements, found {window:?}");
        return Err(Error::invalid_argument(message));
    }
    for (axis, size) in window.iter().enumerate() {
        let reach = (size - 1) * windows.dilation[axis] + 1;
        let padded = x.dims[axis + 2] + 2 * windows.padding[axis];
        let wanted = padded
            .checked_sub(reach)
            .map(|free| free / windows.step[axis] + 1);
        if wanted != Some(y.dims[axis + 2]) {
            let (wanted, found) = (wanted.unwrap_or(0), y.dims[axis + 2]);
            let message = format!(
                "windows give {wanted} results along dimension {axis} of an image, the result has {found}"
            );
            return Err(Error::invalid_argument(message));
        }
    }
    Ok(())
}

/// A convolution, without what it is of.
#[derive(Clone)]
pub(super) struct Convolution {
    is_turned: bool,
    windows: Windows,
}

impl Convolution {
    pub(super) fn new(
        mode: i32,
        padding: &[i64],
        steps: &[i64],
        dilations: &[i64],
    ) -> Result<Convolution, Error> {
        let n = padding.len();
        if steps.len() != n || dilations.len() != n {
            let (n_steps, n_dilations) = (steps.len(), dilations.len());
            let message = format!(
                "expected strides and dilations for each of {n} paddings, found {n_steps} and {n_dilations}"
            );
            return Err(Error::invalid_argument(message));
        }
        Ok(Convolution {
            is_turned: !super::linear::either("cudnnConvolutionMode", mode)?,
            windows: Windows {
                padding: sizes("paddings", padding, 0)?,
                step: sizes("strides", steps, 1)?,
                dilation: sizes("dilations", dilations, 1)?,
            },
        })
    }

    /// Queues the part of a convolution that is calculated of the others.
    pub(super) fn queue(
        &self,
        stream: &Stream,
        part: ConvolutionPart,
        x: Given<'_>,
        w: Given<'_>,
        y: Given<'_>,
    ) -> Result<Chain, Error> {
        let (xd, wd, yd) = (&x.0.dims, &w.0.dims, &y.0.dims);
        let fits = wd.len() == self.windows.padding.len() + 2
            && xd.len() == wd.len()
            && yd.len() == wd.len()
            && xd[0] == yd[0]
            && xd[1].is_multiple_of(wd[1])
            && yd[1] == wd[0]
            && yd[1].is_multiple_of(xd[1] / wd[1]);
        if !fits {
            let message = format!("an image {xd:?} by a filter {wd:?} is no result {yd:?}");
            return Err(Error::invalid_argument(message));
        }
        results(x.0, y.0, &wd[2..], &self.windows)?;
        let library = LibraryCall::Convolution {
            part,
            is_turned: self.is_turned,
            windows: self.windows.clone(),
            x: checked("the image", x)?,
            w: checked("the filter", w)?,
            y: checked("the result", y)?,
        };
        call(stream, &[x.1, w.1, y.1], library, |call, at| {
            if let LibraryCall::Convolution { x, w, y, .. } = call {
                (x.1, w.1, y.1) = (at[0], at[1], at[2]);
            }
        })
    }
}

/// A plan of convolutions of one size.
#[derive(Clone)]
pub(super) struct Plan {
    pub(super) convolution: Convolution,
    pub(super) part: ConvolutionPart,
    pub(super) x: Extents,
    pub(super) w: Extents,
    pub(super) y: Extents,
}
