//! Linear algebra, solvers of equations, and Fourier transforms, by the libraries of the vendor.

use super::{
    BEGIN, BUFFER, BUFFERS, CONTEXT, STREAM,
    keywords::{
        COMPUTE_TYPE, DATA_TYPE, DIAGONAL, FFT_DIRECTION, FFT_TYPE, FILL, GEMM_ALGORITHM,
        OPERATION, SIDE,
    },
    op, pure, shown, sizes,
};
use crate::dialect::{
    AttributeKind, OpDef,
    ValueKind::{self, Any, Chain, I32, I64},
};

const BLAS: ValueKind = ValueKind::Dialect("!tfrt_gpu.blas.handle");
const ALGORITHM: ValueKind = ValueKind::Dialect("!tfrt_gpu.blas.gemm.algo");
const SOLVER: ValueKind = ValueKind::Dialect("!tfrt_gpu.solver.handle");
const FFT: ValueKind = ValueKind::Dialect("!tfrt_gpu.fft.handle");

/// A handle and numbers, in examples of BLAS.
const HANDLE: &str = "%blas = tfrt_gpu.blas.create %context
%algo = tfrt_gpu.blas.gemm.algo CUBLAS_GEMM_DEFAULT
%n = tfrt.constant.i32 2
%step = tfrt.constant.i32 1
%stride = tfrt.constant.i64 4
";

pub(super) fn definitions() -> Vec<OpDef> {
    let mut all = vectors();
    all.extend(products());
    all.extend(solver());
    all.extend(fft());
    all
}

fn vectors() -> Vec<OpDef> {
    let scale = |definition: OpDef| {
        sizes(definition)
            .operand("handle", BLAS)
            .operand("stream", STREAM)
            .operand("n", I32)
            .operand("alpha", Any)
            .operand("x", BUFFER)
            .operand("strideX", I32)
    };
    vec![
        shown(
            op("tfrt_gpu.blas.create", "A handle of the library of linear algebra")
                .operand("context", CONTEXT)
                .result("handle", BLAS),
            &[BEGIN, BUFFERS, HANDLE],
        ),
        shown(
            scale(op("tfrt_gpu.blas.axpy", "Queues `y = alpha * x + y` of vectors"))
                .operand("y", BUFFER)
                .operand("strideY", I32)
                .operand("chain", Chain)
                .result("done", Chain)
                .attribute("typeAlpha", DATA_TYPE, "the type of `alpha`")
                .attribute("typeX", DATA_TYPE, "the type of `x`")
                .attribute("typeY", DATA_TYPE, "the type of `y`")
                .attribute("executionType", DATA_TYPE, "the type of the calculation: all four are equal")
                .format("operand, operand, operand, operand, $typeAlpha, operand, $typeX, operand, operand, $typeY, operand, $executionType, operand attr-dict"),
            &[BEGIN, BUFFERS, HANDLE, "%c3 = tfrt_gpu.blas.axpy %blas, %stream, %n, %one, CUDA_R_32F, %x, CUDA_R_32F, %step, %y, CUDA_R_32F, %step, CUDA_R_32F, %c2"],
        ),
        shown(
            scale(op("tfrt_gpu.blas.scal", "Queues `x = alpha * x` of a vector"))
                .operand("chain", Chain)
                .result("done", Chain)
                .attribute("typeAlpha", DATA_TYPE, "the type of `alpha`")
                .attribute("typeX", DATA_TYPE, "the type of `x`")
                .attribute("executionType", DATA_TYPE, "the type of the calculation: all three are equal")
                .format("operand, operand, operand, operand, $typeAlpha, operand, $typeX, operand, $executionType, operand attr-dict"),
            &[BEGIN, BUFFERS, HANDLE, "%c3 = tfrt_gpu.blas.scal %blas, %stream, %n, %one, CUDA_R_32F, %x, CUDA_R_32F, %step, CUDA_R_32F, %c2"],
        ),
    ]
}

/// Adds the attributes of products.
fn product(definition: OpDef) -> OpDef {
    sizes(definition)
        .operand("algo", ALGORITHM)
        .operand("chain", Chain)
        .result("done", Chain)
        .attribute("transA", OPERATION, "whether `A` is transposed")
        .attribute("transB", OPERATION, "whether `B` is transposed")
        .attribute("typeA", DATA_TYPE, "the type of `A`")
        .attribute("typeB", DATA_TYPE, "the type of `B`, which is that of `A`")
        .attribute("typeC", DATA_TYPE, "the type of `C`")
        .attribute(
            "computeType",
            COMPUTE_TYPE,
            "the type of the calculation, and of `alpha` and `beta`",
        )
}

fn begin_product(definition: OpDef) -> OpDef {
    definition
        .operand("handle", BLAS)
        .operand("stream", STREAM)
        .operand("m", I32)
        .operand("n", I32)
        .operand("k", I32)
        .operand("alpha", Any)
}

