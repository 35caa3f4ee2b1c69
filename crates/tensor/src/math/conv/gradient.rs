//! The gradients of a convolution.
//!
//! That of the filter is the product of the patches, transposed, and the output's gradient, added up block by
//! block in order. That of the input is the product of the output's gradient and the filter, transposed, whose
//! rows are patches: each is added to where it was gathered from.

use tfrt_host::{AsyncValue, Chain, Error, ExecutionContext};

use super::{ConvPlan, Convolution, in_order};
use crate::math::matmul::{MatmulElement, Matrix, Rows, Scale, multiply, multiply_widened};
use crate::math::number::Real;
use crate::math::parallel;
use crate::{DenseHostTensor, TensorView, TensorViewMut};

/// Calculates the gradient of the filter.
///
/// # Shapes
///
/// `input` as in the module's table of [`conv`](super), `gradient` as the output there, `out` as the filter.
///
/// # Errors
///
/// See [`convolve`](super::convolve).
pub fn filter_gradient<T: MatmulElement + Real>(
    convolution: &Convolution,
    input: &TensorView<'_, T>,
    gradient: &TensorView<'_, T>,
    out: &mut TensorViewMut<'_, T>,
) -> Result<(), Error> {
    let plan = convolution.plan(input.extents(), out.extents())?;
    plan.expect_output(gradient.extents())?;
    plan.filter_gradient(in_order(input)?, in_order(gradient)?, 0, out.as_mut_slice());
    Ok(())
}

/// Applies [`filter_gradient`] to dense tensors, on the workers of the request's queue if there is much to do.
///
/// # Errors
///
/// Those of [`filter_gradient`], and those of [`parallel::fill`].
pub fn filter_gradient_into(
    execution: &ExecutionContext,
    convolution: &Convolution,
    input: &DenseHostTensor,
    gradient: &DenseHostTensor,
    out: &DenseHostTensor,
) -> Result<AsyncValue<Chain>, Error> {
    crate::dense::expect_dtype::<f32>(input.metadata())?;
    crate::dense::expect_dtype::<f32>(gradient.metadata())?;
    let plan = convolution.plan(&input.shape().to_dims(), &out.shape().to_dims())?;
    plan.expect_output(&gradient.shape().to_dims())?;
    let (input, gradient) = (input.clone(), gradient.clone());
    // The taps of a window are made side by side.
    let tap = (plan.channels / plan.groups).saturating_mul(plan.filters);
    let n_outputs = plan.batch.saturating_mul(plan.windows.n_outputs());
    let chunk = parallel::chunk_len(n_outputs / 8, tap);
    parallel::fill(execution, out, chunk, move |first, part: &mut [f32]| {
        let (input, gradient) = (input.read()?, gradient.read()?);
        plan.filter_gradient(input.elements()?, gradient.elements()?, first, part);
        Ok(())
    })
}

/// Calculates the gradient of the input.
///
/// # Shapes
///
/// `gradient` as the output in the module's table of [`conv`](super), `filter` as there, `out` as the input.
///
/// # Errors
///
/// See [`convolve`](super::convolve).
pub fn input_gradient<T: MatmulElement + Real>(
    convolution: &Convolution,
    gradient: &TensorView<'_, T>,
    filter: &TensorView<'_, T>,
    out: &mut TensorViewMut<'_, T>,
) -> Result<(), Error> {
    let plan = convolution.plan(out.extents(), filter.extents())?;
    plan.expect_output(gradient.extents())?;
    let filter = T::widen_rhs(in_order(filter)?.into());
    plan.input_gradient(in_order(gradient)?, &filter, 0, out.as_mut_slice());
    Ok(())
}

