//! Linear algebra, solvers and Fourier transforms: operands become a [`LibraryCall`] whose sizes are checked.

use tfrt_host::{AnyAsyncValue, Chain, Error};

use super::buffers::Buffer;
use super::count;
use super::objects::Stream;
use crate::driver::DevicePointer;
use crate::driver::library::{LibraryCall, Matrix, Number, Vector};

/// Takes the place of addresses until a call is queued.
const NOWHERE: DevicePointer = DevicePointer(0);

/// Queues a call of a library. `place` puts the buffers' addresses into it.
pub(super) fn call(
    stream: &Stream,
    buffers: &[&Buffer],
    mut call: LibraryCall,
    place: impl FnOnce(&mut LibraryCall, &[DevicePointer]),
) -> Result<Chain, Error> {
    stream.queue(buffers, |pointers| {
        place(&mut call, pointers);
        let raw = stream.context.inner().raw();
        let driver = stream.context.driver();
        driver.call(raw, stream.stream.raw(), call)
    })?;
    Ok(Chain)
}

/// Returns the library's value of a keyword, which must be CUDA's.
pub(super) fn keyword(attribute: i32) -> Result<i32, Error> {
    match attribute & 3 {
        1 => Ok(attribute >> 2),
        _ => {
            let message = format!("expected a constant of CUDA's libraries, found {attribute}");
            Err(Error::invalid_argument(message))
        }
    }
}

/// Returns the type that CUDA's libraries have the number for.
pub(super) fn number(code: i32) -> Result<Number, Error> {
    match code {
        0 => Ok(Number::F32),
        1 => Ok(Number::F64),
        2 => Ok(Number::F16),
        _ => Err(Error::invalid_argument(format!(
            "Invalid cudaDataType value: {code}"
        ))),
    }
}

/// Returns whether a matrix is transposed.
pub(super) fn transposed(code: i32) -> Result<bool, Error> {
    match code {
        0 => Ok(false),
        1 | 2 => Ok(true),
        _ => Err(Error::invalid_argument(format!(
            "Invalid BlasOperation value: {code}"
        ))),
    }
}

/// Returns one of two by a constant of which 0 stands for the first.
pub(super) fn either(what: &str, code: i32) -> Result<bool, Error> {
    match code {
        0 => Ok(false),
        1 => Ok(true),
        _ => Err(Error::invalid_argument(format!(
            "Invalid {what} value: {code}"
        ))),
    }
}

/// Returns a factor.
pub(super) fn factor(value: &AnyAsyncValue) -> Result<f64, Error> {
    let found = None
        .or_else(|| value.get_in_place::<f32>().map(f64::from))
        .or_else(|| value.get_in_place::<f64>());
    found.ok_or_else(|| {
        let found = value.type_name().unwrap_or("a value of unknown type");
        Error::invalid_argument(format!(
            "expected a factor of type f32 or f64, found {found}"
        ))
    })
}

/// A vector of a call: its buffer, and elements from one to the next.
pub(super) type Steps<'b> = (&'b Buffer, i32);

fn vector((buffer, step): Steps<'_>, n: usize, number: Number) -> Result<Vector, Error> {
    let step = usize::try_from(step).ok().filter(|step| *step > 0);
    let step = step.ok_or_else(|| Error::invalid_argument("expected strides above 0"))?;
    let last = n.saturating_sub(1).checked_mul(step);
    let needed = last.and_then(|last| (last + n.min(1)).checked_mul(number.len_bytes()));
    buffer.expect_len("a vector", needed)?;
    Ok(Vector { at: NOWHERE, step })
}

/// Queues `y = alpha * x + y`, or without `y` `x = alpha * x`.
pub(super) fn scale(
    stream: &Stream,
    n: i32,
    alpha: f64,
    number: Number,
    x: Steps<'_>,
    y: Option<Steps<'_>>,
) -> Result<Chain, Error> {
    let n = count("a number of elements", i64::from(n))?;
    let library = LibraryCall::Scale {
        number,
        n,
        alpha,
        x: vector(x, n, number)?,
        y: y.map(|y| vector(y, n, number)).transpose()?,
    };
    let mut buffers = vec![x.0];
    buffers.extend(y.map(|y| y.0));
    call(stream, &buffers, library, |call, at| {
        if let LibraryCall::Scale { x, y, .. } = call {
            x.at = at[0];
            if let Some(y) = y {
                y.at = at[1];
            }
        }
    })
}

/// A matrix of a call: buffer, type, elements from one column to the next, and from one matrix to the next.
pub(super) type Given<'b> = (&'b Buffer, Number, i32, i64);

