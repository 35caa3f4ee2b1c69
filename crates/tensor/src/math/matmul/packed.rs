//! Products of `f32` matrices with a packed right side.

use std::ops::Range;
use std::sync::Arc;

use tfrt_host::{AsyncValue, Chain, DType, Error, ExecutionContext, HostAllocator};

use crate::math::packed_gemm::{
    BlockGrid, Epilogue, InstructionSet, Layout, Lhs, Panels, Partition, TensorEpilogue, fill,
    lay_all_again, multiply, pack,
};
use crate::{DenseHostTensor, TensorMetadata, TensorShape, TensorView, TensorViewMut};

/// A matrix that others are multiplied by from the left, laid out for an instruction set.
///
/// Clones share the elements.
#[derive(Clone, Debug)]
pub struct PackedRhs {
    // Invariant: its instruction set is one that the processor has.
    layout: Layout,
    // Invariant: `f32`s, as many as the layout says.
    elements: DenseHostTensor,
}

impl PackedRhs {
    /// Packs a matrix for the best instruction set of this processor. A transposed matrix is given as a view with
    /// exchanged dimensions ([`TensorView::permute`]).
    ///
    /// # Shapes
    ///
    /// `right: [k, n]`
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if it is no matrix, `ResourceExhausted` if there is no memory.
    ///
    /// # Examples
    ///
    /// ```
    /// use tfrt_host::kernel::KernelRegistry;
    /// use tfrt_tensor::math::matmul::{PackedRhs, matmul_packed};
    /// use tfrt_tensor::math::packed_gemm::Epilogue;
    /// use tfrt_tensor::{TensorView, TensorViewMut};
    ///
    /// let host = tfrt_host::HostContext::builder(KernelRegistry::new()).build();
    /// let right = TensorView::new(&[1.0, 0.0, 2.0, 1.0], &[2, 2])?;
    /// let right = PackedRhs::pack(host.allocator(), &right)?;
    /// let left = TensorView::new(&[3.0, 4.0], &[1, 2])?;
    /// let mut out = [0.0; 2];
    /// matmul_packed(&left, &right, Epilogue::default(), &mut TensorViewMut::new(&mut out, &[1, 2])?)?;
    /// assert_eq!(out, [11.0, 4.0]);
    /// # Ok::<(), tfrt_host::Error>(())
    /// ```
    pub fn pack(
        allocator: &Arc<dyn HostAllocator>,
        right: &TensorView<'_, f32>,
    ) -> Result<Self, Error> {
        Self::pack_for(allocator, InstructionSet::best(), right)
    }

    /// Packs a matrix for an instruction set; see [`pack`](Self::pack).
    ///
    /// # Errors
    ///
    /// Those of [`pack`](Self::pack), and `FailedPrecondition` if the processor does not have it.
    pub fn pack_for(
        allocator: &Arc<dyn HostAllocator>,
        set: InstructionSet,
        right: &TensorView<'_, f32>,
    ) -> Result<Self, Error> {
        set.expect_available()?;
        let (&[depth, n_columns], &[row, column]) = (right.extents(), right.strides()) else {
            let found = right.extents();
            let message = format!("expected a matrix to pack, found shape {found:?}");
            return Err(Error::invalid_argument(message));
        };
        let layout = Layout {
            set,
            depth,
            n_columns,
        };
        let n_elements = layout
            .n_elements()
            .ok_or_else(|| Error::resource_exhausted("a packed matrix does not fit any memory"))?;
        let metadata = TensorMetadata::new(DType::F32, TensorShape::new(&[n_elements])?);
        let mut elements = DenseHostTensor::zeroed(allocator, metadata)?;
        if n_elements > 0 {
            let packed = elements.elements_mut::<f32>()?;
            let packed = packed.expect("nobody else has it yet");
            pack(layout, right.elements(), 0, [row, column], packed);
        }
        Ok(PackedRhs { layout, elements })
    }

    /// Wraps elements that [`elements_for`](Self::elements_for) packed for any instruction set, on this processor or
    /// another: as they are if `to` is that set, repacked otherwise.
    ///
    /// # Shapes
    ///
    /// `extents: [k, n]` of the matrix that was packed.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if they are not as many `f32`s as the packed matrix has, `FailedPrecondition` if the
    /// processor does not have the instructions of `to`, `ResourceExhausted` if there is no memory.
    pub fn restore(
        allocator: &Arc<dyn HostAllocator>,
        [from, to]: [InstructionSet; 2],
        [depth, n_columns]: [usize; 2],
        elements: DenseHostTensor,
    ) -> Result<Self, Error> {
        to.expect_available()?;
        crate::dense::expect_dtype::<f32>(elements.metadata())?;
        let [packed, layout] = [from, to].map(|set| Layout {
            set,
            depth,
            n_columns,
        });
        let elements = match from == to {
            true => elements,
            false => lay_all_again(allocator, &elements, 1, [packed, layout])?,
        };
        let found = elements.n_elements();
        if layout.n_elements() != Some(found) {
            let set = from.name();
            return Err(Error::invalid_argument(format!(
                "a matrix of shape [{depth}, {n_columns}] packed for {set} has other elements than {found}"
            )));
        }
        Ok(PackedRhs { layout, elements })
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
        let layout = Layout { set, ..self.layout };
        lay_all_again(allocator, &self.elements, 1, [self.layout, layout])
    }

    /// Returns the extents of the matrix: `[k, n]`.
    pub fn extents(&self) -> [usize; 2] {
        [self.layout.depth, self.layout.n_columns]
    }