/// Applies [`input_gradient`] to dense tensors, on the workers of the request's queue if there are several images.
///
/// # Errors
///
/// Those of [`input_gradient`], and those of [`parallel::fill`].
pub fn input_gradient_into(
    execution: &ExecutionContext,
    convolution: &Convolution,
    gradient: &DenseHostTensor,
    filter: &DenseHostTensor,
    out: &DenseHostTensor,
) -> Result<AsyncValue<Chain>, Error> {
    crate::dense::expect_dtype::<f32>(gradient.metadata())?;
    crate::dense::expect_dtype::<f32>(filter.metadata())?;
    let plan = convolution.plan(&out.shape().to_dims(), &filter.shape().to_dims())?;
    plan.expect_output(&gradient.shape().to_dims())?;
    let (gradient, filter) = (gradient.clone(), filter.clone());
    let image = plan.windows.n_inputs().saturating_mul(plan.channels);
    let chunk = parallel::chunk_len(
        plan.windows.n_taps().saturating_mul(plan.filters) / 8,
        image,
    );
    parallel::fill(execution, out, chunk, move |first, part: &mut [f32]| {
        let (gradient, filter) = (gradient.read()?, filter.read()?);
        plan.input_gradient(gradient.elements()?, filter.elements()?, first, part);
        Ok(())
    })
}

impl ConvPlan {
    /// Makes the filter's gradient from the `first` element on; whole taps.
    pub(super) fn filter_gradient<T: MatmulElement + Real>(
        &self,
        input: &[T],
        gradient: &[T],
        first: usize,
        out: &mut [T],
    ) {
        out.fill(T::ZERO);
        if out.is_empty() {
            return;
        }
        let (own_channels, own_filters) = (self.channels / self.groups, self.filters / self.groups);
        let (first_row, n_rows) = (first / self.filters, out.len() / self.filters);
        let n_columns = self.n_columns();
        let n_outputs = self.batch * self.windows.n_outputs();
        let block = self.block_len();
        let mut patches = Vec::new();
        let sum = Scale {
            of_product: T::ONE,
            of_result: T::ONE,
        };
        for output in (0..n_outputs).step_by(block) {
            let n = block.min(n_outputs - output);
            for group in 0..self.groups {
                let channels = group * own_channels..(group + 1) * own_channels;
                self.gather(input, output, n, channels, T::ZERO, &mut patches);
                // The rows of the filter's gradient are columns of the patches.
                let a = Matrix::new(&patches, first_row, [n_rows, n], [1, n_columns]);
                let start = output * self.filters + group * own_filters;
                let b = Matrix::new(gradient, start, [n, own_filters], [self.filters, 1]);
                let out = &mut out[group * own_filters..];
                multiply(
                    sum,
                    a,
                    b,
                    Rows::new(out, [n_rows, own_filters], self.filters),
                );
            }
        }
    }

    /// Makes the input's gradient from the `first` element on; whole images.
    pub(super) fn input_gradient<T: MatmulElement + Real>(
        &self,
        gradient: &[T],
        filter: &[T::RhsElement],
        first: usize,
        out: &mut [T],
    ) {
        out.fill(T::ZERO);
        let image_len = self.windows.n_inputs() * self.channels;
        let n_outputs = self.windows.n_outputs();
        // Without filters there is no gradient, however large the windows are.
        if out.is_empty() || image_len == 0 || self.filters == 0 {
            return;
        }
        let (own_channels, own_filters) = (self.channels / self.groups, self.filters / self.groups);
        let n_columns = self.n_columns();
        let step = self.step();
        let block = self.block_len();
        let mut patches = vec![T::ZERO; block * n_columns];
        for (number, image) in out.chunks_exact_mut(image_len).enumerate() {
            let start = (first / image_len + number) * n_outputs;
            for output in (0..n_outputs).step_by(block) {
                let n = block.min(n_outputs - output);
                for group in 0..self.groups {
                    let a_start = (start + output) * self.filters + group * own_filters;
                    let a = Matrix::new(gradient, a_start, [n, own_filters], [self.filters, 1]);
                    // The filter, transposed.
                    let b_start = group * own_filters;
                    let b =
                        Matrix::new(filter, b_start, [own_filters, n_columns], [1, self.filters]);
                    let rows = Rows::new(&mut patches, [n, n_columns], n_columns);
                    multiply_widened(Scale::default(), a, b, rows);
                    for index in 0..n {
                        let row = &patches[index * n_columns..][..n_columns];
                        self.windows.runs(output + index, |tap, place, n_run| {
                            for run in 0..n_run {
                                let to = place * self.channels + group * own_channels + run * step;
                                let from = &row[(tap + run) * own_channels..][..own_channels];
                                let to = &mut image[to..to + own_channels];
                                to.iter_mut()
                                    .zip(from)
                                    .for_each(|(to, x)| *to = to.plus(*x));
                            }
                        });
                    }
                }
            }
        }
    }
}
