// Pointwise functions of f64, i32, i64 and truth values, and products of matrices of f64. Every kernel is named FUNCTION_TYPE.

typedef unsigned char u8;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef long long i64;
typedef double f64;
typedef int i32;

__device__ __forceinline__ u32 index() { return blockIdx.x * blockDim.x + threadIdx.x; }

#define UNARY(NAME, T, FORMULA)                                                                 \
    extern "C" __global__ void NAME##_##T(T *y, const T *in, u32 n) {                           \
        u32 i = index();                                                                        \
        if (i >= n) return;                                                                     \
        T x = in[i];                                                                            \
        y[i] = (FORMULA);                                                                       \
    }

// Extents of the three inner dimensions of the result, and the steps of both operands along all four; 0 where an operand
// is repeated. `plain` is set if both lie as the result does.
struct Layout {
    u32 n, plain, d1, d2, d3, a0, a1, a2, a3, b0, b1, b2, b3;
};

__device__ __forceinline__ void place(const Layout &l, u32 i, u32 &a, u32 &b) {
    if (l.plain) {
        a = b = i;
        return;
    }
    u32 i3 = i % l.d3, rest = i / l.d3;
    u32 i2 = rest % l.d2;
    rest /= l.d2;
    u32 i1 = rest % l.d1, i0 = rest / l.d1;
    a = i0 * l.a0 + i1 * l.a1 + i2 * l.a2 + i3 * l.a3;
    b = i0 * l.b0 + i1 * l.b1 + i2 * l.b2 + i3 * l.b3;
}

#define BINARY(NAME, T, RESULT, FORMULA)                                                        \
    extern "C" __global__ void NAME##_##T(RESULT *z, const T *p, const T *q, Layout l) {        \
        u32 i = index(), a, b;                                                                  \
        if (i >= l.n) return;                                                                   \
        place(l, i, a, b);                                                                      \
        T x = p[a], y = q[b];                                                                   \
        z[i] = (FORMULA);                                                                       \
    }

// Functions of all three types. Integers wrap.
#define ALL(T)                                                                                  \
    UNARY(neg, T, -x)                                                                           \
    UNARY(square, T, x * x)                                                                     \
    UNARY(relu, T, x < 0 ? 0 : x)                                                               \
    BINARY(add, T, T, x + y)                                                                    \
    BINARY(sub, T, T, x - y)                                                                    \
    BINARY(mul, T, T, x * y)                                                                    \
    BINARY(squared_difference, T, T, (x - y) * (x - y))                                         \
    BINARY(min, T, T, x != x ? x : (y != y ? y : (y < x ? y : x)))                              \
    BINARY(max, T, T, x != x ? x : (y != y ? y : (y > x ? y : x)))                              \
    BINARY(eq, T, u8, x == y)                                                                   \
    BINARY(ne, T, u8, x != y)                                                                   \
    BINARY(lt, T, u8, x < y)                                                                    \
    BINARY(le, T, u8, x <= y)                                                                   \
    BINARY(gt, T, u8, x > y)                                                                    \
    BINARY(ge, T, u8, x >= y)

typedef u8 i1;
UNARY(not, i1, x ? 0 : 1)
BINARY(and, i1, i1, x && y)
BINARY(or, i1, i1, x || y)
BINARY(xor, i1, i1, (x != 0) != (y != 0))
BINARY(eq, i1, i1, (x != 0) == (y != 0))
BINARY(ne, i1, i1, (x != 0) != (y != 0))

ALL(i32)
ALL(i64)
UNARY(abs, i32, x < 0 ? 0 - x : x)
UNARY(abs, i64, x < 0 ? 0 - x : x)
UNARY(sign, i32, x > 0 ? 1 : (x < 0 ? -1 : 0))
UNARY(sign, i64, x > 0 ? 1 : (x < 0 ? -1 : 0))

ALL(f64)
UNARY(abs, f64, fabs(x))
UNARY(sign, f64, x > 0.0 ? 1.0 : (x < 0.0 ? -1.0 : x))
UNARY(reciprocal, f64, 1.0 / x)
UNARY(sqrt, f64, sqrt(x))
UNARY(rsqrt, f64, 1.0 / sqrt(x))
UNARY(floor, f64, floor(x))
UNARY(ceil, f64, ceil(x))
UNARY(round, f64, rint(x))
UNARY(trunc, f64, trunc(x))
UNARY(exp, f64, exp(x))
UNARY(log, f64, log(x))
UNARY(tanh, f64, tanh(x))
UNARY(sigmoid, f64, 1.0 / (1.0 + exp(-x)))
BINARY(div, f64, f64, x / y)

// The product of two matrices for each of a batch (`blockIdx.z`), a tile of 16 by 16 a block. Steps of both operands along
// both dimensions are given, so that either may be transposed.
struct Dot {
    u32 m, n, k, a_row, a_column, b_row, b_column;
    u64 a_batch, b_batch;
};

extern "C" __global__ void __launch_bounds__(256) dot_16_f64(f64 *c, const f64 *a, const f64 *b, Dot d) {
    __shared__ f64 left[16][17], right[16][17];
    u32 tx = threadIdx.x % 16, ty = threadIdx.x / 16;
    u32 row = blockIdx.y * 16 + ty, column = blockIdx.x * 16 + tx;
    a += blockIdx.z * d.a_batch;
    b += blockIdx.z * d.b_batch;
    f64 sum = 0.0;
#pragma unroll 1
    for (u32 k = 0; k < d.k; k += 16) {
        left[ty][tx] = row < d.m && k + tx < d.k ? a[(u64)row * d.a_row + (u64)(k + tx) * d.a_column] : 0.0;
        right[ty][tx] = column < d.n && k + ty < d.k ? b[(u64)(k + ty) * d.b_row + (u64)column * d.b_column] : 0.0;
        __syncthreads();
#pragma unroll 4
        for (u32 j = 0; j < 16; j++) sum = fma(left[ty][j], right[j][tx], sum);
        __syncthreads();
    }
    if (row < d.m && column < d.n) c[(u64)blockIdx.z * d.m * d.n + (u64)row * d.n + column] = sum;
}
