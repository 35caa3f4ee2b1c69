//! Names of constants, as the headers of CUDA's libraries have them.
//!
//! A value is the library's, shifted by two bits, in which is what the library is for: 1 is CUDA. So did the original.

use crate::dialect::{AttributeKind, Keywords};

/// Makes lists of names: `keywords! { SIDE "side" { CUBLAS_SIDE_LEFT 0 } }`.
macro_rules! keywords {
    ($($name:ident $what:literal { $($word:ident $value:literal)* })*) => {
        $(
            pub(in crate::dialects) const $name: AttributeKind = AttributeKind::Keyword(&Keywords {
                what: $what,
                words: &[$((stringify!($word), ($value << 2) | 1)),*],
                is_wide: false,
            });
        )*
    };
}

/// Makes lists of names for values that are kept in 64 bits.
macro_rules! wide_keywords {
    ($($name:ident $what:literal { $($word:ident $value:literal)* })*) => {
        $(
            pub(in crate::dialects) const $name: AttributeKind = AttributeKind::Keyword(&Keywords {
                what: $what,
                words: &[$((stringify!($word), ($value << 2) | 1)),*],
                is_wide: true,
            });
        )*
    };
}

/// Platforms are not shifted.
pub(in crate::dialects) const PLATFORM: AttributeKind = AttributeKind::Keyword(&Keywords {
    what: "platform",
    words: &[("CUDA", 1), ("ROCm", 2)],
    is_wide: false,
});

keywords! {
    DATA_TYPE "type of elements" {
        CUDA_R_32F 0 CUDA_R_64F 1 CUDA_R_16F 2 CUDA_R_8I 3 CUDA_C_32F 4 CUDA_C_64F 5 CUDA_C_16F 6 CUDA_R_8U 8
        CUDA_R_32I 10 CUDA_R_16BF 14
    }
    OPERATION "operation on a matrix" { CUBLAS_OP_N 0 CUBLAS_OP_T 1 CUBLAS_OP_C 2 }
    COMPUTE_TYPE "type of calculation" {
        CUBLAS_COMPUTE_16F 64 CUBLAS_COMPUTE_16F_PEDANTIC 65 CUBLAS_COMPUTE_32F 68 CUBLAS_COMPUTE_32F_PEDANTIC 69
        CUBLAS_COMPUTE_64F 70 CUBLAS_COMPUTE_64F_PEDANTIC 71 CUBLAS_COMPUTE_32I 72 CUBLAS_COMPUTE_32I_PEDANTIC 73
        CUBLAS_COMPUTE_32F_FAST_16F 74 CUBLAS_COMPUTE_32F_FAST_16BF 75 CUBLAS_COMPUTE_32F_FAST_TF32 77
    }
    GEMM_ALGORITHM "algorithm of a product" {
        CUBLAS_GEMM_DEFAULT -1 CUBLAS_GEMM_ALGO0 0 CUBLAS_GEMM_ALGO1 1 CUBLAS_GEMM_ALGO2 2 CUBLAS_GEMM_ALGO3 3
        CUBLAS_GEMM_ALGO4 4 CUBLAS_GEMM_ALGO5 5 CUBLAS_GEMM_ALGO6 6 CUBLAS_GEMM_ALGO7 7 CUBLAS_GEMM_ALGO8 8
        CUBLAS_GEMM_ALGO9 9 CUBLAS_GEMM_ALGO10 10 CUBLAS_GEMM_ALGO11 11 CUBLAS_GEMM_ALGO12 12
        CUBLAS_GEMM_ALGO13 13 CUBLAS_GEMM_ALGO14 14 CUBLAS_GEMM_ALGO15 15 CUBLAS_GEMM_ALGO16 16
        CUBLAS_GEMM_ALGO17 17 CUBLAS_GEMM_ALGO18 18 CUBLAS_GEMM_ALGO19 19 CUBLAS_GEMM_ALGO20 20
        CUBLAS_GEMM_ALGO21 21 CUBLAS_GEMM_ALGO22 22 CUBLAS_GEMM_ALGO23 23 CUBLAS_GEMM_DEFAULT_TENSOR_OP 99
    }
    SIDE "side of a matrix" { CUBLAS_SIDE_LEFT 0 CUBLAS_SIDE_RIGHT 1 }
    FILL "part of a matrix" { CUBLAS_FILL_MODE_LOWER 0 CUBLAS_FILL_MODE_UPPER 1 CUBLAS_FILL_MODE_FULL 2 }
    DIAGONAL "diagonal of a matrix" { CUBLAS_DIAG_NON_UNIT 0 CUBLAS_DIAG_UNIT 1 }
    FFT_TYPE "kind of Fourier transform" {
        CUFFT_C2C 0x29 CUFFT_R2C 0x2a CUFFT_C2R 0x2c CUFFT_Z2Z 0x69 CUFFT_D2Z 0x6a CUFFT_Z2D 0x6c
    }
    FFT_DIRECTION "direction of a Fourier transform" { CUFFT_FORWARD -1 CUFFT_INVERSE 1 }
    DNN_TYPE "type of elements" {
        CUDNN_DATA_FLOAT 0 CUDNN_DATA_DOUBLE 1 CUDNN_DATA_HALF 2 CUDNN_DATA_INT8 3 CUDNN_DATA_INT32 4
        CUDNN_DATA_INT8x4 5 CUDNN_DATA_UINT8 6 CUDNN_DATA_UINT8x4 7 CUDNN_DATA_INT8x32 8
    }
    CONVOLUTION_MODE "kind of convolution" { CUDNN_CONVOLUTION 0 CUDNN_CROSS_CORRELATION 1 }
    MATH_TYPE "kind of arithmetic" {
        CUDNN_DEFAULT_MATH 0 CUDNN_TENSOR_OP_MATH 1 CUDNN_TENSOR_OP_MATH_ALLOW_CONVERSION 2 CUDNN_FMA_MATH 3
    }
    CCL_TYPE "type of elements" {
        ncclInt8 0 ncclUint8 1 ncclInt32 2 ncclUint32 3 ncclInt64 4 ncclUint64 5 ncclFloat16 6 ncclFloat32 7
        ncclFloat64 8
    }
    REDUCTION "reduction" { ncclSum 0 ncclProd 1 ncclMax 2 ncclMin 3 }
}

