//! Convolutions of `f32` by packed filters.

use std::sync::Arc;

use tfrt_host::{AsyncValue, Chain, DType, Error, ExecutionContext, HostAllocator};

use self::planes::Planes;
use super::patches::Patches;
use super::winograd::{self, Method, Tiling};
use super::{ConvPlan, Convolution, in_order};
use crate::math::packed_gemm::{
    Block, BlockGrid, Epilogue, InstructionSet, Layout, Panels, Partition, TensorEpilogue, fill,
    lay_all_again, multiply, pack,
};
use crate::{DenseHostTensor, Dims, TensorMetadata, TensorShape, TensorView, TensorViewMut};

mod concat;
mod planes;

pub use concat::{convolve_concat_extents, convolve_concat_into};

/// A filter, laid out for an instruction set.
///
/// Packing takes as long as reading and writing the filter, and pays as soon as it is used twice. Clones share
/// the elements.
#[derive(Clone, Debug)]
pub struct PackedFilter {
    /// Extents of the filter: `[window.., channels / groups, filters]`.
    extents: Dims,
    groups: usize,
    method: Method,
    /// Layout of one group, or of one place of a patch.
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
    /// use tfrt_tensor::math::packed_gemm::{Activation, Epilogue};
    /// use tfrt_tensor::math::window::{Padding, Window};
    /// use tfrt_tensor::{TensorView, TensorViewMut};
    ///
    /// let host = tfrt_host::HostContext::builder(KernelRegistry::new()).build();
    /// let filter = TensorView::new(&[1.0, 1.0], &[2, 1, 1])?;
    /// let packed = PackedFilter::pack(host.allocator(), &filter, 1)?;
    /// let convolution = Convolution::new(&[Window::new(2, 1, Padding::Valid)]);
    /// let x = TensorView::new(&[1.0_f32, 2.0, -3.0, -4.0], &[1, 4, 1])?;
    /// let mut out = [0.0; 3];
    /// let epilogue = Epilogue { activation: Activation::Relu, ..Epilogue::default() };
    /// convolve_packed(&convolution, &x, &packed, epilogue, &mut TensorViewMut::new(&mut out, &[1, 3, 1])?)?;
    /// assert_eq!(out, [3.0, 0.0, 0.0]);
    /// # Ok::<(), tfrt_host::Error>(())
    /// ```
    pub fn pack(
        allocator: &Arc<dyn HostAllocator>,
        filter: &TensorView<'_, f32>,
        groups: usize,
    ) -> Result<Self, Error> {
        let set = InstructionSet::best();
        Self::pack_for(allocator, set, Method::Direct, filter, groups)
    }

    /// Packs a filter for an instruction set, by the [`best`](Method::best) method for a convolution: the packed filter may
    /// be for windows of its stride and dilation alone.
    ///
    /// # Errors
    ///
    /// See [`pack_for`](Self::pack_for).
    pub fn pack_best(
        allocator: &Arc<dyn HostAllocator>,
        set: InstructionSet,
        convolution: &Convolution,
        filter: &TensorView<'_, f32>,
    ) -> Result<Self, Error> {
        let method = match set.is_bf16() {
            true => Method::Direct,
            false => Method::best(convolution, filter.extents()),
        };
        Self::pack_for(allocator, set, method, filter, convolution.groups)
    }

    /// Packs a filter for an instruction set and a method. A filter with elements that are not finite, or larger than
    /// 2^40, is packed for [`Method::Direct`].
    ///
    /// # Errors
    ///
    /// Those of [`pack`](Self::pack), `InvalidArgument` if the method is not for such filters, and
    /// `FailedPrecondition` if the processor does not have the instructions.
    pub fn pack_for(
        allocator: &Arc<dyn HostAllocator>,
        set: InstructionSet,
        method: Method,
        filter: &TensorView<'_, f32>,
        groups: usize,
    ) -> Result<Self, Error> {
        let right = in_order(filter)?;
        let method = match method == Method::Direct || Method::is_tame(right) {
            true => method,
            false => Method::Direct,
        };
        let (layout, n_elements) = layout(set, method, filter.extents(), groups)?;
        let shape = TensorShape::new(&[n_elements])?;
        let mut elements =
            DenseHostTensor::zeroed(allocator, TensorMetadata::new(DType::F32, shape))?;
        if n_elements > 0 {
            let packed = elements.elements_mut::<f32>()?;
            let packed = packed.expect("nobody else has it yet");
            let filters = filter.extents().last().copied().unwrap_or(0);
            if method == Method::Direct {
                let parts = packed.chunks_exact_mut(n_elements / groups);
                for (group, part) in parts.enumerate() {
                    pack(layout, right, group * layout.n_columns, [filters, 1], part);
                }
            } else {
                winograd::pack_filter(method, layout, right, filters, packed);
            }
        }
        Ok(PackedFilter {
            extents: Dims::from_slice(filter.extents()),
            groups,
            method,
            layout,
            elements,
        })
    }

