//! Convolutions of `f32` by filters that are packed ahead.

use std::sync::Arc;

use tfrt_host::{AsyncValue, Chain, DType, Error, ExecutionContext, HostAllocator};

use super::patches::Patches;
use super::{Convolution, Plan, in_order};
use crate::math::panel::{
    After, Block, Grid, InstructionSet, Layout, Panels, TensorAfter, fill, multiply, pack,
};
use crate::{DenseHostTensor, Dims, TensorMetadata, TensorShape, TensorView, TensorViewMut};

/// A filter, laid out for an instruction set.
///
/// Packing takes as long as reading and writing the filter, and pays as soon as it is used twice. Clones share
/// the elements.
#[derive(Clone, Debug)]
pub struct PackedFilter {
    /// That of the filter: `[window.., channels / groups, filters]`.
    extents: Dims,
    groups: usize,
    /// Of one group.
    // Invariant: its instruction set is one that the processor has.
    layout: Layout,
    // Invariant: `f32`s, as many as the groups' layouts say.
    elements: DenseHostTensor,
}

impl PackedFilter {
    /// Packs a filter for the best instruction set of this processor.
    ///
    /// # Shapes
    ///
    /// `filter: [window.., channels / groups, filters]`
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if the filter is not of that shape, `ResourceExhausted` if there is no memory.
    ///
    /// # Examples
    ///
    /// ```
    /// use tfrt_host::kernel::KernelRegistry;
    /// use tfrt_tensor::math::conv::{Convolution, PackedFilter, convolve_packed};
    /// use tfrt_tensor::math::panel::{Activation, After};
    /// use tfrt_tensor::math::window::{Padding, Window};
    /// use tfrt_tensor::{TensorView, TensorViewMut};
    ///
    /// let host = tfrt_host::HostContext::builder(KernelRegistry::new()).build();
    /// let filter = TensorView::new(&[1.0, 1.0], &[2, 1, 1])?;
    /// let packed = PackedFilter::pack(host.allocator(), &filter, 1)?;
    /// let convolution = Convolution::new(&[Window::new(2, 1, Padding::Valid)]);
    /// let x = TensorView::new(&[1.0_f32, 2.0, -3.0, -4.0], &[1, 4, 1])?;
    /// let mut out = [0.0; 3];
    /// let after = After { activation: Activation::Relu, ..After::default() };
    /// convolve_packed(&convolution, &x, &packed, after, &mut TensorViewMut::new(&mut out, &[1, 3, 1])?)?;
    /// assert_eq!(out, [3.0, 0.0, 0.0]);
    /// # Ok::<(), tfrt_host::Error>(())
    /// ```
    pub fn pack(
        allocator: &Arc<dyn HostAllocator>,
        filter: &TensorView<'_, f32>,
        groups: usize,
    ) -> Result<Self, Error> {
        Self::pack_for(allocator, InstructionSet::best(), filter, groups)
    }

    /// As [`pack`](Self::pack), for an instruction set.
    ///
    /// # Errors
    ///
    /// As of [`pack`](Self::pack), and `FailedPrecondition` if the processor does not have it.
    pub fn pack_for(
        allocator: &Arc<dyn HostAllocator>,
        set: InstructionSet,
        filter: &TensorView<'_, f32>,
        groups: usize,
    ) -> Result<Self, Error> {
        let (layout, n_elements) = layout(set, filter.extents(), groups)?;
        let right = in_order(filter)?;
        let shape = TensorShape::new(&[n_elements])?;
        let mut elements =
            DenseHostTensor::zeroed(allocator, TensorMetadata::new(DType::F32, shape))?;
        if n_elements > 0 {
            let packed = elements.elements_mut::<f32>()?;
            let packed = packed.expect("nobody else has it yet");
            let strides = [layout.n_columns * groups, 1];
            let parts = packed.chunks_exact_mut(n_elements / groups);
            for (group, part) in parts.enumerate() {
                pack(layout, right, group * layout.n_columns, strides, part);
            }
        }
        Ok(PackedFilter {
            extents: Dims::from_slice(filter.extents()),
            groups,
            layout,
            elements,
        })
    }

    /// Takes elements that were packed before, as [`elements`](Self::elements) gave them, for a filter of these
    /// extents.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if they are not as many `f32`s as the packed filter has, `FailedPrecondition` if the
    /// processor does not have the instructions that they are laid out for: pack the filter again.
    pub fn from_elements(
        set: InstructionSet,
        extents: &[usize],
        groups: usize,
        elements: DenseHostTensor,
    ) -> Result<Self, Error> {
        crate::dense::expect_dtype::<f32>(elements.metadata())?;
        let (layout, n_elements) = layout(set, extents, groups)?;
        let found = elements.n_elements();
        if found != n_elements {
            let set = set.name();
            return Err(Error::invalid_argument(format!(
                "a filter of shape {extents:?} packed for {set} has {n_elements} elements, found {found}"
            )));
        }
        Ok(PackedFilter {
            extents: Dims::from_slice(extents),
            groups,
            layout,
            elements,
        })
    }

    /// Returns the extents of the filter that was packed.
    pub fn extents(&self) -> &[usize] {
        &self.extents
    }

    /// Returns what it is laid out for.
    pub fn instruction_set(&self) -> InstructionSet {
        self.layout.set
    }

    /// Returns the elements as they are laid out.
    pub fn elements(&self) -> &DenseHostTensor {
        &self.elements
    }