wide_keywords! {
    FORWARD_ALGORITHM "algorithm of a convolution" {
        CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM 0 CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM 1
        CUDNN_CONVOLUTION_FWD_ALGO_GEMM 2 CUDNN_CONVOLUTION_FWD_ALGO_DIRECT 3 CUDNN_CONVOLUTION_FWD_ALGO_FFT 4
        CUDNN_CONVOLUTION_FWD_ALGO_FFT_TILING 5 CUDNN_CONVOLUTION_FWD_ALGO_WINOGRAD 6
        CUDNN_CONVOLUTION_FWD_ALGO_WINOGRAD_NONFUSED 7
    }
    BACKWARD_DATA_ALGORITHM "algorithm of a convolution's gradient" {
        CUDNN_CONVOLUTION_BWD_DATA_ALGO_0 0 CUDNN_CONVOLUTION_BWD_DATA_ALGO_1 1 CUDNN_CONVOLUTION_BWD_DATA_ALGO_FFT 2
        CUDNN_CONVOLUTION_BWD_DATA_ALGO_FFT_TILING 3 CUDNN_CONVOLUTION_BWD_DATA_ALGO_WINOGRAD 4
        CUDNN_CONVOLUTION_BWD_DATA_ALGO_WINOGRAD_NONFUSED 5
    }
    BACKWARD_FILTER_ALGORITHM "algorithm of a filter's gradient" {
        CUDNN_CONVOLUTION_BWD_FILTER_ALGO_0 0 CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1 1
        CUDNN_CONVOLUTION_BWD_FILTER_ALGO_FFT 2 CUDNN_CONVOLUTION_BWD_FILTER_ALGO_3 3
        CUDNN_CONVOLUTION_BWD_FILTER_ALGO_WINOGRAD 4 CUDNN_CONVOLUTION_BWD_FILTER_ALGO_WINOGRAD_NONFUSED 5
        CUDNN_CONVOLUTION_BWD_FILTER_ALGO_FFT_TILING 6
    }
}