    /// Wraps elements that [`elements`](Self::elements) gave, for a filter of these extents. Their number tells the
    /// method.
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
        let found = elements.n_elements();
        let (direct, n_elements) = layout(set, Method::Direct, extents, groups)?;
        let mut chosen = (found == n_elements).then_some((Method::Direct, direct));
        for method in [Method::Winograd2, Method::Winograd4] {
            if chosen.is_none() && method.takes(extents, groups) {
                let (layout, n_elements) = layout(set, method, extents, groups)?;
                chosen = (found == n_elements).then_some((method, layout));
            }
        }
        let Some((method, layout)) = chosen else {
            let set = set.name();
            return Err(Error::invalid_argument(format!(
                "a filter of shape {extents:?} packed for {set} has {n_elements} elements, found {found}"
            )));
        };
        Ok(PackedFilter {
            extents: Dims::from_slice(extents),
            groups,
            method,
            layout,
            elements,
        })
    }

    /// Wraps elements that [`elements_for`](Self::elements_for) packed for any instruction set, on this processor or
    /// another: as they are if `to` is that set, repacked otherwise. The products are those of a filter that was
    /// packed for `to`.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if they are not as many `f32`s as the packed filter has, or if the method is not for
    /// such filters; `FailedPrecondition` if the processor does not have the instructions of `to`;
    /// `ResourceExhausted` if there is no memory.
    pub fn restore(
        allocator: &Arc<dyn HostAllocator>,
        [from, to]: [InstructionSet; 2],
        method: Method,
        (extents, groups): (&[usize], usize),
        elements: DenseHostTensor,
    ) -> Result<Self, Error> {
        to.expect_available()?;
        crate::dense::expect_dtype::<f32>(elements.metadata())?;
        let (layout, n_elements) = layout_of(to, method, extents, groups)?;
        let elements = match from == to {
            true => elements,
            false => {
                let (packed, _) = layout_of(from, method, extents, groups)?;
                let n_parts = groups * method.n_places();
                lay_all_again(allocator, &elements, n_parts, [packed, layout])?
            }
        };
        let found = elements.n_elements();
        if found != n_elements {
            let (set, method) = (from.name(), method.name());
            return Err(Error::invalid_argument(format!(
                "a filter of shape {extents:?} packed for {set} and {method} has other elements than {found}"
            )));
        }
        Ok(PackedFilter {
            extents: Dims::from_slice(extents),
            groups,
            method,
            layout,
            elements,
        })
    }

    /// Returns the elements as they are laid out for an instruction set, which this processor need not have.
    ///
    /// # Errors
    ///
    /// `ResourceExhausted` if there is no memory.
    pub fn elements_for(
        &self,
        allocator: &Arc<dyn HostAllocator>,
        set: InstructionSet,
    ) -> Result<DenseHostTensor, Error> {
        if set == self.layout.set {
            return Ok(self.elements.clone());
        }
        let (layout, _) = layout_of(set, self.method, &self.extents, self.groups)?;
        let n_parts = self.groups * self.method.n_places();
        lay_all_again(allocator, &self.elements, n_parts, [self.layout, layout])
    }

    /// Returns the number of groups.
    pub fn groups(&self) -> usize {
        self.groups
    }

    /// Returns the extents of the filter that was packed.
    pub fn extents(&self) -> &[usize] {
        &self.extents
    }

    /// Returns the instruction set that the filter is packed for.
    pub fn instruction_set(&self) -> InstructionSet {
        self.layout.set
    }

    /// Returns the algorithm that the filter is packed for.
    pub fn method(&self) -> Method {
        self.method
    }

    /// Replaces the elements by an equal tensor, so that several filters share one.
    #[must_use]
    pub fn map_elements(mut self, of: impl FnOnce(DenseHostTensor) -> DenseHostTensor) -> Self {
        let elements = of(self.elements.clone());
        if elements.metadata() == self.elements.metadata() {
            self.elements = elements;
        }
        self
    }

    /// Returns the elements as they are laid out.
    pub fn elements(&self) -> &DenseHostTensor {
        &self.elements
    }

    /// Returns the panels of a group.
    fn panels<'p>(&self, elements: &'p [f32], group: usize) -> Panels<'p> {
        let len = elements.len() / self.groups;
        Panels {
            layout: self.layout,
            elements: &elements[group * len..(group + 1) * len],
        }
    }

    fn plan(&self, convolution: &Convolution, input: &[usize]) -> Result<ConvPlan, Error> {
        if convolution.groups != self.groups {
            let (wanted, found) = (convolution.groups, self.groups);
            return Err(Error::invalid_argument(format!(
                "expected a filter packed for {wanted} groups, found {found}"
            )));
        }
        let plan = convolution.plan(input, &self.extents)?;
        if !self.method.fits(&plan) {
            let message =
                "a filter packed for windows of stride 1 without dilation is used for others";
            return Err(Error::invalid_argument(message));
        }
        Ok(plan)
    }

    fn tiling(&self, plan: &ConvPlan) -> Tiling {
        Tiling::new(plan, self.method, self.layout)
    }

    /// Returns the blocks of outputs for the direct method.
    fn grid(&self, plan: &ConvPlan) -> BlockGrid {
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
        let grid = BlockGrid::new(n_rows, self.layout, row_len);
        match self.groups {
            1 => grid,
            n_groups => grid.of_groups(n_groups),
        }
    }

    /// Makes a block of the output, of all groups.
    fn block(
        &self,
        sides: ConvOperands<'_>,
        block: &Block,
        epilogue: &Epilogue<'_>,
        out: &mut [f32],
        stride: usize,
    ) {
        let ConvOperands {
            plan,
            input,
            elements,
        } = sides;
        for group in 0..self.groups {
            let column = group * self.layout.n_columns;
            let columns = column..column + self.layout.n_columns;
            let block_epilogue = epilogue.for_block(columns, plan.filters);
            let panels = self.panels(elements, group);
            let out = &mut out[column..];
            let planes = match self.layout.set.is_bf16() {
                true => None,
                false => Planes::new(plan, group),
            };
            if let Some(planes) = planes {
                planes.multiply(input, panels, block, &block_epilogue, out, stride);
                continue;
            }
            let patches = Patches::new(plan, input, group);
            multiply(&patches, panels, block, &block_epilogue, out, stride);
        }
    }
}