/// Returns a matrix of so many rows and columns, of which a batch lies in its buffer.
fn matrix(
    what: &str,
    (buffer, number, height, stride): Given<'_>,
    [rows, columns]: [usize; 2],
    batch: usize,
) -> Result<Matrix, Error> {
    let height = count("a height of 0 or more", i64::from(height))?;
    if height < rows {
        let message = format!("{what} has {rows} rows, its columns lie {height} elements apart");
        return Err(Error::invalid_argument(message));
    }
    let matrix = Matrix {
        at: NOWHERE,
        height,
        stride: count("a stride of 0 or more", stride)?,
        number,
    };
    buffer.expect_len(what, matrix.span(rows, columns, batch))?;
    Ok(matrix)
}

/// Sizes and factors of products.
pub(super) struct Product {
    pub(super) sizes: [i32; 3],
    pub(super) transposed: [bool; 2],
    pub(super) factors: [f64; 2],
    pub(super) batch: i32,
}

/// Queues products of matrices.
pub(super) fn product(
    stream: &Stream,
    product: &Product,
    [a, b, c]: [Given<'_>; 3],
) -> Result<Chain, Error> {
    let mut sizes = [0; 3];
    for (size, given) in sizes.iter_mut().zip(product.sizes) {
        *size = count("a size of 0 or more", i64::from(given))?;
    }
    let [m, n, k] = sizes;
    let batch = count("a number of products", i64::from(product.batch))?;
    if batch > 1 && c.3 == 0 {
        return Err(Error::invalid_argument(
            "expected a stride above 0 of several results",
        ));
    }
    let of = |rows, columns, is_transposed| match is_transposed {
        true => [columns, rows],
        false => [rows, columns],
    };
    let library = LibraryCall::Product {
        sizes,
        transposed: product.transposed,
        factors: product.factors,
        matrices: [
            matrix("matrix A", a, of(m, k, product.transposed[0]), batch)?,
            matrix("matrix B", b, of(k, n, product.transposed[1]), batch)?,
            matrix("matrix C", c, [m, n], batch)?,
        ],
        batch,
    };
    call(stream, &[a.0, b.0, c.0], library, |call, at| {
        if let LibraryCall::Product { matrices, .. } = call {
            for (matrix, at) in matrices.iter_mut().zip(at) {
                matrix.at = *at;
            }
        }
    })
}

/// Sizes and kind of a triangular system.
pub(super) struct Triangular {
    pub(super) sizes: [i32; 2],
    pub(super) is_right: bool,
    pub(super) is_upper: bool,
    pub(super) is_transposed: bool,
    pub(super) is_unit: bool,
    pub(super) number: Number,
    pub(super) alpha: f64,
    pub(super) batch: i32,
}

/// Queues the solution of triangular systems that lie behind each other.
pub(super) fn triangular(
    stream: &Stream,
    system: &Triangular,
    (a, height_a): Steps<'_>,
    (b, height_b): Steps<'_>,
) -> Result<Chain, Error> {
    let m = count("a size of 0 or more", i64::from(system.sizes[0]))?;
    let n = count("a size of 0 or more", i64::from(system.sizes[1]))?;
    let batch = count("a number of systems", i64::from(system.batch))?;
    let size = if system.is_right { n } else { m };
    let stride = |size: usize| i64::try_from(size).unwrap_or(i64::MAX);
    let number = system.number;
    let given_a = (a, number, height_a, stride(size * size));
    let given_b = (b, number, height_b, stride(m * n));
    let library = LibraryCall::Triangular {
        sizes: [m, n],
        is_right: system.is_right,
        is_upper: system.is_upper,
        is_transposed: system.is_transposed,
        is_unit: system.is_unit,
        alpha: system.alpha,
        a: matrix("matrix A", given_a, [size, size], batch)?,
        b: matrix("matrix B", given_b, [m, n], batch)?,
        batch,
    };
    call(stream, &[a, b], library, |call, at| {
        if let LibraryCall::Triangular { a, b, .. } = call {
            (a.at, b.at) = (at[0], at[1]);
        }
    })
}

/// Queues Cholesky factorisations of matrices that lie behind each other.
pub(super) fn cholesky(
    stream: &Stream,
    [n, stride, batch]: [i32; 3],
    is_upper: bool,
    number: Number,
    a: &Buffer,
    info: &Buffer,
) -> Result<Chain, Error> {
    let n = count("a size of 0 or more", i64::from(n))?;
    let batch = count("a number of matrices", i64::from(batch))?;
    let apart = i64::try_from(n * n).unwrap_or(i64::MAX);
    info.expect_len("the code of the result", batch.checked_mul(4))?;
    let library = LibraryCall::Cholesky {
        n,
        is_upper,
        a: matrix("the matrix", (a, number, stride, apart), [n, n], batch)?,
        info: NOWHERE,
        batch,
    };
    call(stream, &[a, info], library, |call, at| {
        if let LibraryCall::Cholesky { a, info, .. } = call {
            (a.at, *info) = (at[0], at[1]);
        }
    })
}

/// A plan of Fourier transforms.
#[derive(Clone)]
pub(super) struct Fourier {
    number: Number,
    is_complex: [bool; 2],
    batch: usize,
    dims: Vec<usize>,
    strides: [Vec<usize>; 2],
}

impl Fourier {
    /// Makes a plan of the kind that the library has the number for.
    pub(super) fn new(
        kind: i32,
        batch: i64,
        dims: &[i64],
        strides: [&[i64]; 2],
    ) -> Result<Fourier, Error> {
        let (number, is_complex) = match kind {
            0x29 => (Number::F32, [true, true]),
            0x2a => (Number::F32, [false, true]),
            0x2c => (Number::F32, [true, false]),
            0x69 => (Number::F64, [true, true]),
            0x6a => (Number::F64, [false, true]),
            0x6c => (Number::F64, [true, false]),
            _ => {
                let message = format!("Invalid cufftType value: {kind}");
                return Err(Error::invalid_argument(message));
            }
        };
        if dims.is_empty() || dims.len() > 3 {
            return Err(Error::invalid_argument("dims should have rank 1, 2, or 3."));
        }
        for (name, strides) in ["in_strides", "out_strides"].iter().zip(strides) {
            if strides.len() != dims.len() + 1 {
                let message = format!("{name} should be one larger than dims.");
                return Err(Error::invalid_argument(message));
            }
            if strides.windows(2).any(|pair| pair[0] < pair[1]) {
                return Err(Error::invalid_argument(
                    "Only row-major layout is supported",
                ));
            }
        }
        let sizes = |what: &str, all: &[i64], least: i64| {
            let each = all.iter().map(|n| match *n < least {
                true => Err(Error::invalid_argument(format!(
                    "expected {what}, found {n}"
                ))),
                false => count(what, *n),
            });
            each.collect::<Result<Vec<usize>, Error>>()
        };
        Ok(Fourier {
            number,
            is_complex,
            batch: count("a number of transforms", batch)?,
            dims: sizes("dimensions above 0", dims, 1)?,
            strides: [
                sizes("strides of 0 or more", strides[0], 0)?,
                sizes("strides of 0 or more", strides[1], 0)?,
            ],
        })
    }

    /// Returns how many bytes an operand takes.
    fn span(&self, side: usize) -> Option<usize> {
        if self.batch == 0 {
            return Some(0);
        }
        let mut dims = self.dims.clone();
        if let (Some(last), [true, false] | [false, true]) = (dims.last_mut(), self.is_complex)
            && self.is_complex[side]
        {
            *last = *last / 2 + 1;
        }
        let sizes = std::iter::once(self.batch).chain(dims.iter().copied());
        let mut last = 0_usize;
        for (size, stride) in sizes.zip(&self.strides[side]) {
            last = (size - 1).checked_mul(*stride)?.checked_add(last)?;
        }
        // Elements that lie in one place would be more than the buffer holds.
        let n: usize = dims
            .iter()
            .try_fold(self.batch, |n, dim| n.checked_mul(*dim))?;
        if n > last.checked_add(1)? {
            return None;
        }
        let n_parts = 1 + usize::from(self.is_complex[side]);
        last.checked_add(1)?
            .checked_mul(n_parts * self.number.len_bytes())
    }

    /// Queues the transforms.
    pub(super) fn execute(
        &self,
        stream: &Stream,
        from: &Buffer,
        to: &Buffer,
        is_inverse: bool,
    ) -> Result<Chain, Error> {
        from.expect_len("the input", self.span(0))?;
        to.expect_len("the output", self.span(1))?;
        let library = LibraryCall::Fourier {
            number: self.number,
            is_complex: self.is_complex,
            is_inverse,
            dims: self.dims.clone(),
            from_strides: self.strides[0].clone(),
            to_strides: self.strides[1].clone(),
            batch: self.batch,
            from: NOWHERE,
            to: NOWHERE,
        };
        call(stream, &[from, to], library, |call, at| {
            if let LibraryCall::Fourier { from, to, .. } = call {
                (*from, *to) = (at[0], at[1]);
            }
        })
    }
}