fn products() -> Vec<OpDef> {
    vec![
        shown(
            pure("tfrt_gpu.blas.gemm.algo", "The algorithm of products")
                .result("algo", ALGORITHM)
                .attribute("algo", GEMM_ALGORITHM, "the library's algorithm")
                .format("$algo attr-dict"),
            &[BEGIN, BUFFERS, HANDLE],
        ),
        shown(
            product(
                begin_product(op("tfrt_gpu.blas.gemm", "Queues `C = alpha * A * B + beta * C` of matrices by columns"))
                    .operand("A", BUFFER)
                    .operand("heightA", I32)
                    .operand("B", BUFFER)
                    .operand("heightB", I32)
                    .operand("beta", Any)
                    .operand("C", BUFFER)
                    .operand("heightC", I32),
            )
            .format("operand, operand, $transA, $transB, operand, operand, operand, operand, operand, $typeA, operand, operand, $typeB, operand, operand, operand, $typeC, operand, $computeType, operand, operand attr-dict"),
            &[BEGIN, BUFFERS, HANDLE, "%c3 = tfrt_gpu.blas.gemm %blas, %stream, CUBLAS_OP_N, CUBLAS_OP_T, %n, %n, %n, %one, %x, CUDA_R_32F, %n, %x, CUDA_R_32F, %n, %one, %y, CUDA_R_32F, %n, CUBLAS_COMPUTE_32F, %algo, %c2"],
        ),
        shown(
            product(
                begin_product(op("tfrt_gpu.blas.gemm.batch", "Queues products of matrices that lie so many elements apart"))
                    .operand("A", BUFFER)
                    .operand("heightA", I32)
                    .operand("strideA", I64)
                    .operand("B", BUFFER)
                    .operand("heightB", I32)
                    .operand("strideB", I64)
                    .operand("beta", Any)
                    .operand("C", BUFFER)
                    .operand("heightC", I32)
                    .operand("strideC", I64)
                    .operand("batchCount", I32),
            )
            .format("operand, operand, $transA, $transB, operand, operand, operand, operand, operand, $typeA, operand, operand, operand, $typeB, operand, operand, operand, operand, $typeC, operand, operand, operand, $computeType, operand, operand attr-dict"),
            &[BEGIN, BUFFERS, HANDLE, "%c3 = tfrt_gpu.blas.gemm.batch %blas, %stream, CUBLAS_OP_N, CUBLAS_OP_N, %n, %n, %n, %one, %x, CUDA_R_32F, %n, %stride, %x, CUDA_R_32F, %n, %stride, %one, %y, CUDA_R_32F, %n, %stride, %step, CUBLAS_COMPUTE_32F, %algo, %c2"],
        ),
        shown(
            sizes(op("tfrt_gpu.blas.trsm.batch", "Queues the solution of triangular systems, in place of their right sides"))
                .details("Matrices of a batch lie behind each other.")
                .operand("handle", BLAS)
                .operand("stream", STREAM)
                .operand("m", I32)
                .operand("n", I32)
                .operand("alpha", Any)
                .operand("A", BUFFER)
                .operand("heightA", I32)
                .operand("B", BUFFER)
                .operand("heightB", I32)
                .operand("batchCount", I32)
                .operand("chain", Chain)
                .result("done", Chain)
                .attribute("sideMode", SIDE, "on which side of the unknown `A` stands")
                .attribute("fillMode", FILL, "which part of `A` counts")
                .attribute("trans", OPERATION, "whether `A` is transposed")
                .attribute("diagType", DIAGONAL, "whether the diagonal is taken for ones")
                .attribute("dataType", DATA_TYPE, "the type of elements, and of `alpha`")
                .format("operand, operand, $sideMode, $fillMode, $trans, $diagType, operand, operand, $dataType, operand, operand, operand, operand, operand, operand, operand attr-dict"),
            &[BEGIN, BUFFERS, HANDLE, "%c3 = tfrt_gpu.blas.trsm.batch %blas, %stream, CUBLAS_SIDE_LEFT, CUBLAS_FILL_MODE_LOWER, CUBLAS_OP_N, CUBLAS_DIAG_UNIT, %n, %n, CUDA_R_32F, %one, %x, %n, %y, %n, %step, %c2"],
        ),
    ]
}

