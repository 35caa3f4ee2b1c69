//! Arithmetic on tensors, on the processor: functions over typed views, which know nothing of kernels or
//! operations.
//!
//! | Module | Has |
//! | --- | --- |
//! | [`pointwise`] | unary and binary functions, comparisons, selection, with broadcasting; chains of them in one pass, as programs |
//! | [`elementwise`] | their formulas, for loops over typed slices |
//! | [`cast`] | conversions between all types, small ones too |
//! | [`reduce`] | sums, means, products, extrema, norms over any dimensions; positions of extrema |
//! | [`cumulative`] | sums, products and extrema of all elements up to each |
//! | [`top_k`] | the largest or smallest elements in order, and their positions |
//! | [`select`] | coordinates of elements that are not zero, unique elements; orders of elements |
//! | [`random`] | counter-based random numbers |
//! | [`quantize`] | integers and small floats with a scale and a zero point |
//! | [`softmax`] | softmax and its logarithm over any dimension |
//! | [`matmul`] | matrix products: transposed, batched, with epilogues |
//! | [`einsum`] | einsum: sums of products along labelled dimensions |
//! | [`linear`] | determinants |
//! | [`layout_copy`] | copies of elements: transpose, slice, pad, tile, gather, scatter, concatenate, split |
//! | [`attention`] | fused attention |
//! | [`recurrent`] | recurrent networks, linear attention |
//! | [`number`] | arithmetic of elements of each type |
//! | [`conv`] | convolutions and their gradients |
//! | [`normalize`] | layer, batch and RMS norm |
//! | [`groups`] | group and instance norm |
//! | [`gradient`] | gradients of softmax, cross entropy, layer norm; a list of the others |
//! | [`lrn`] | local response normalization, and normalization by the norm along a dimension |
//! | [`pool`] | largest elements and means of windows |
//! | [`resize`] | pictures of other extents: nearest, linear, cubic |
//! | [`sample`] | grid sampling, and pooling of regions (RoI align) |
//! | [`boxes`] | boxes in pictures, non-maximum suppression |
//! | [`fourier`] | discrete Fourier transforms |
//! | [`training`] | losses with their gradients, and steps of optimizers |
//! | [`trees`] | ensembles of decision trees |
//! | [`fold`] | patches added back to a picture (col2im) |
//! | [`window`] | windows of convolutions and pools: stride, dilation, padding |
//! | [`functions`] | the functions of one number that the processor does not have |
//! | [`packed_gemm`] | products by packed weights, for matrix products and convolutions |
//! | [`parallel`] | work on tensors cut into chunks, for a queue's workers |
//!
//! # The contract of chunks
//!
//! An output is made chunk by chunk, and where chunks begin depends on the shapes alone. What a chunk holds
//! does not depend on the others. Sums are taken in an order that the shapes fix ([`reduce`]). So a program
//! gives the same bits on any number of threads. The bits of a matrix product may differ between processors,
//! whose vectors differ in length; those of everything else don't, but for the functions that the
//! standard library takes from the system (logarithms and powers of `f64`, sines).
//!
//! # Vectors
//!
//! Inner loops are plain Rust over slices, compiled several times for the instruction sets that `pulp` knows
//! (on x86-64: SSE2, AVX2 with FMA, AVX-512); which one runs is chosen at the first call. Loops of reductions are
//! compiled so for floats of 32 and 64 bits alone.
//!
//! # Types
//!
//! Functions on tensors (`.._into`) have no type parameters: they find the loop for a [`DType`](crate::DType) in a
//! table, so that loops are compiled in this crate and nowhere else, and walks, chunks and errors once. What is only
//! moved is moved as words of its size.

#[allow(unsafe_code, reason = "a listed module")]
mod amx;
pub mod attention;
pub mod boxes;
mod broadcast;
pub mod byte_gemm;
pub mod byte_product;
pub mod cast;
pub mod conv;
pub mod cumulative;
mod dispatch;
pub mod einsum;
pub mod elementwise;
pub mod fold;
pub mod fourier;
pub mod functions;
pub mod gradient;
pub mod groups;
pub mod layout_copy;
pub mod linear;
pub mod lrn;
pub mod matmul;
pub mod n_bits;
pub mod normalize;
pub mod number;
pub mod optimizer;
pub mod packed_gemm;
#[allow(unsafe_code, reason = "a listed module")]
pub mod parallel;
pub mod pointwise;
pub mod pool;
pub mod quantize;
pub mod random;
pub mod recurrent;
pub mod reduce;
pub mod resize;
mod row_blocks;
#[allow(unsafe_code, reason = "a listed module")]
mod rows;
pub mod sample;
mod scratch;
pub mod select;
pub mod softmax;
#[cfg(test)]
mod testing;
pub mod top_k;
pub mod training;
pub mod trees;
pub mod window;

pub use dispatch::Family;

/// Runs a loop compiled for the best instruction set that this processor has.
#[inline(always)]
pub(crate) fn vectorized<R>(body: impl FnOnce() -> R) -> R {
    struct Body<F>(F);
    impl<R, F: FnOnce() -> R> pulp::WithSimd for Body<F> {
        type Output = R;

        #[inline(always)]
        fn with_simd<S: pulp::Simd>(self, _: S) -> R {
            (self.0)()
        }
    }
    packed_gemm::arch().dispatch(Body(body))
}

/// Runs a loop over elements of a type: [`vectorized`] for floats of 32 and 64 bits, whose speed matters to models;
/// for other types compiled once, for the instructions that every processor has.
#[inline(always)]
pub(crate) fn vectorized_for<T: crate::Element, R>(body: impl FnOnce() -> R) -> R {
    if matches!(T::DTYPE, crate::DType::F32 | crate::DType::F64) {
        return vectorized(body);
    }
    body()
}