/// Operands of a direct convolution, which runs as a matrix product: an image, and a packed filter. Borrowed for one
/// call.
#[derive(Clone, Copy, Debug)]
struct ConvOperands<'a> {
    plan: &'a ConvPlan,
    input: &'a [f32],
    /// Elements of the packed filter.
    elements: &'a [f32],
}

/// Returns the layout of a group, and how many elements all groups have.
fn layout(
    set: InstructionSet,
    method: Method,
    extents: &[usize],
    groups: usize,
) -> Result<(Layout, usize), Error> {
    set.expect_available()?;
    layout_of(set, method, extents, groups)
}

/// Returns the layout, whether the processor has the instructions or not.
fn layout_of(
    set: InstructionSet,
    method: Method,
    extents: &[usize],
    groups: usize,
) -> Result<(Layout, usize), Error> {
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
    let too_many = || Error::resource_exhausted("a packed filter does not fit any memory");
    let depth = taps
        .iter()
        .try_fold(*own_channels, |product, extent| {
            product.checked_mul(*extent)
        })
        .ok_or_else(too_many)?;
    if !method.takes(extents, groups) {
        return Err(Error::invalid_argument(format!(
            "a filter of shape {extents:?} in {groups} groups can't be packed for {method:?}: it takes windows of \
             3x3 without groups"
        )));
    }
    let layout = match method {
        Method::Direct => Layout {
            set,
            depth,
            n_columns: filters / groups,
        },
        _ => winograd::layout(set, *own_channels, *filters).ok_or_else(too_many)?,
    };
    let n_elements = layout
        .n_elements()
        .and_then(|n| n.checked_mul(groups.checked_mul(method.n_places())?))
        .ok_or_else(too_many)?;
    Ok((layout, n_elements))
}

