//! Convolutions with channels first, and filters in ONNX's order.
//!
//! Images are brought into the order of [`conv`](super) and back one by one, the filter once: what is multiplied
//! lies side by side there. A filter of many convolutions is brought there ahead ([`OrderedFilter`]). Models that run often
//! are better kept channels last.
//!
//! # Shapes
//!
//! | Tensor | Shape |
//! | --- | --- |
//! | input | `[batch, channels, spatial..]` |
//! | filter | `[filters, channels / groups, window..]`; of a transposed convolution `[channels, filters / groups, window..]` |
//! | output | `[batch, filters, output..]` |

use tfrt_host::{AsyncValue, Chain, Error, ExecutionContext};

mod ordered;

pub use ordered::OrderedFilter;

use ordered::{FilterElements, in_last_order};

use super::{ConvEpilogue, ConvPlan, Convolution, TensorConvEpilogue, TransposedConvolution};
use crate::math::Family;
use crate::math::layout_copy::LayoutCopy;
use crate::math::matmul::{MatmulElement, Sealed};
use crate::math::number::Real;
use crate::math::parallel;
use crate::with_floating;
use crate::{DenseHostTensor, Dims, Element, TensorView, TensorViewMut};

/// Returns the shape of the output of a convolution.
///
/// # Errors
///
/// See [`Convolution::output_extents`].
pub fn output_extents(
    convolution: &Convolution,
    input: &[usize],
    filter: &[usize],
) -> Result<Dims, Error> {
    let input = channels_last(input)?;
    let output = convolution.output_extents(&input, &filter_last(filter)?)?;
    Ok(channels_first(&output))
}

/// Calculates a convolution of images whose channels come first.
///
/// # Shapes
///
/// As in the module's table.
///
/// # Errors
///
/// `InvalidArgument` if the shapes are not that.
///
/// # Examples
///
/// ```
/// use tfrt_tensor::math::conv::{Convolution, ConvEpilogue, channels_first};
/// use tfrt_tensor::math::window::{Padding, Window};
/// use tfrt_tensor::{TensorView, TensorViewMut};
///
/// // Two channels, whose neighbours are added up.
/// let x = TensorView::new(&[1.0_f32, 2.0, 3.0, 10.0, 20.0, 30.0], &[1, 2, 3])?;
/// let filter = TensorView::new(&[1.0, 1.0, 1.0, 1.0], &[1, 2, 2])?;
/// let convolution = Convolution::new(&[Window::new(2, 1, Padding::Valid)]);
/// let mut out = [0.0; 2];
/// let mut view = TensorViewMut::new(&mut out, &[1, 1, 2])?;
/// channels_first::convolve(&convolution, &x, &filter, ConvEpilogue::default(), &mut view)?;
/// assert_eq!(out, [33.0, 55.0]);
/// # Ok::<(), tfrt_host::Error>(())
/// ```
pub fn convolve<T: MatmulElement + Real>(
    convolution: &Convolution,
    input: &TensorView<'_, T>,
    filter: &TensorView<'_, T>,
    epilogue: ConvEpilogue<'_, T>,
    out: &mut TensorViewMut<'_, T>,
) -> Result<(), Error> {
    let plan = plan(
        convolution,
        input.extents(),
        filter.extents(),
        out.extents(),
    )?;
    plan.expect_epilogue(&epilogue)?;
    let filter = T::widen_rhs(in_last_order(filter)?.into());
    images(&plan, input, &filter, epilogue, 0, out.as_mut_slice())
}

/// Extents and elements of a filter.
type FilterOf<'f, T> = (&'f [usize], FilterElements<<T as Sealed>::RhsElement>);

/// Applies [`convolve`] to dense tensors, on the workers of the request's queue if there are several images.
///
/// # Errors
///
/// Those of [`convolve`], if the types differ, and those of [`parallel::fill`].
pub fn convolve_into(
    execution: &ExecutionContext,
    convolution: &Convolution,
    [input, filter]: [&DenseHostTensor; 2],
    epilogue: TensorConvEpilogue,
    out: &DenseHostTensor,
) -> Result<AsyncValue<Chain>, Error> {
    let (dtype, extents) = (input.dtype(), filter.shape().to_dims());
    with_floating!(dtype, T => {
        crate::dense::expect_dtype::<T>(filter.metadata())?;
        // Shapes are looked at before memory is taken.
        plan(convolution, &input.shape().to_dims(), &extents, &out.shape().to_dims())?;
        convolve_of::<T>(execution, convolution, (input, (&extents, FilterElements::of::<T>(filter)?)), epilogue, out)
    }, else Err(Family::Floats.lacks(dtype)))
}

