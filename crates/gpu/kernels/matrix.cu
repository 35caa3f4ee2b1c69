// Products of matrices of f32, and moves of elements.

typedef unsigned int u32;
typedef unsigned long long u64;

// The product of two matrices for each of a batch (`blockIdx.z`): C[m, n] = sum over k of A[m, k] * B[k, n]. Steps of A
// and B along both dimensions are given, so that either may be transposed.
struct Dot {
    u32 m, n, k, a_row, a_column, b_row, b_column;
    u64 a_batch, b_batch;
};

// A block of 256 threads makes a tile of TILE by TILE, EACH by EACH of them a thread, in groups of four that lie TILE / EACH
// * 4 apart. DEPTH columns of A and rows of B are in shared memory, while the next ones are on their way.
template <int TILE, int EACH, int DEPTH>
__device__ __forceinline__ void product(float *c, const float *a, const float *b, const Dot &d) {
    __shared__ __align__(16) float left[2][DEPTH][TILE + 4];
    __shared__ __align__(16) float right[2][DEPTH][TILE + 4];
    const int n_groups = EACH / 4, apart = TILE / n_groups;
    u32 t = threadIdx.x, tx = t % 16, ty = t / 16;
    u32 row = blockIdx.y * TILE, column = blockIdx.x * TILE;
    a += blockIdx.z * d.a_batch;
    b += blockIdx.z * d.b_batch;
    c += (u64)blockIdx.z * d.m * d.n;
    // Neighbours in a warp read neighbours in memory.
    bool a_along = d.a_column == 1, b_along = d.b_column == 1;
    float next_a[4], next_b[4], sums[EACH][EACH] = {};
    u32 which = 0;
    u32 n_turns = (d.k + DEPTH - 1) / DEPTH;
#pragma unroll 1
    for (u32 turn = 0; turn <= n_turns; turn++) {
        u32 k = turn * DEPTH;
        if (turn < n_turns) {
#pragma unroll
            for (u32 i = 0; i < 4; i++) {
                u32 at = t + i * 256;
                u32 ka = k + (a_along ? at % DEPTH : at / TILE), m = row + (a_along ? at / DEPTH : at % TILE);
                u32 kb = k + (b_along ? at / TILE : at % DEPTH), n = column + (b_along ? at % TILE : at / DEPTH);
                next_a[i] = m < d.m && ka < d.k ? a[(u64)m * d.a_row + (u64)ka * d.a_column] : 0.0f;
                next_b[i] = n < d.n && kb < d.k ? b[(u64)kb * d.b_row + (u64)n * d.b_column] : 0.0f;
            }
        }
        if (turn > 0) {
#pragma unroll 2
            for (u32 j = 0; j < DEPTH; j++) {
                float x[EACH], y[EACH];
#pragma unroll
                for (int g = 0; g < n_groups; g++) {
                    float4 p = *(const float4 *)&left[which][j][g * apart + ty * 4];
                    float4 q = *(const float4 *)&right[which][j][g * apart + tx * 4];
                    x[g * 4] = p.x, x[g * 4 + 1] = p.y, x[g * 4 + 2] = p.z, x[g * 4 + 3] = p.w;
                    y[g * 4] = q.x, y[g * 4 + 1] = q.y, y[g * 4 + 2] = q.z, y[g * 4 + 3] = q.w;
                }
#pragma unroll
                for (int p = 0; p < EACH; p++)
#pragma unroll
                    for (int q = 0; q < EACH; q++) sums[p][q] = fmaf(x[p], y[q], sums[p][q]);
            }
        }
        which ^= 1;
        if (turn < n_turns) {
#pragma unroll
            for (u32 i = 0; i < 4; i++) {
                u32 at = t + i * 256;
                left[which][a_along ? at % DEPTH : at / TILE][a_along ? at / DEPTH : at % TILE] = next_a[i];
                right[which][b_along ? at / TILE : at % DEPTH][b_along ? at % TILE : at / DEPTH] = next_b[i];
            }
        }
        __syncthreads();
    }
#pragma unroll
    for (int p = 0; p < EACH; p++)
#pragma unroll
        for (int q = 0; q < EACH; q++) {
            u32 i = row + p / 4 * apart + ty * 4 + p % 4, j = column + q / 4 * apart + tx * 4 + q % 4;
            if (i < d.m && j < d.n) c[(u64)i * d.n + j] = sums[p][q];
        }
}

extern "C" __global__ void __launch_bounds__(256) dot_64_f32(float *c, const float *a, const float *b, Dot d) {
    product<64, 4, 16>(c, a, b, d);
}

extern "C" __global__ void __launch_bounds__(256) dot_128_f32(float *c, const float *a, const float *b, Dot d) {
    product<128, 8, 8>(c, a, b, d);
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
