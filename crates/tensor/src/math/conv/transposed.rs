//! Transposed convolutions: each element of the input is multiplied by a whole window of the output.
//!
//! This is what becomes of the gradient of a convolution's output on the way to its input, and made by the same
//! code.
//!
//! # Shapes
//!
//! | Tensor | Shape |
//! | --- | --- |
//! | input | `[batch, spatial.., channels]` |
//! | filter | `[window.., filters / groups, channels]` |
//! | output | `[batch, output.., filters]` |

use smallvec::SmallVec;
use tfrt_host::{AsyncValue, Chain, Error, ExecutionContext};

use super::{ConvEpilogue, ConvPlan, Convolution, TensorConvEpilogue, finish, in_order};
use crate::math::matmul::MatmulElement;
use crate::math::number::Real;
use crate::math::parallel;
use crate::math::window::{Padding, Window};
use crate::{DenseHostTensor, Dims, TensorView, TensorViewMut};

/// A transposed convolution.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TransposedConvolution {
    /// A window of the output for each spatial dimension: windows of neighbouring elements are `stride` apart, and
    /// padding is cut off the output. With [`Padding::Same`] the output is `stride` times as large.
    pub windows: SmallVec<[Window; 3]>,
    /// Number of elements appended behind the output in each dimension, fewer than the stride: elements that no window
    /// reaches, or that padding would cut off.
    pub output_padding: SmallVec<[usize; 3]>,
    /// Number of groups: the first part of the channels is seen by the first part of the filters, and so on.
    pub groups: usize,
}

impl TransposedConvolution {
    /// Returns a transposed convolution without groups and without more elements behind.
    pub fn new(windows: &[Window]) -> TransposedConvolution {
        TransposedConvolution {
            windows: SmallVec::from_slice(windows),
            output_padding: SmallVec::from_elem(0, windows.len()),
            groups: 1,
        }
    }

    /// Returns the shape of the output.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if input and filter are not of the shapes that the module's table has, if the filter's
    /// extents are not the windows', if more is cut off than there is, or if an extent is too large.
    ///
    /// # Examples
    ///
    /// ```
    /// use tfrt_tensor::math::conv::TransposedConvolution;
    /// use tfrt_tensor::math::window::{Padding, Window};
    ///
    /// let twice = TransposedConvolution::new(&[Window::new(3, 2, Padding::Explicit(1, 0))]);
    /// assert_eq!(twice.output_extents(&[1, 4, 5], &[3, 7, 5])?.as_slice(), [1, 8, 7]);
    /// # Ok::<(), tfrt_host::Error>(())
    /// ```
    pub fn output_extents(&self, input: &[usize], filter: &[usize]) -> Result<Dims, Error> {
        let ([batch, spatial @ .., _], [.., own_filters, _]) = (input, filter) else {
            return Err(self.misfit(input, filter));
        };
        if spatial.len() != self.windows.len() || self.output_padding.len() != spatial.len() {
            return Err(self.misfit(input, filter));
        }
        let mut extents = Dims::from_slice(&[*batch]);
        for (dimension, input) in spatial.iter().enumerate() {
            let (window, more) = (&self.windows[dimension], self.output_padding[dimension]);
            extents.push(extent(window, more, *input)?);
        }
        let filters = own_filters.checked_mul(self.groups);
        extents.push(filters.ok_or_else(|| self.misfit(input, filter))?);
        Ok(extents)
    }

    /// Returns the plan of the convolution whose input gradient this is.
    fn plan(&self, input: &[usize], filter: &[usize], out: &[usize]) -> Result<ConvPlan, Error> {
        let wanted = self.output_extents(input, filter)?;
        if wanted[..] != *out {
            let message = format!("expected a result of shape {wanted:?}, found {out:?}");
            return Err(Error::invalid_argument(message));
        }
        let back = Convolution {
            windows: self.windows.clone(),
            groups: self.groups,
        };
        let plan = back.plan(out, filter)?;
        match plan.output_extents()[..] == *input {
            true => Ok(plan),
            false => Err(self.misfit(input, filter)),
        }
    }

    #[cold]
    fn misfit(&self, input: &[usize], filter: &[usize]) -> Error {
        let windows: Vec<usize> = self.windows.iter().map(|window| window.extent).collect();
        let (groups, more) = (self.groups, &self.output_padding[..]);
        Error::invalid_argument(format!(
            "a transposed convolution by windows of {windows:?} in {groups} groups with {more:?} behind: expected \
             an input of shape [batch, spatial.., channels], a filter of shape [window.., filters / groups, \
             channels], and less behind than a stride, found {input:?} and {filter:?}"
        ))
    }
}