    /// Returns the instruction set that the matrix is packed for.
    pub fn instruction_set(&self) -> InstructionSet {
        self.layout.set
    }

    /// Replaces the elements by an equal tensor, so that several matrices share one.
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

    /// Returns the number of rows of all left matrices of this shape together.
    fn n_rows(&self, left: &[usize], out: &[usize]) -> Result<usize, Error> {
        let [k, n] = self.extents();
        let fits = match (left.split_last(), out.split_last()) {
            (Some((last, rows)), Some((out_last, out_rows))) => {
                (*last, *out_last) == (k, n) && rows == out_rows && !rows.is_empty()
            }
            _ => false,
        };
        if !fits {
            return Err(Error::invalid_argument(format!(
                "a product with a packed matrix of shape [{k}, {n}]: expected a left side of shape [.., {k}] and \
                 a result of shape [.., {n}], found {left:?} and {out:?}"
            )));
        }
        let rows = left.split_last().map_or(&[][..], |(_, rows)| rows);
        let n_rows = rows
            .iter()
            .try_fold(1_usize, |product, extent| product.checked_mul(*extent));
        n_rows
            .ok_or_else(|| Error::resource_exhausted("a product has more rows than fit any memory"))
    }

    fn panels<'p>(&self, elements: &'p [f32]) -> Panels<'p> {
        let layout = self.layout;
        Panels { layout, elements }
    }

    fn grid(&self, n_rows: usize) -> BlockGrid {
        BlockGrid::new(n_rows, self.layout, self.layout.depth)
    }
}

/// Multiplies by a packed matrix.
///
/// # Shapes
///
/// `left: [.., k]`, `right: [k, n]`, `out: [.., n]`
///
/// # Errors
///
/// `InvalidArgument` if the shapes are not that, or if `left` does not lie in row-major order,
/// `FailedPrecondition` if somebody is writing the packed matrix.
pub fn matmul_packed(
    left: &TensorView<'_, f32>,
    right: &PackedRhs,
    epilogue: Epilogue<'_>,
    out: &mut TensorViewMut<'_, f32>,
) -> Result<(), Error> {
    let n_rows = right.n_rows(left.extents(), out.extents())?;
    let elements = left.as_slice().ok_or_else(|| {
        Error::invalid_argument("a left side lies in row-major order: copy the view first")
    })?;
    let reading = right.elements.read()?;
    let ([k, n], out) = (right.extents(), out.as_mut_slice());
    epilogue.check(n, out.len())?;
    if out.is_empty() {
        return Ok(());
    }
    let (left, panels) = (
        DenseRows::new(elements, k),
        right.panels(reading.elements()?),
    );
    let grid = right.grid(n_rows).with_whole_rows();
    for index in 0..grid.len() {
        let block = grid.block(index);
        let (start, end) = (block.rows.start * n, block.rows.end * n);
        let block_epilogue = epilogue.from(start).for_block(0..n, n);
        let out = &mut out[start..end];
        multiply(&left, panels, &block, &block_epilogue, out, n);
        epilogue.finish(out)?;
    }
    Ok(())
}

/// Applies [`matmul_packed`] to dense tensors, on the workers of the request's queue if there is much to do.
///
/// # Errors
///
/// Those of [`matmul_packed`]; the result fails with `FailedPrecondition` if somebody else uses `out`, or with the
/// reason of the request's cancellation.
pub fn matmul_packed_into(
    execution: &ExecutionContext,
    left: &DenseHostTensor,
    right: &PackedRhs,
    epilogue: TensorEpilogue,
    out: &DenseHostTensor,
) -> Result<AsyncValue<Chain>, Error> {
    crate::dense::expect_dtype::<f32>(left.metadata())?;
    let n_rows = right.n_rows(&left.shape().to_dims(), &out.shape().to_dims())?;
    let [k, n] = right.extents();
    epilogue.check(n, out.n_elements())?;
    let (left, right, grid) = (left.clone(), right.clone(), right.grid(n_rows));
    fill(
        execution,
        out,
        n,
        grid,
        epilogue,
        move |block, epilogue, out, stride| {
            let (left, elements) = (left.read()?, right.elements.read()?);
            let left = DenseRows::new(left.elements()?, k);
            let panels = right.panels(elements.elements()?);
            multiply(
                &left,
                panels,
                block,
                &epilogue.for_block(0..n, n),
                out,
                stride,
            );
            Ok(())
        },
    )
}

/// Contiguous rows of `len` elements.
#[derive(Clone, Copy, Debug)]
pub(super) struct DenseRows<'a> {
    elements: &'a [f32],
    len: usize,
}

impl<'a> DenseRows<'a> {
    pub(super) fn new(elements: &'a [f32], len: usize) -> Self {
        DenseRows { elements, len }
    }
}

impl Lhs for DenseRows<'_> {
    fn parts(&self) -> (usize, usize) {
        (usize::from(self.len > 0), self.len)
    }

    fn row_stride(&self) -> usize {
        self.len
    }

    fn copy(&self, _: Range<usize>, _: &mut Vec<f32>) {}

    fn lay<'s>(
        &'s self,
        rows: Range<usize>,
        _: &'s [f32],
        _: &mut usize,
        parts: &mut Vec<&'s [f32]>,
    ) {
        if self.len > 0 {
            parts.extend(rows.map(|row| &self.elements[row * self.len..][..self.len]));
        }
    }
}

#[cfg(test)]
mod tests;
