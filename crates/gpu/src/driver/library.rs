//! [`LibraryCall`]: calculations of the vendor's libraries as data: linear algebra, solvers, Fourier transforms, pooling
//! and convolutions. [`Exchange`]: what devices of a group give each other.
//!
//! Sizes are not checked against memory here: who makes a call does that ([`Extents::span`], [`Matrix::span`]).

use super::{DevicePointer, RawContext, RawStream};

/// The type of elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Number {
    /// A half-precision number.
    F16,
    /// A single-precision number.
    F32,
    /// A double-precision number.
    F64,
    /// An integer of so many bytes with a sign.
    Int(usize),
    /// An integer of so many bytes without a sign.
    Unsigned(usize),
}

impl Number {
    /// Returns the number of bytes.
    pub fn len_bytes(self) -> usize {
        match self {
            Number::F16 => 2,
            Number::F32 => 4,
            Number::F64 => 8,
            Number::Int(len) | Number::Unsigned(len) => len,
        }
    }
}

/// Elements of a vector.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Vector {
    /// The first one.
    pub at: DevicePointer,
    /// Elements from one to the next, which is positive.
    pub step: usize,
}

/// Matrices by columns, one or a batch.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Matrix {
    /// The first element.
    pub at: DevicePointer,
    /// Elements from one column to the next.
    pub height: usize,
    /// Elements from one matrix to the next.
    pub stride: usize,
    /// The type of elements.
    pub number: Number,
}

impl Matrix {
    /// Returns the number of bytes from the first element to the end of the last of `batch` matrices of so many rows and
    /// columns; `None` if that is no size.
    pub fn span(&self, rows: usize, columns: usize, batch: usize) -> Option<usize> {
        if rows == 0 || columns == 0 || batch == 0 {
            return Some(0);
        }
        let last = (columns - 1).checked_mul(self.height)?;
        let last = (batch - 1).checked_mul(self.stride)?.checked_add(last)?;
        last.checked_add(rows)?.checked_mul(self.number.len_bytes())
    }
}

/// A tensor of a library: dimensions and strides.
#[derive(Clone, Debug, PartialEq)]
pub struct Extents {
    /// The type of elements.
    pub number: Number,
    /// Images, channels, and the dimensions of an image.
    pub dims: Vec<usize>,
    /// Elements from one to the next along each dimension.
    pub strides: Vec<usize>,
}

impl Extents {
    /// Returns the number of bytes from the first element to the end of the last; `None` if that is no size.
    pub fn span(&self) -> Option<usize> {
        if self.dims.contains(&0) {
            return Some(0);
        }
        let mut last = 0_usize;
        for (dim, stride) in self.dims.iter().zip(&self.strides) {
            last = (dim - 1).checked_mul(*stride)?.checked_add(last)?;
        }
        last.checked_add(1)?.checked_mul(self.number.len_bytes())
    }
}

/// The kind of a pooling.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PoolKind {
    /// The greatest element.
    Max,
    /// The mean, for which padding counts as zeros.
    MeanWithPadding,
    /// The mean of what lies in the image.
    Mean,
}

/// Windows that go over an image, one of each per dimension of an image.
#[derive(Clone, Debug, PartialEq)]
pub struct Windows {
    /// Elements before the image.
    pub padding: Vec<usize>,
    /// Elements from one window to the next.
    pub step: Vec<usize>,
    /// Elements from one of a window to the next.
    pub dilation: Vec<usize>,
}

/// The part of a convolution that is calculated of the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConvolutionPart {
    /// The result.
    Result,
    /// The gradient by the image.
    Image,
    /// The gradient by the filter.
    Filter,
}