/// Applies [`convolve_into`] to a filter that was reordered ahead.
///
/// # Errors
///
/// See [`convolve_into`].
pub fn convolve_ordered_into(
    execution: &ExecutionContext,
    convolution: &Convolution,
    (input, filter): (&DenseHostTensor, &OrderedFilter),
    epilogue: TensorConvEpilogue,
    out: &DenseHostTensor,
) -> Result<AsyncValue<Chain>, Error> {
    let dtype = filter.dtype();
    let elements = filter.elements().clone();
    with_floating!(dtype, T => {
        let filter = (filter.extents(), FilterElements::shared(elements));
        convolve_of::<T>(execution, convolution, (input, filter), epilogue, out)
    }, else Err(Family::Floats.lacks(dtype)))
}

fn convolve_of<T: MatmulElement + Real>(
    execution: &ExecutionContext,
    convolution: &Convolution,
    (input, (filter_extents, filter)): (&DenseHostTensor, FilterOf<'_, T>),
    epilogue: TensorConvEpilogue,
    out: &DenseHostTensor,
) -> Result<AsyncValue<Chain>, Error> {
    let lists = [epilogue.scale.as_ref(), epilogue.shift.as_ref()];
    for tensor in [Some(input), lists[0], lists[1]].into_iter().flatten() {
        crate::dense::expect_dtype::<T>(tensor.metadata())?;
    }
    let shapes = [input, out].map(|tensor| tensor.shape().to_dims());
    let plan = plan(convolution, &shapes[0], filter_extents, &shapes[1])?;
    for list in lists.into_iter().flatten() {
        plan.expect_per_filter(list.n_elements())?;
    }
    let input = input.clone();
    let image = plan.windows.n_outputs().saturating_mul(plan.filters);
    let chunk = parallel::chunk_len(plan.n_columns() / 8, image);
    parallel::fill(execution, out, chunk, move |first, part: &mut [T]| {
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
        let input = input.read()?;
        let view = input.view()?;
        filter.with(|filter| images(&plan, &view, filter, own, first / image, part))
    })
}

/// Convolves, transposed.
///
/// # Shapes
///
/// As in the module's table, with the extents of [`TransposedConvolution::output_extents`].
///
/// # Errors
///
/// `InvalidArgument` if the shapes are not that.
pub fn convolve_transposed<T: MatmulElement + Real>(
    transposed: &TransposedConvolution,
    input: &TensorView<'_, T>,
    filter: &TensorView<'_, T>,
    epilogue: ConvEpilogue<'_, T>,
    out: &mut TensorViewMut<'_, T>,
) -> Result<(), Error> {
    let wanted = transposed_extents(transposed, input.extents(), filter.extents())?;
    expect_result(&wanted, out.extents())?;
    let kept = T::widen_rhs(in_last_order(filter)?.into());
    let filter = (filter.extents(), &kept[..]);
    transposed_image(transposed, input, filter, epilogue, out)
}

/// Calculates a transposed convolution by a reordered filter.
fn transposed_image<T: MatmulElement + Real>(
    transposed: &TransposedConvolution,
    input: &TensorView<'_, T>,
    (filter_extents, filter): (&[usize], &[T::RhsElement]),
    epilogue: ConvEpilogue<'_, T>,
    out: &mut TensorViewMut<'_, T>,
) -> Result<(), Error> {
    let own_input = channels_last(input.extents())?;
    let own_filter = filter_last(filter_extents)?;
    let wanted = transposed.output_extents(&own_input, &own_filter)?;
    let input = moved(input, &last_order(input.rank()))?;
    let mut result = vec![T::ZERO; out.as_mut_slice().len()];
    super::transposed::convolve_transposed_by_elements(
        transposed,
        &TensorView::new(&input, &own_input)?,
        (&own_filter, filter),
        epilogue,
        &mut TensorViewMut::new(&mut result, &wanted)?,
    )?;
    let back = LayoutCopy::transpose(&wanted, &first_order(wanted.len()))?;
    back.run(&TensorView::new(&result, &wanted)?, out)
}

/// Returns the shape of the output of a transposed convolution.
///
/// # Errors
///
/// See [`TransposedConvolution::output_extents`].
pub fn transposed_extents(
    transposed: &TransposedConvolution,
    input: &[usize],
    filter: &[usize],
) -> Result<Dims, Error> {
    let output = transposed.output_extents(&channels_last(input)?, &filter_last(filter)?)?;
    Ok(channels_first(&output))
}

/// Applies [`convolve_transposed`] to dense tensors, on the workers of the request's queue if there are several
/// images.
///
/// # Errors
///
/// Those of [`convolve_transposed`], if the types differ, and those of [`parallel::fill`].
pub fn convolve_transposed_into(
    execution: &ExecutionContext,
    transposed: &TransposedConvolution,
    [input, filter]: [&DenseHostTensor; 2],
    epilogue: TensorConvEpilogue,
    out: &DenseHostTensor,
) -> Result<AsyncValue<Chain>, Error> {
    let (dtype, extents) = (input.dtype(), filter.shape().to_dims());
    with_floating!(dtype, T => {
        crate::dense::expect_dtype::<T>(filter.metadata())?;
        // Shapes are looked at before memory is taken.
        let wanted = transposed_extents(transposed, &input.shape().to_dims(), &extents)?;
        expect_result(&wanted, &out.shape().to_dims())?;
        let operands = (input, (&extents[..], FilterElements::of::<T>(filter)?));
        convolve_transposed_of::<T>(execution, transposed, operands, epilogue, out)
    }, else Err(Family::Floats.lacks(dtype)))
}

/// Applies [`convolve_transposed_into`] to a filter that was reordered ahead.
///
/// # Errors
///
/// See [`convolve_transposed_into`].
pub fn convolve_transposed_ordered_into(
    execution: &ExecutionContext,
    transposed: &TransposedConvolution,
    (input, filter): (&DenseHostTensor, &OrderedFilter),
    epilogue: TensorConvEpilogue,
    out: &DenseHostTensor,
) -> Result<AsyncValue<Chain>, Error> {
    let dtype = filter.dtype();
    let elements = filter.elements().clone();
    with_floating!(dtype, T => {
        let operands = (input, (filter.extents(), FilterElements::shared(elements)));
        convolve_transposed_of::<T>(execution, transposed, operands, epilogue, out)
    }, else Err(Family::Floats.lacks(dtype)))
}

fn convolve_transposed_of<T: MatmulElement + Real>(
    execution: &ExecutionContext,
    transposed: &TransposedConvolution,
    (input, (filter_extents, filter)): (&DenseHostTensor, FilterOf<'_, T>),
    epilogue: TensorConvEpilogue,
    out: &DenseHostTensor,
) -> Result<AsyncValue<Chain>, Error> {
    let lists = [epilogue.scale.as_ref(), epilogue.shift.as_ref()];
    for tensor in [Some(input), lists[0], lists[1]].into_iter().flatten() {
        crate::dense::expect_dtype::<T>(tensor.metadata())?;
    }
    let input_extents = input.shape().to_dims();
    let wanted = transposed_extents(transposed, &input_extents, filter_extents)?;
    expect_result(&wanted, &out.shape().to_dims())?;
    let image = match out.n_elements().checked_div(wanted[0]) {
        None | Some(0) => return Ok(AsyncValue::available(Chain)),
        Some(image) => image,
    };
    let mut one = [input_extents, wanted];
    one.iter_mut().for_each(|extents| extents[0] = 1);
    let (transposed, input) = (transposed.clone(), input.clone());
    let filter_extents = Dims::from_slice(filter_extents);
    let n_taps = filter_extents
        .iter()
        .fold(1_usize, |n, extent| n.saturating_mul(*extent));
    let chunk = parallel::chunk_len(n_taps, image);
    parallel::fill(execution, out, chunk, move |first, part: &mut [T]| {
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
        let input = input.read()?;
        let elements = input.elements::<T>()?;
        let own_len: usize = one[0].iter().product();
        filter.with(|filter| {
            let filter = (&filter_extents[..], filter);
            for (index, out) in part.chunks_exact_mut(image).enumerate() {
                let start = (first / image + index) * own_len;
                let image = TensorView::new(&elements[start..start + own_len], &one[0])?;
                let mut out = TensorViewMut::new(out, &one[1])?;
                transposed_image(&transposed, &image, filter, own, &mut out)?;
            }
            Ok(())
        })
    })
}

/// Returns the plan of the convolution with channels last.
fn plan(
    convolution: &Convolution,
    input: &[usize],
    filter: &[usize],
    out: &[usize],
) -> Result<ConvPlan, Error> {
    let plan = convolution.plan(&channels_last(input)?, &filter_last(filter)?)?;
    expect_result(&channels_first(&plan.output_extents()), out)?;
    Ok(plan)
}

fn expect_result(wanted: &[usize], found: &[usize]) -> Result<(), Error> {
    if wanted == found {
        return Ok(());
    }
    let message = format!("expected a result of shape {wanted:?}, found {found:?}");
    Err(Error::invalid_argument(message))
}

/// Convolves whole images from the `first` on.
fn images<T: MatmulElement + Real>(
    plan: &ConvPlan,
    input: &TensorView<'_, T>,
    filter: &[T::RhsElement],
    epilogue: ConvEpilogue<'_, T>,
    first: usize,
    out: &mut [T],
) -> Result<(), Error> {
    let image_len = plan.windows.n_outputs().saturating_mul(plan.filters);
    if out.is_empty() {
        return Ok(());
    }
    let order: Vec<usize> = (1..input.rank() - 1).chain([0]).collect();
    let one = ConvPlan { batch: 1, ..*plan };
    let extents = [plan.windows.n_outputs(), plan.filters];
    let back = LayoutCopy::transpose(&extents, &[1, 0])?;
    let mut result = vec![T::ZERO; image_len];
    for (number, out) in out.chunks_exact_mut(image_len).enumerate() {
        let image = moved(&input.chip(&[first + number])?, &order)?;
        one.run(&image, filter, epilogue, 0, &mut result);
        let result = TensorView::new(&result, &extents)?;
        back.run(&result, &mut TensorViewMut::new(out, back.extents())?)?;
    }
    Ok(())
}

/// Returns the elements with dimensions in another order.
fn moved<T: Element>(x: &TensorView<'_, T>, order: &[usize]) -> Result<Vec<T>, Error> {
    let copy = LayoutCopy::transpose(x.extents(), order)?;
    let n_elements = match x.extents().contains(&0) {
        true => 0,
        false => x.n_elements(),
    };
    let mut out = vec![T::ZERO; n_elements];
    copy.run(x, &mut TensorViewMut::new(&mut out, copy.extents())?)?;
    Ok(out)
}

/// Of `[batch, channels, spatial..]` to `[batch, spatial.., channels]`.
fn last_order(rank: usize) -> Vec<usize> {
    [0].into_iter().chain(2..rank).chain([1]).collect()
}

/// Returns the order from channels last back to channels first.
fn first_order(rank: usize) -> Vec<usize> {
    [0, rank - 1].into_iter().chain(1..rank - 1).collect()
}

fn channels_last(extents: &[usize]) -> Result<Dims, Error> {
    match extents {
        [_, _, ..] => Ok(last_order(extents.len())
            .iter()
            .map(|d| extents[*d])
            .collect()),
        _ => Err(Error::invalid_argument(format!(
            "expected an input of shape [batch, channels, spatial..], found {extents:?}"
        ))),
    }
}

pub(super) fn channels_first(extents: &[usize]) -> Dims {
    first_order(extents.len())
        .iter()
        .map(|d| extents[*d])
        .collect()
}

/// Of `[filters, channels, window..]` to `[window.., channels, filters]`.
pub(super) fn filter_last(extents: &[usize]) -> Result<Dims, Error> {
    match extents {
        [filters, channels, windows @ ..] => {
            let mut last = Dims::from_slice(windows);
            last.extend([*channels, *filters]);
            Ok(last)
        }
        _ => Err(Error::invalid_argument(format!(
            "expected a filter of shape [filters, channels, window..], found {extents:?}"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::super::TransposedConvolution;
    use super::*;
    use crate::math::testing::{Layout, layout_of};
    use crate::math::window::{Padding, Window};
    use proptest::prelude::*;

    #[derive(Clone, Debug)]
    struct Case {
        windows: Vec<Window>,
        groups: usize,
        input: Layout,
        filter: Layout,
        back: Layout,
    }

    fn cases() -> impl Strategy<Value = Case> {
        let window = (1..4_usize, 1..3_usize, 1..3_usize, 0..2_usize);
        let spatial = prop::collection::vec((1..6_usize, window), 1..4);
        let sizes = (0..3_usize, 1..3_usize, 0..3_usize, 0..3_usize);
        (spatial, sizes).prop_flat_map(|(spatial, (batch, groups, channels, filters))| {
            let windows: Vec<Window> = spatial
                .iter()
                .map(|(_, (extent, stride, dilation, pad))| Window {
                    extent: *extent,
                    stride: *stride,
                    dilation: *dilation,
                    padding: Padding::Explicit(*pad, 1),
                })
                .collect();
            let extents = windows.iter().map(|window| window.extent);
            let mut input = vec![batch, channels * groups];
            input.extend(spatial.iter().map(|(extent, _)| *extent));
            let filter: Vec<usize> = [filters * groups, channels]
                .into_iter()
                .chain(extents.clone())
                .collect();
            let back: Vec<usize> = [channels * groups, filters]
                .into_iter()
                .chain(extents)
                .collect();
            (layout_of(input), layout_of(filter), layout_of(back)).prop_map(
                move |(input, filter, back)| Case {
                    windows: windows.clone(),
                    groups,
                    input,
                    filter,
                    back,
                },
            )
        })
    }

    proptest! {
        #[test]
        fn channels_may_come_first(case in cases(), values in prop::collection::vec(-9..9_i64, 4096)) {
            prop_assume!([&case.input, &case.filter, &case.back].iter().all(|layout| layout.len <= 2048));
            let convolution = Convolution { windows: case.windows.iter().copied().collect(), groups: case.groups };
            let (x, filter) = (case.input.view(&values), case.filter.view(&values[2000..]));
            if let Ok(extents) = output_extents(&convolution, x.extents(), filter.extents()) {
                let bias = &values[..extents[1]];
                let epilogue = ConvEpilogue { shift: Some(bias), ..ConvEpilogue::default() };
                let mut out = vec![7; extents.iter().product()];
                convolve(&convolution, &x, &filter, epilogue, &mut TensorViewMut::new(&mut out, &extents).unwrap()).unwrap();
                // As the other order has it, of copies.
                let (own, own_filter) = (channels_last(x.extents()).unwrap(), filter_last(filter.extents()).unwrap());
                let wanted_extents = convolution.output_extents(&own, &own_filter).unwrap();
                let mut wanted = vec![7; out.len()];
                let x: Vec<i64> = x.permute(&last_order(x.rank())).unwrap().iter().collect();
                let order: Vec<usize> = (2..filter.rank()).chain([1, 0]).collect();
                let f: Vec<i64> = filter.permute(&order).unwrap().iter().collect();
                super::super::convolve(
                    &convolution, &TensorView::new(&x, &own).unwrap(), &TensorView::new(&f, &own_filter).unwrap(),
                    epilogue, &mut TensorViewMut::new(&mut wanted, &wanted_extents).unwrap(),
                ).unwrap();
                let wanted = TensorView::new(&wanted, &wanted_extents).unwrap();
                let wanted: Vec<i64> = wanted.permute(&first_order(extents.len())).unwrap().iter().collect();
                prop_assert_eq!(out, wanted);
            }
            let mut transposed = TransposedConvolution::new(&case.windows);
            transposed.groups = case.groups;
            let (x, filter) = (case.input.view(&values), case.back.view(&values[2000..]));
            let (own, own_filter) = (channels_last(x.extents()).unwrap(), filter_last(filter.extents()).unwrap());
            let Ok(extents) = transposed.output_extents(&own, &own_filter) else { return Ok(()) };
            let first = channels_first(&extents);
            let mut out = vec![7; extents.iter().product()];
            convolve_transposed(&transposed, &x, &filter, ConvEpilogue::default(), &mut TensorViewMut::new(&mut out, &first).unwrap()).unwrap();
            let mut wanted = vec![7; out.len()];
            let x: Vec<i64> = x.permute(&last_order(x.rank())).unwrap().iter().collect();
            let order: Vec<usize> = (2..filter.rank()).chain([1, 0]).collect();
            let f: Vec<i64> = filter.permute(&order).unwrap().iter().collect();
            super::super::convolve_transposed(
                &transposed, &TensorView::new(&x, &own).unwrap(), &TensorView::new(&f, &own_filter).unwrap(),
                ConvEpilogue::default(), &mut TensorViewMut::new(&mut wanted, &extents).unwrap(),
            ).unwrap();
            let wanted = TensorView::new(&wanted, &extents).unwrap();
            let wanted: Vec<i64> = wanted.permute(&first_order(extents.len())).unwrap().iter().collect();
            prop_assert_eq!(out, wanted);
        }
    }

    #[test]
    fn what_does_not_fit_is_told() {
        let convolution = Convolution::new(&[Window::new(1, 1, Padding::Valid)]);
        assert!(output_extents(&convolution, &[1], &[1, 1, 1]).is_err());
        assert!(output_extents(&convolution, &[1, 1, 1], &[1]).is_err());
        assert!(output_extents(&convolution, &[1, 2, 3], &[1, 1, 1]).is_err());
        let large = [0, 1 << 40, 1 << 20];
        assert!(output_extents(&convolution, &large, &[0, 1 << 40, 1]).is_ok());
        assert!(output_extents(&convolution, &[1 << 40, 1, 1], &[1, 1, 1]).is_ok());
    }
}
