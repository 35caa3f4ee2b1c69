// Products of matrices of f32, and moves of elements.

typedef unsigned int u32;
typedef unsigned long long u64;

// The product of two matrices for each of a batch (`blockIdx.z`): C[m, n] = sum over k of A[m, k] * B[k, n]. Steps of A
// and B along both dimensions are given, so that either may be transposed. A block of 256 threads makes a tile of
// 64 by 64, 4 by 4 of them a thread.
struct Dot {
    u32 m, n, k, a_row, a_column, b_row, b_column;
    u64 a_batch, b_batch;
};

#define TILE 64
#define DEPTH 16

extern "C" __global__ void __launch_bounds__(256) dot_f32(float *c, const float *a, const float *b, Dot d) {
    __shared__ float left[DEPTH][TILE + 4];
    __shared__ float right[DEPTH][TILE + 4];
    u32 t = threadIdx.x, tx = t % 16, ty = t / 16;
    u32 row = blockIdx.y * TILE, column = blockIdx.x * TILE;
    a += blockIdx.z * d.a_batch;
    b += blockIdx.z * d.b_batch;
    c += (u64)blockIdx.z * d.m * d.n;
    float sums[4][4] = {};
#pragma unroll 1
    for (u32 k = 0; k < d.k; k += DEPTH) {
#pragma unroll
        for (u32 i = 0; i < 4; i++) {
            u32 at = t + i * 256;
            // Neighbours in a warp read neighbours in memory.
            u32 la = d.a_column == 1 ? at % DEPTH : at / TILE, lm = d.a_column == 1 ? at / DEPTH : at % TILE;
            u32 lb = d.b_column == 1 ? at / TILE : at % DEPTH, ln = d.b_column == 1 ? at % TILE : at / DEPTH;
            left[la][lm] = row + lm < d.m && k + la < d.k ? a[(u64)(row + lm) * d.a_row + (u64)(k + la) * d.a_column] : 0.0f;
            right[lb][ln] = column + ln < d.n && k + lb < d.k ? b[(u64)(k + lb) * d.b_row + (u64)(column + ln) * d.b_column] : 0.0f;
        }
        __syncthreads();
#pragma unroll 4
        for (u32 j = 0; j < DEPTH; j++) {
            float x[4], y[4];
#pragma unroll
            for (u32 i = 0; i < 4; i++) {
                x[i] = left[j][ty * 4 + i];
                y[i] = right[j][tx * 4 + i];
            }
#pragma unroll
            for (u32 p = 0; p < 4; p++)
#pragma unroll
                for (u32 q = 0; q < 4; q++) sums[p][q] = fmaf(x[p], y[q], sums[p][q]);
        }
        __syncthreads();
    }
#pragma unroll
    for (u32 p = 0; p < 4; p++)
#pragma unroll
        for (u32 q = 0; q < 4; q++) {
            u32 i = row + ty * 4 + p, j = column + tx * 4 + q;
            if (i < d.m && j < d.n) c[(u64)i * d.n + j] = sums[p][q];
        }
}

// Elements of another order: those of the result lie one after the other, those of the operand by steps.
struct Steps {
    u32 n, d1, d2, d3, d4, s0, s1, s2, s3, s4;
};

__device__ __forceinline__ u32 place(const Steps &s, u32 i) {
    u32 i4 = i % s.d4, rest = i / s.d4;
    u32 i3 = rest % s.d3;
    rest /= s.d3;
    u32 i2 = rest % s.d2;
    rest /= s.d2;
    return rest / s.d1 * s.s0 + rest % s.d1 * s.s1 + i2 * s.s2 + i3 * s.s3 + i4 * s.s4;
}

#define MOVE(NAME, TYPE)                                                                        \
    extern "C" __global__ void NAME(TYPE *y, const TYPE *x, Steps s) {                          \
        u32 i = blockIdx.x * blockDim.x + threadIdx.x;                                          \
        if (i < s.n) y[i] = x[place(s, i)];                                                     \
    }

MOVE(move_1, unsigned char)
MOVE(move_2, unsigned short)
MOVE(move_4, u32)
MOVE(move_8, u64)

// A matrix for each of a batch (`blockIdx.z`) with its rows as columns, tile by tile through shared memory.
extern "C" __global__ void transpose_4(u32 *y, const u32 *x, u32 n_rows, u32 n_columns) {
    __shared__ u32 tile[32][33];
    u32 column = blockIdx.x * 32 + threadIdx.x, row = blockIdx.y * 32 + threadIdx.y;
    u64 base = (u64)blockIdx.z * n_rows * n_columns;
#pragma unroll
    for (u32 i = 0; i < 32; i += 8)
        if (column < n_columns && row + i < n_rows) tile[threadIdx.y + i][threadIdx.x] = x[base + (u64)(row + i) * n_columns + column];
    __syncthreads();
    u32 to_column = blockIdx.y * 32 + threadIdx.x, to_row = blockIdx.x * 32 + threadIdx.y;
#pragma unroll
    for (u32 i = 0; i < 32; i += 8)
        if (to_column < n_rows && to_row + i < n_columns) y[base + (u64)(to_row + i) * n_rows + to_column] = tile[threadIdx.x][threadIdx.y + i];
}