/// Calculates a convolution by a packed filter; see [`convolve`](super::convolve).
///
/// # Errors
///
/// `InvalidArgument` if the shapes don't fit, or if views do not lie in row-major order;
/// `FailedPrecondition` if somebody is writing the packed filter.
pub fn convolve_packed(
    convolution: &Convolution,
    input: &TensorView<'_, f32>,
    filter: &PackedFilter,
    epilogue: Epilogue<'_>,
    out: &mut TensorViewMut<'_, f32>,
) -> Result<(), Error> {
    let plan = filter.plan(convolution, input.extents())?;
    plan.expect_output(out.extents())?;
    let input = in_order(input)?;
    let reading = filter.elements.read()?;
    let (elements, n) = (reading.elements()?, plan.filters);
    let out = out.as_mut_slice();
    epilogue.check(n, out.len())?;
    if out.is_empty() {
        return Ok(());
    }
    if filter.method != Method::Direct {
        let tiling = filter.tiling(&plan).with_whole_rows();
        let sides = winograd::WinogradOperands {
            plan: &plan,
            tiling: &tiling,
            input,
            filter: elements,
        };
        for index in 0..tiling.len() {
            let block = tiling.block(index);
            let start = block.rows.start * n;
            let block_epilogue = epilogue.from(start).for_block(0..n, n);
            let out = &mut out[start..block.rows.end * n];
            sides.block(&block, &block_epilogue, out, n);
            epilogue.finish(out)?;
        }
        return Ok(());
    }
    let grid = filter.grid(&plan).with_whole_rows();
    for index in 0..grid.len() {
        let block = grid.block(index);
        let start = block.rows.start * n;
        let epilogue = epilogue.from(start);
        let out = &mut out[start..block.rows.end * n];
        let sides = ConvOperands {
            plan: &plan,
            input,
            elements,
        };
        filter.block(sides, &block, &epilogue, out, n);
        epilogue.finish(out)?;
    }
    Ok(())
}

/// Applies [`convolve_packed`] to dense tensors, on the workers of the request's queue if there is much to do.
///
/// # Errors
///
/// Those of [`convolve_packed`]; the result fails with `FailedPrecondition` if somebody else uses `out`, or with the reason of
/// the request's cancellation.
pub fn convolve_packed_into(
    execution: &ExecutionContext,
    convolution: &Convolution,
    input: &DenseHostTensor,
    filter: &PackedFilter,
    epilogue: TensorEpilogue,
    out: &DenseHostTensor,
) -> Result<AsyncValue<Chain>, Error> {
    crate::dense::expect_dtype::<f32>(input.metadata())?;
    let plan = filter.plan(convolution, &input.shape().to_dims())?;
    plan.expect_output(&out.shape().to_dims())?;
    epilogue.check(plan.filters, out.n_elements())?;
    let (input, filter, n) = (input.clone(), filter.clone(), plan.filters);
    if filter.method != Method::Direct {
        let tiling = filter.tiling(&plan);
        return fill(
            execution,
            out,
            n,
            tiling,
            epilogue,
            move |block, epilogue, out, stride| {
                let (input, elements) = (input.read()?, filter.elements.read()?);
                let sides = winograd::WinogradOperands {
                    plan: &plan,
                    tiling: &tiling,
                    input: input.elements()?,
                    filter: elements.elements()?,
                };
                let block_epilogue = epilogue.for_block(tiling.columns(block), n);
                sides.block(block, &block_epilogue, out, stride);
                Ok(())
            },
        );
    }
    let grid = filter.grid(&plan);
    fill(
        execution,
        out,
        n,
        grid,
        epilogue,
        move |block, epilogue, out, stride| {
            let (input, elements) = (input.read()?, filter.elements.read()?);
            let sides = ConvOperands {
                plan: &plan,
                input: input.elements()?,
                elements: elements.elements()?,
            };
            filter.block(sides, block, epilogue, out, stride);
            Ok(())
        },
    )
}

#[cfg(test)]
mod tests;