/// A call of a library, for one stream.
#[derive(Clone, Debug, PartialEq)]
pub enum LibraryCall {
    /// `y = alpha * x + y`; without `y`: `x = alpha * x`.
    Scale {
        /// The type of elements.
        number: Number,
        /// How many there are.
        n: usize,
        /// The factor.
        alpha: f64,
        /// The first vector.
        x: Vector,
        /// The second one.
        y: Option<Vector>,
    },
    /// `C = alpha * A * B + beta * C`.
    Product {
        /// Rows of `C`, its columns, and products in each sum.
        sizes: [usize; 3],
        /// Whether `A` and `B` are transposed.
        transposed: [bool; 2],
        /// The factors.
        factors: [f64; 2],
        /// `A`, `B` and `C`.
        matrices: [Matrix; 3],
        /// How many products there are.
        batch: usize,
    },
    /// `B` becomes the solution `X` of `A * X = alpha * B`, or `X * A = alpha * B`.
    Triangular {
        /// Rows and columns of `B`.
        sizes: [usize; 2],
        /// Whether `A` stands on the right.
        is_right: bool,
        /// Whether the upper part of `A` counts.
        is_upper: bool,
        /// Whether `A` is transposed.
        is_transposed: bool,
        /// Whether the diagonal of `A` is ones.
        is_unit: bool,
        /// The factor.
        alpha: f64,
        /// `A`.
        a: Matrix,
        /// `B`.
        b: Matrix,
        /// How many systems there are.
        batch: usize,
    },
    /// A Cholesky factorisation in place; `info` gets an integer for each.
    Cholesky {
        /// Rows and columns.
        n: usize,
        /// Whether the upper part counts, and is written.
        is_upper: bool,
        /// The matrices.
        a: Matrix,
        /// Where the results' codes go.
        info: DevicePointer,
        /// How many there are.
        batch: usize,
    },
    /// Fourier transforms.
    Fourier {
        /// The type of real and imaginary parts.
        number: Number,
        /// Whether there are imaginary parts in the input, and in the output.
        is_complex: [bool; 2],
        /// The sign of the exponent.
        is_inverse: bool,
        /// Dimensions of a transform.
        dims: Vec<usize>,
        /// Strides of the input: of the batch, and along each dimension.
        from_strides: Vec<usize>,
        /// Strides of the output.
        to_strides: Vec<usize>,
        /// How many transforms there are.
        batch: usize,
        /// The input.
        from: DevicePointer,
        /// The output, which may be the input.
        to: DevicePointer,
    },
    /// `y = alpha * pool(x) + beta * y`.
    Pool {
        /// The kind.
        kind: PoolKind,
        /// Whether a NaN is greater than any number.
        keeps_nan: bool,
        /// The size of a window.
        window: Vec<usize>,
        /// Where the windows are.
        windows: Windows,
        /// The factors.
        factors: [f64; 2],
        /// The image.
        x: (Extents, DevicePointer),
        /// The result.
        y: (Extents, DevicePointer),
        /// Instead of the result: its gradient, which is given, and that of the image, which is calculated.
        gradients: Option<[(Extents, DevicePointer); 2]>,
    },
    /// A convolution, or its gradient by one of its operands.
    Convolution {
        /// Which of the three is calculated.
        part: ConvolutionPart,
        /// Whether the filter is turned round.
        is_turned: bool,
        /// Where the windows are.
        windows: Windows,
        /// The image.
        x: (Extents, DevicePointer),
        /// The filter: outputs, inputs of a group, and the size of a window.
        w: (Extents, DevicePointer),
        /// The result.
        y: (Extents, DevicePointer),
    },
}

/// How elements of all ranks become one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reduction {
    /// The sum.
    Sum,
    /// The product.
    Product,
    /// The greatest.
    Max,
    /// The least.
    Min,
}

/// An exchange between the devices of a group, as one of them sees it. Sizes are in elements.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Exchange {
    /// The inputs of all ranks, reduced; each gets all of it, or if scattered its part.
    Reduce {
        /// The input.
        from: DevicePointer,
        /// The output.
        to: DevicePointer,
        /// Elements of the output.
        n: usize,
        /// Their type.
        number: Number,
        /// How they are reduced.
        reduction: Reduction,
        /// Whether each gets a part.
        is_scattered: bool,
    },
    /// The inputs of all ranks, one behind the other.
    Gather {
        /// The input.
        from: DevicePointer,
        /// The output.
        to: DevicePointer,
        /// Bytes of the input.
        len_bytes: usize,
    },
    /// Bytes for one other rank.
    Send {
        /// The input.
        from: DevicePointer,
        /// Bytes of it.
        len_bytes: usize,
        /// The other rank.
        peer: usize,
    },
    /// Bytes from one other rank.
    Receive {
        /// The output.
        to: DevicePointer,
        /// Bytes of it.
        len_bytes: usize,
        /// The other rank.
        peer: usize,
    },
}

/// A member of a group, and what it takes part in, in order.
#[derive(Clone, Debug)]
pub struct Member {
    /// Its context.
    pub context: RawContext,
    /// Its stream.
    pub stream: RawStream,
    /// Its exchanges.
    pub exchanges: Vec<Exchange>,
}
