//! Linear algebra, solvers and Fourier transforms.

#![expect(
    clippy::too_many_arguments,
    reason = "the operands of the original's operations"
)]

use tfrt_host::kernel::{Attr, KernelRegistry};
use tfrt_host::{AnyAsyncValue, Chain, Error};

use super::{Blas, Buffer, Context, Fft, GemmAlgorithm, Solver, Stream};
use crate::dialect::linear::{
    self, Fourier, Product, Triangular, either, factor, keyword, number, transposed,
};

pub(super) fn register(registry: &mut KernelRegistry) {
    registry
        .add("tfrt_gpu.blas.create", |context: &Context| {
            Blas(context.0.clone())
        })
        .add("tfrt_gpu.blas.gemm.algo", |algorithm: Attr<i32>| {
            GemmAlgorithm(*algorithm)
        })
        .add("tfrt_gpu.blas.axpy", axpy)
        .add("tfrt_gpu.blas.scal", scal)
        .add("tfrt_gpu.blas.gemm", gemm)
        .add("tfrt_gpu.blas.gemm.batch", gemm_batch)
        .add("tfrt_gpu.blas.trsm.batch", trsm)
        .add("tfrt_gpu.solver.create", |context: &Context| {
            Solver(context.0.clone())
        })
        .add("tfrt_gpu.solver.potrf.buffer_size", potrf_size)
        .add("tfrt_gpu.solver.potrf", potrf)
        .add("tfrt_gpu.solver.potrf.batch", potrf_batch)
        .add("tfrt_gpu.fft.create", fft)
        .add("tfrt_gpu.fft.get_workspace_size", |_: &Fft| 0_i64)
        .add("tfrt_gpu.fft.execute", fft_execute);
}

/// Refuses types that differ.
fn expect_equal(types: &[i32]) -> Result<(), Error> {
    match types.windows(2).all(|pair| pair[0] == pair[1]) {
        true => Ok(()),
        false => Err(Error::invalid_argument(
            "expected the same type of alpha, vectors and calculation",
        )),
    }
}

/// `%c1 = tfrt_gpu.blas.axpy %handle, %stream, %n, %alpha, CUDA_R_32F, %x, CUDA_R_32F, %step, %y, ..`
fn axpy(
    (blas, stream): (&Blas, &Stream),
    n: i32,
    alpha: AnyAsyncValue,
    (x, step_x): (&Buffer, i32),
    (y, step_y): (&Buffer, i32),
    _: Chain,
    execution_type: Attr<i32>,
    type_alpha: Attr<i32>,
    type_x: Attr<i32>,
    type_y: Attr<i32>,
) -> Result<Chain, Error> {
    stream.context.expect("a handle", blas.inner())?;
    expect_equal(&[*type_alpha, *type_x, *type_y, *execution_type])?;
    let number = number(keyword(*type_x)?)?;
    let (x, y) = ((&x.0, step_x), Some((&y.0, step_y)));
    linear::scale(stream, n, factor(&alpha)?, number, x, y)
}

/// `%c1 = tfrt_gpu.blas.scal %handle, %stream, %n, %alpha, CUDA_R_32F, %x, CUDA_R_32F, %step, CUDA_R_32F, %c0`
fn scal(
    (blas, stream): (&Blas, &Stream),
    n: i32,
    alpha: AnyAsyncValue,
    (x, step): (&Buffer, i32),
    _: Chain,
    execution_type: Attr<i32>,
    type_alpha: Attr<i32>,
    type_x: Attr<i32>,
) -> Result<Chain, Error> {
    stream.context.expect("a handle", blas.inner())?;
    expect_equal(&[*type_alpha, *type_x, *execution_type])?;
    let number = number(keyword(*type_x)?)?;
    linear::scale(stream, n, factor(&alpha)?, number, (&x.0, step), None)
}

/// Attributes of products, in the order of their names.
type Types = (
    Attr<i32>,
    Attr<i32>,
    Attr<i32>,
    Attr<i32>,
    Attr<i32>,
    Attr<i32>,
);