    /// The panels of a group.
    fn panels<'p>(&self, elements: &'p [f32], group: usize) -> Panels<'p> {
        let len = elements.len() / self.groups;
        Panels {
            layout: self.layout,
            elements: &elements[group * len..(group + 1) * len],
        }
    }

    fn plan(&self, convolution: &Convolution, input: &[usize]) -> Result<Plan, Error> {
        if convolution.groups != self.groups {
            let (wanted, found) = (convolution.groups, self.groups);
            return Err(Error::invalid_argument(format!(
                "expected a filter packed for {wanted} groups, found {found}"
            )));
        }
        convolution.plan(input, &self.extents)
    }

    /// How the outputs are cut into blocks.
    fn grid(&self, plan: &Plan) -> Grid {
        let width = plan
            .windows
            .0
            .map(|laid| laid.window.stride.min(laid.window.extent));
        let row_len = width
            .iter()
            .product::<usize>()
            .saturating_mul(plan.channels);
        // Without filters there may be any number of outputs, none of which is made.
        let n_rows = plan.batch.saturating_mul(plan.windows.n_outputs());
        let grid = Grid::new(n_rows, self.layout, row_len);
        match self.groups {
            1 => grid,
            // All groups' columns make a row.
            _ => grid.with_whole_rows(),
        }
    }

    /// Makes a block of all groups.
    fn block(
        &self,
        sides: Sides<'_>,
        block: &Block,
        after: &After<'_>,
        out: &mut [f32],
        stride: usize,
    ) {
        let Sides {
            plan,
            input,
            elements,
        } = sides;
        for group in 0..self.groups {
            let column = group * self.layout.n_columns;
            let columns = column..column + self.layout.n_columns;
            let finishing = after.finishing(columns, plan.filters);
            let patches = Patches::new(plan, input, group);
            let panels = self.panels(elements, group);
            multiply(
                &patches,
                panels,
                block,
                &finishing,
                &mut out[column..],
                stride,
            );
        }
    }
}

/// What is multiplied.
#[derive(Clone, Copy, Debug)]
struct Sides<'a> {
    plan: &'a Plan,
    input: &'a [f32],
    /// Those of the packed filter.
    elements: &'a [f32],
}

/// The layout of a group, and how many elements all groups have.
fn layout(set: InstructionSet, extents: &[usize], groups: usize) -> Result<(Layout, usize), Error> {
    set.expect_available()?;
    let [taps @ .., own_channels, filters] = extents else {
        let message = format!(
            "expected a filter of shape [window.., channels / groups, filters], found {extents:?}"
        );
        return Err(Error::invalid_argument(message));
    };
    if groups == 0 || filters % groups != 0 {
        let message = format!("{filters} filters can't be divided into {groups} groups");
        return Err(Error::invalid_argument(message));
    }
    let too_many = || Error::invalid_argument("a packed filter does not fit any memory");
    let depth = taps
        .iter()
        .try_fold(*own_channels, |product, extent| {
            product.checked_mul(*extent)
        })
        .ok_or_else(too_many)?;
    let layout = Layout {
        set,
        depth,
        n_columns: filters / groups,
    };
    let n_elements = layout
        .n_elements()
        .and_then(|n| n.checked_mul(groups))
        .ok_or_else(too_many)?;
    Ok((layout, n_elements))
}

/// As [`convolve`](super::convolve), by a packed filter.
///
/// # Errors
///
/// `InvalidArgument` if the shapes don't fit, or if views do not lie in row-major order;
/// `FailedPrecondition` if somebody is writing the packed filter.
pub fn convolve_packed(
    convolution: &Convolution,
    input: &TensorView<'_, f32>,
    filter: &PackedFilter,
    after: After<'_>,
    out: &mut TensorViewMut<'_, f32>,
) -> Result<(), Error> {
    let plan = filter.plan(convolution, input.extents())?;
    plan.expect_output(out.extents())?;
    let input = in_order(input)?;
    let reading = filter.elements.read()?;
    let (elements, n) = (reading.elements()?, plan.filters);
    let out = out.as_mut_slice();
    after.check(n, out.len())?;
    if out.is_empty() {
        return Ok(());
    }
    let grid = filter.grid(&plan).with_whole_rows();
    for index in 0..grid.len() {
        let block = grid.block(index);
        let start = block.rows.start * n;
        let after = after.from(start);
        let out = &mut out[start..block.rows.end * n];
        let sides = Sides {
            plan: &plan,
            input,
            elements,
        };
        filter.block(sides, &block, &after, out, n);
    }
    Ok(())
}

/// As [`convolve_packed`], of dense tensors, on the workers of the request's queue if there is much to do.
///
/// # Errors
///
/// As of [`convolve_packed`]; the result fails with `FailedPrecondition` if somebody else uses `out`, or with the reason of
/// the request's cancellation.
pub fn convolve_packed_into(
    execution: &ExecutionContext,
    convolution: &Convolution,
    input: &DenseHostTensor,
    filter: &PackedFilter,
    after: TensorAfter,
    out: &DenseHostTensor,
) -> Result<AsyncValue<Chain>, Error> {
    crate::dense::expect_dtype::<f32>(input.metadata())?;
    let plan = filter.plan(convolution, &input.shape().to_dims())?;
    plan.expect_output(&out.shape().to_dims())?;
    after.check(plan.filters, out.n_elements())?;
    let grid = filter.grid(&plan);
    let (input, filter, n) = (input.clone(), filter.clone(), plan.filters);
    fill(
        execution,
        out,
        n,
        grid,
        after,
        move |block, after, out, stride| {
            let (input, elements) = (input.read()?, filter.elements.read()?);
            let sides = Sides {
                plan: &plan,
                input: input.elements()?,
                elements: elements.elements()?,
            };
            filter.block(sides, block, after, out, stride);
            Ok(())
        },
    )
}

#[cfg(test)]
mod tests;