/// Returns the extent of the output in one dimension.
fn extent(window: &Window, more: usize, input: usize) -> Result<usize, Error> {
    let Window {
        extent,
        stride,
        dilation,
        padding,
    } = *window;
    let outside = || {
        Error::invalid_argument(format!(
            "a transposed convolution of {input} elements by {window:?} with {more} behind has no output: \
             expected an element or more, windows above 0, and less behind than a stride"
        ))
    };
    if input == 0 || extent == 0 || dilation == 0 || more >= stride.max(1) || stride == 0 {
        return Err(outside());
    }
    let (before, behind) = match padding {
        Padding::Valid => (0, 0),
        Padding::Explicit(before, behind) => (before, behind),
        Padding::Same if more == 0 => return input.checked_mul(stride).ok_or_else(outside),
        Padding::Same => return Err(outside()),
    };
    let covered = (extent - 1).checked_mul(dilation);
    let all = (input - 1)
        .checked_mul(stride)
        .and_then(|sum| sum.checked_add(covered?)?.checked_add(1)?.checked_add(more));
    let cut = before.checked_add(behind);
    let left = all.zip(cut).and_then(|(all, cut)| all.checked_sub(cut));
    left.filter(|left| *left > 0).ok_or_else(outside)
}

/// Convolves, transposed.
///
/// # Shapes
///
/// As in the module's table, with the extents of [`TransposedConvolution::output_extents`]; the epilogue's lists have an
/// element for each filter.
///
/// # Errors
///
/// `InvalidArgument` if the shapes are not that, or if views do not lie in row-major order.
///
/// # Examples
///
/// ```
/// use tfrt_tensor::math::conv::{ConvEpilogue, TransposedConvolution, convolve_transposed};
/// use tfrt_tensor::math::window::{Padding, Window};
/// use tfrt_tensor::{TensorView, TensorViewMut};
///
/// let x = TensorView::new(&[1.0_f32, 2.0], &[1, 2, 1])?;
/// let filter = TensorView::new(&[1.0, 10.0], &[2, 1, 1])?;
/// let twice = TransposedConvolution::new(&[Window::new(2, 2, Padding::Valid)]);
/// let mut out = [0.0; 4];
/// let mut view = TensorViewMut::new(&mut out, &[1, 4, 1])?;
/// convolve_transposed(&twice, &x, &filter, ConvEpilogue::default(), &mut view)?;
/// assert_eq!(out, [1.0, 10.0, 2.0, 20.0]);
/// # Ok::<(), tfrt_host::Error>(())
/// ```
pub fn convolve_transposed<T: MatmulElement + Real>(
    transposed: &TransposedConvolution,
    input: &TensorView<'_, T>,
    filter: &TensorView<'_, T>,
    epilogue: ConvEpilogue<'_, T>,
    out: &mut TensorViewMut<'_, T>,
) -> Result<(), Error> {
    let kept = T::widen_rhs(in_order(filter)?.into());
    let filter = (filter.extents(), &kept[..]);
    convolve_transposed_by_elements(transposed, input, filter, epilogue, out)
}

/// Calculates [`convolve_transposed`] by the kept elements of a filter of these extents.
pub(super) fn convolve_transposed_by_elements<T: MatmulElement + Real>(
    transposed: &TransposedConvolution,
    input: &TensorView<'_, T>,
    (extents, filter): (&[usize], &[T::RhsElement]),
    epilogue: ConvEpilogue<'_, T>,
    out: &mut TensorViewMut<'_, T>,
) -> Result<(), Error> {
    let plan = transposed.plan(input.extents(), extents, out.extents())?;
    let lists = [epilogue.scale, epilogue.shift];
    expect_lists(&plan, lists.map(|list| list.map(<[T]>::len)))?;
    plan.input_gradient(in_order(input)?, filter, 0, out.as_mut_slice());
    finish_rows(epilogue, plan.channels, out.as_mut_slice());
    Ok(())
}