fn solver() -> Vec<OpDef> {
    let handle = "%solver = tfrt_gpu.solver.create %context\n%n = tfrt.constant.i32 2\n%step = tfrt.constant.i32 1\n";
    let begin = |definition: OpDef| {
        definition
            .operand("handle", SOLVER)
            .operand("stream", STREAM)
            .operand("n", I32)
            .attribute(
                "fillMode",
                FILL,
                "which part of the matrix counts, and is written",
            )
            .attribute("dataType", DATA_TYPE, "the type of elements")
    };
    vec![
        shown(
            op("tfrt_gpu.solver.create", "A handle of the library of solvers")
                .operand("context", CONTEXT)
                .result("handle", SOLVER),
            &[BEGIN, BUFFERS, handle],
        ),
        shown(
            begin(op("tfrt_gpu.solver.potrf.buffer_size", "The number of bytes that a Cholesky factorisation needs beside its matrix"))
                .operand("stride", I32)
                .operand("chain", Chain)
                .result("size", I64)
                .format("operand, operand, $fillMode, operand, $dataType, operand, operand attr-dict"),
            &[BEGIN, BUFFERS, handle, "%bytes = tfrt_gpu.solver.potrf.buffer_size %solver, %stream, CUBLAS_FILL_MODE_LOWER, %n, CUDA_R_32F, %n, %c2"],
        ),
        shown(
            sizes(begin(op("tfrt_gpu.solver.potrf", "Queues a Cholesky factorisation, in place")))
                .details("`devInfo` gets an `i32`: 0, or the number of the first leading minor that is not positive.")
                .operand("buffer", BUFFER)
                .operand("stride", I32)
                .operand("workspace", BUFFER)
                .operand("devInfo", BUFFER)
                .operand("chain", Chain)
                .result("done", Chain)
                .format("operand, operand, $fillMode, operand, $dataType, operand, operand, operand, operand, operand attr-dict"),
            &[BEGIN, BUFFERS, handle, "%work = tfrt_gpu.mem.allocate %allocator, %stream, %size, %c2\n%c3 = tfrt_gpu.solver.potrf %solver, %stream, CUBLAS_FILL_MODE_LOWER, %n, CUDA_R_32F, %x, %n, %work, %y, %c2"],
        ),
        shown(
            sizes(begin(op("tfrt_gpu.solver.potrf.batch", "Queues Cholesky factorisations of matrices that lie behind each other, in place")))
                .operand("buffer", BUFFER)
                .operand("stride", I32)
                .operand("devInfo", BUFFER)
                .operand("batch_size", I32)
                .operand("chain", Chain)
                .result("done", Chain)
                .format("operand, operand, $fillMode, operand, $dataType, operand, operand, operand, operand, operand attr-dict"),
            &[BEGIN, BUFFERS, handle, "%c3 = tfrt_gpu.solver.potrf.batch %solver, %stream, CUBLAS_FILL_MODE_LOWER, %n, CUDA_R_32F, %x, %n, %y, %step, %c2"],
        ),
    ]
}

fn fft() -> Vec<OpDef> {
    let handle = "%fft = tfrt_gpu.fft.create %context, CUFFT_C2C, 1, [2], [2, 1], [2, 1]\n";
    let work = "%bytes = tfrt_gpu.fft.get_workspace_size %fft\n%work = tfrt_gpu.mem.allocate %allocator, %stream, %bytes, %c2\n%c3 = tfrt_gpu.fft.execute %stream, %fft, %x, %y, %work, CUFFT_FORWARD, %c2";
    vec![
        shown(
            op(
                "tfrt_gpu.fft.create",
                "A plan of Fourier transforms of one to three dimensions",
            )
            .operand("context", CONTEXT)
            .result("handle", FFT)
            .attribute("type", FFT_TYPE, "what is transformed into what")
            .attribute(
                "batch",
                AttributeKind::Typed(I64),
                "how many transforms there are",
            )
            .attribute(
                "dims",
                AttributeKind::Array(I64),
                "dimensions of one transform",
            )
            .attribute(
                "in_strides",
                AttributeKind::Array(I64),
                "elements from one transform to the next, and along each dimension",
            )
            .attribute(
                "out_strides",
                AttributeKind::Array(I64),
                "the same of the results",
            )
            .fails(
                "InvalidArgument",
                "Only row-major layout is supported",
                "strides do not fall",
            )
            .format("operand, $type, $batch, $dims, $in_strides, $out_strides attr-dict"),
            &[BEGIN, BUFFERS, handle],
        ),
        shown(
            pure(
                "tfrt_gpu.fft.get_workspace_size",
                "The number of bytes that a plan needs beside its operands",
            )
            .operand("handle", FFT)
            .result("size", I64),
            &[BEGIN, BUFFERS, handle, work],
        ),
        shown(
            sizes(op(
                "tfrt_gpu.fft.execute",
                "Queues the transforms of a plan",
            ))
            .operand("stream", STREAM)
            .operand("handle", FFT)
            .operand("input", BUFFER)
            .operand("output", BUFFER)
            .operand("workspace", BUFFER)
            .operand("chain", Chain)
            .result("done", Chain)
            .attribute("direction", FFT_DIRECTION, "forward, or back; not scaled")
            .format("operand, operand, operand, operand, operand, $direction, operand attr-dict"),
            &[BEGIN, BUFFERS, handle, work],
        ),
    ]
}