/// Queues a product: sizes, factors, types and matrices, each with its height and stride.
fn multiply(
    stream: &Stream,
    (sizes, alpha, beta, batch): ([i32; 3], &AnyAsyncValue, &AnyAsyncValue, i32),
    (compute, trans_a, trans_b, type_a, type_b, type_c): Types,
    [a, b, c]: [(&Buffer, i32, i64); 3],
) -> Result<Chain, Error> {
    if *type_a != *type_b {
        return Err(Error::invalid_argument("typeA and typeB need to match"));
    }
    match keyword(*compute)? {
        64 | 65 | 68 | 69 | 70 | 71 | 74 | 75 | 77 => (),
        other => {
            let message = format!("expected a calculation in floating point, found {other}");
            return Err(Error::invalid_argument(message));
        }
    }
    let types = [*type_a, *type_b, *type_c];
    let mut given = Vec::with_capacity(3);
    for ((buffer, height, stride), code) in [a, b, c].into_iter().zip(types) {
        given.push((&buffer.0, number(keyword(code)?)?, height, stride));
    }
    let [a, b, c] = [given[0], given[1], given[2]];
    let product = Product {
        sizes,
        transposed: [
            transposed(keyword(*trans_a)?)?,
            transposed(keyword(*trans_b)?)?,
        ],
        factors: [factor(alpha)?, factor(beta)?],
        batch,
    };
    linear::product(stream, &product, [a, b, c])
}

/// `%c1 = tfrt_gpu.blas.gemm %handle, %stream, CUBLAS_OP_N, CUBLAS_OP_N, %m, %n, %k, %alpha, %A, CUDA_R_32F, %height, ..`
fn gemm(
    (blas, stream): (&Blas, &Stream),
    (m, n, k): (i32, i32, i32),
    alpha: AnyAsyncValue,
    (a, height_a): (&Buffer, i32),
    (b, height_b): (&Buffer, i32),
    beta: AnyAsyncValue,
    (c, height_c): (&Buffer, i32),
    _: &GemmAlgorithm,
    _: Chain,
    types: Types,
) -> Result<Chain, Error> {
    stream.context.expect("a handle", blas.inner())?;
    let matrices = [(a, height_a, 0), (b, height_b, 0), (c, height_c, 0)];
    multiply(stream, ([m, n, k], &alpha, &beta, 1), types, matrices)
}

/// `%c1 = tfrt_gpu.blas.gemm.batch %handle, %stream, .., %A, CUDA_R_32F, %height, %stride, .., %batch, ..`
fn gemm_batch(
    (blas, stream): (&Blas, &Stream),
    (m, n, k): (i32, i32, i32),
    alpha: AnyAsyncValue,
    a: (&Buffer, i32, i64),
    b: (&Buffer, i32, i64),
    beta: AnyAsyncValue,
    c: (&Buffer, i32, i64),
    batch: i32,
    _: &GemmAlgorithm,
    _: Chain,
    types: Types,
) -> Result<Chain, Error> {
    stream.context.expect("a handle", blas.inner())?;
    multiply(stream, ([m, n, k], &alpha, &beta, batch), types, [a, b, c])
}

fn is_upper(attribute: i32) -> Result<bool, Error> {
    either("cublasFillMode", keyword(attribute)?)
}

/// `%c1 = tfrt_gpu.blas.trsm.batch %handle, %stream, CUBLAS_SIDE_LEFT, .., %m, %n, CUDA_R_32F, %alpha, %A, ..`
fn trsm(
    (blas, stream): (&Blas, &Stream),
    (m, n): (i32, i32),
    alpha: AnyAsyncValue,
    (a, height_a): (&Buffer, i32),
    (b, height_b): (&Buffer, i32),
    batch: i32,
    _: Chain,
    (data_type, diagonal): (Attr<i32>, Attr<i32>),
    fill: Attr<i32>,
    side: Attr<i32>,
    trans: Attr<i32>,
) -> Result<Chain, Error> {
    stream.context.expect("a handle", blas.inner())?;
    let system = Triangular {
        sizes: [m, n],
        is_right: either("cublasSideMode", keyword(*side)?)?,
        is_upper: is_upper(*fill)?,
        is_transposed: transposed(keyword(*trans)?)?,
        is_unit: either("cublasDiagType", keyword(*diagonal)?)?,
        number: number(keyword(*data_type)?)?,
        alpha: factor(&alpha)?,
        batch,
    };
    linear::triangular(stream, &system, (&a.0, height_a), (&b.0, height_b))
}