/// Applies [`convolve_transposed`] to dense tensors, on the workers of the request's queue if there are several
/// images.
///
/// # Errors
///
/// Those of [`convolve_transposed`], if the types differ, and those of [`parallel::fill`].
pub fn convolve_transposed_into<T: MatmulElement + Real>(
    execution: &ExecutionContext,
    transposed: &TransposedConvolution,
    [input, filter]: [&DenseHostTensor; 2],
    epilogue: TensorConvEpilogue,
    out: &DenseHostTensor,
) -> Result<AsyncValue<Chain>, Error> {
    let lists = [epilogue.scale.as_ref(), epilogue.shift.as_ref()];
    for tensor in [Some(input), Some(filter), lists[0], lists[1]]
        .into_iter()
        .flatten()
    {
        crate::dense::expect_dtype::<T>(tensor.metadata())?;
    }
    let shapes = [input, filter, out].map(|tensor| tensor.shape().to_dims());
    let plan = transposed.plan(&shapes[0], &shapes[1], &shapes[2])?;
    expect_lists(
        &plan,
        lists.map(|list| list.map(DenseHostTensor::n_elements)),
    )?;
    let (input, filter) = (input.clone(), filter.clone());
    let image = plan.windows.n_inputs().saturating_mul(plan.channels);
    let cost = plan.windows.n_taps().saturating_mul(plan.filters) / 8;
    let chunk = parallel::chunk_len(cost, image);
    parallel::fill(execution, out, chunk, move |first, part: &mut [T]| {
        let (input, filter) = (input.read()?, filter.read()?);
        let read = |list: &Option<DenseHostTensor>| match list {
            Some(list) => Ok(Some(list.read()?.elements::<T>()?.to_vec())),
            None => Ok::<_, Error>(None),
        };
        let (scale, shift) = (read(&epilogue.scale)?, read(&epilogue.shift)?);
        let own = ConvEpilogue {
            scale: scale.as_deref(),
            shift: shift.as_deref(),
            relu: epilogue.relu,
        };
        let filter = T::widen_rhs(filter.elements()?.into());
        plan.input_gradient(input.elements()?, &filter, first, part);
        finish_rows(own, plan.channels, part);
        Ok(())
    })
}

fn finish_rows<T: Real>(epilogue: ConvEpilogue<'_, T>, n: usize, out: &mut [T]) {
    if !out.is_empty() {
        finish(epilogue, n, out);
    }
}

/// Checks the lists of the epilogue: the channels of the underlying convolution are the filters.
fn expect_lists(plan: &ConvPlan, lens: [Option<usize>; 2]) -> Result<(), Error> {
    let wanted = plan.channels;
    match lens.into_iter().flatten().find(|len| *len != wanted) {
        None => Ok(()),
        Some(found) => Err(Error::invalid_argument(format!(
            "expected an element for each of {wanted} filters, found {found}"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::math::testing::coordinates;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn each_element_is_multiplied_by_a_window(
            spatial in prop::collection::vec((1..4_usize, 1..4_usize, 1..4_usize, 1..3_usize, 0..3_usize), 1..4),
            cut in prop::option::of((0..3_usize, 0..2_usize)),
            (batch, groups, own_channels, own_filters) in (0..3_usize, 1..3_usize, 0..3_usize, 0..3_usize),
            values in prop::collection::vec(-9..9_i64, 4096),
            relu in any::<bool>(),
        ) {
            let padding = match cut {
                Some((before, behind)) => Padding::Explicit(before, behind),
                None => Padding::Same,
            };
            let windows: Vec<Window> = spatial.iter().map(|(_, extent, stride, dilation, _)| Window {
                extent: *extent, stride: *stride, dilation: *dilation, padding,
            }).collect();
            let mut transposed = TransposedConvolution::new(&windows);
            transposed.groups = groups;
            if cut.is_some() {
                for (more, (_, _, stride, _, wanted)) in transposed.output_padding.iter_mut().zip(&spatial) {
                    *more = *wanted % stride;
                }
            }
            let (channels, filters) = (own_channels * groups, own_filters * groups);
            let mut shape = vec![batch];
            shape.extend(spatial.iter().map(|(input, ..)| *input));
            shape.push(channels);
            let mut filter_shape: Vec<usize> = windows.iter().map(|window| window.extent).collect();
            filter_shape.extend([own_filters, channels]);
            let Ok(out_shape) = transposed.output_extents(&shape, &filter_shape) else { return Ok(()) };
            let count = |extents: &[usize]| extents.iter().product::<usize>();
            let (n, m) = (count(&shape), count(&filter_shape));
            prop_assume!(n + m + filters <= values.len());
            let (x, rest) = values.split_at(n);
            let (filter, rest) = rest.split_at(m);
            let bias = &rest[..filters];
            let mut out = vec![7; count(&out_shape)];
            let epilogue = ConvEpilogue { scale: None, shift: Some(bias), relu };
            let (x_view, filter_view) = (TensorView::new(x, &shape).unwrap(), TensorView::new(filter, &filter_shape).unwrap());
            let done = convolve_transposed(
                &transposed, &x_view, &filter_view, epilogue, &mut TensorViewMut::new(&mut out, &out_shape).unwrap(),
            );
            prop_assert!(done.is_ok(), "{:?}", done);
            // Each element of the input, through each element of the filter, to where it goes.
            let mut wanted: Vec<i64> = (0..out.len()).map(|index| bias[index % filters.max(1)]).collect();
            let rank = windows.len();
            for (index, element) in x.iter().enumerate() {
                let place = coordinates(index, &shape);
                for (tap, factor) in filter.iter().enumerate() {
                    let own = coordinates(tap, &filter_shape);
                    if own[rank + 1] != place[rank + 1] {
                        continue;
                    }
                    let group = own[rank + 1] / own_channels;
                    let mut to = Some(place[0]);
                    for dimension in 0..rank {
                        let window = windows[dimension];
                        let before = match padding {
                            Padding::Same => {
                                let out = out_shape[dimension + 1];
                                window.output(out).unwrap().1
                            }
                            _ => cut.unwrap().0,
                        };
                        let at = place[dimension + 1] * window.stride + own[dimension] * window.dilation;
                        let at = at.checked_sub(before).filter(|at| *at < out_shape[dimension + 1]);
                        to = to.zip(at).map(|(to, at)| to * out_shape[dimension + 1] + at);
                    }
                    if let Some(to) = to {
                        wanted[to * filters + group * own_filters + own[rank]] += element * factor;
                    }
                }
            }
            if relu {
                wanted.iter_mut().for_each(|x| *x = (*x).max(0));
            }
            prop_assert_eq!(out, wanted);
        }
    }

    #[test]
    fn what_does_not_fit_is_told() {
        let of = |window: Window, more: usize, input: usize| {
            let mut transposed = TransposedConvolution::new(&[window]);
            transposed.output_padding[0] = more;
            transposed.output_extents(&[1, input, 1], &[window.extent, 1, 1])
        };
        assert!(of(Window::new(2, 2, Padding::Valid), 1, 3).is_ok());
        assert!(of(Window::new(2, 2, Padding::Valid), 2, 3).is_err());
        assert!(of(Window::new(2, 2, Padding::Same), 1, 3).is_err());
        assert!(of(Window::new(2, 0, Padding::Valid), 0, 3).is_err());
        assert!(of(Window::new(0, 1, Padding::Valid), 0, 3).is_err());
        assert!(of(Window::new(2, 1, Padding::Explicit(2, 2)), 0, 3).is_err());
        assert!(of(Window::new(2, 1, Padding::Valid), 0, 0).is_err());
        assert!(of(Window::new(2, usize::MAX, Padding::Same), 0, 3).is_err());
        assert!(
            of(
                Window::new(usize::MAX, 3, Padding::Explicit(usize::MAX, 9)),
                0,
                3
            )
            .is_err()
        );
        let twice = TransposedConvolution::new(&[Window::new(2, 2, Padding::Valid)]);
        assert!(twice.output_extents(&[1, 2], &[2, 1, 1]).is_err());
        let (x, filter) = ([1.0_f32; 4], [1.0_f32; 4]);
        let x = TensorView::new(&x, &[1, 2, 2]).unwrap();
        let mut out = [0.0; 4];
        let mut out = TensorViewMut::new(&mut out, &[1, 4, 1]).unwrap();
        let filter_of = |extents: &[usize]| {
            TensorView::new(&filter[..extents.iter().product()], extents).unwrap()
        };
        let mut run = |extents: &[usize], epilogue| {
            convolve_transposed(&twice, &x, &filter_of(extents), epilogue, &mut out)
        };
        assert!(run(&[2, 1, 2], ConvEpilogue::default()).is_ok());
        assert!(run(&[2, 1, 1], ConvEpilogue::default()).is_err());
        assert!(run(&[1, 1, 2], ConvEpilogue::default()).is_err());
        let short = ConvEpilogue {
            shift: Some(&[1.0, 2.0][..]),
            ..ConvEpilogue::default()
        };
        assert!(run(&[2, 1, 2], short).is_err());
    }
}