/// `%size = tfrt_gpu.solver.potrf.buffer_size %handle, %stream, CUBLAS_FILL_MODE_LOWER, %n, CUDA_R_32F, %stride, %c0`
fn potrf_size(
    (solver, stream): (&Solver, &Stream),
    n: i32,
    _: i32,
    _: Chain,
    data_type: Attr<i32>,
    fill: Attr<i32>,
) -> Result<i64, Error> {
    stream.context.expect("a handle", solver.inner())?;
    number(keyword(*data_type)?)?;
    is_upper(*fill)?;
    crate::dialect::count("a size of 0 or more", i64::from(n))?;
    Ok(0)
}

/// `%c1 = tfrt_gpu.solver.potrf %handle, %stream, .., %n, CUDA_R_32F, %buffer, %stride, %workspace, %devInfo, %c0`
fn potrf(
    (solver, stream): (&Solver, &Stream),
    n: i32,
    (a, stride): (&Buffer, i32),
    _: &Buffer,
    info: &Buffer,
    _: Chain,
    data_type: Attr<i32>,
    fill: Attr<i32>,
) -> Result<Chain, Error> {
    stream.context.expect("a handle", solver.inner())?;
    let number = number(keyword(*data_type)?)?;
    let sizes = [n, stride, 1];
    linear::cholesky(stream, sizes, is_upper(*fill)?, number, a, info)
}

/// `%c1 = tfrt_gpu.solver.potrf.batch %handle, %stream, .., %n, CUDA_R_32F, %buffer, %stride, %devInfo, %batch, %c0`
fn potrf_batch(
    (solver, stream): (&Solver, &Stream),
    n: i32,
    (a, stride): (&Buffer, i32),
    info: &Buffer,
    batch: i32,
    _: Chain,
    data_type: Attr<i32>,
    fill: Attr<i32>,
) -> Result<Chain, Error> {
    stream.context.expect("a handle", solver.inner())?;
    let number = number(keyword(*data_type)?)?;
    let sizes = [n, stride, batch];
    linear::cholesky(stream, sizes, is_upper(*fill)?, number, a, info)
}

/// `%fft = tfrt_gpu.fft.create %context, CUFFT_C2C, 1, [2, 2], [4, 2, 1], [4, 2, 1]`
fn fft(
    context: &Context,
    batch: Attr<i64>,
    dims: Attr<&[i64]>,
    from: Attr<&[i64]>,
    to: Attr<&[i64]>,
    kind: Attr<i32>,
) -> Result<Fft, Error> {
    let plan = Fourier::new(keyword(*kind)?, *batch, &dims, [&from, &to])?;
    Ok(Fft((context.0.clone(), plan)))
}

/// `%c1 = tfrt_gpu.fft.execute %stream, %fft, %input, %output, %workspace, CUFFT_FORWARD, %c0`
fn fft_execute(
    (stream, fft): (&Stream, &Fft),
    from: &Buffer,
    to: &Buffer,
    _: &Buffer,
    _: Chain,
    direction: Attr<i32>,
) -> Result<Chain, Error> {
    let (context, plan) = &fft.0;
    stream.context.expect("a handle", context.inner())?;
    let is_inverse = match keyword(*direction)? {
        -1 => false,
        1 => true,
        other => {
            let message = format!("Invalid cufftDirection value: {other}");
            return Err(Error::invalid_argument(message));
        }
    };
    plan.execute(stream, from, to, is_inverse)
}
