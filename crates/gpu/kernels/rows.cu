// Functions of whole rows of f32: sums and their like, softmax, normalisation. A block of 256 threads for each row.

typedef unsigned int u32;
typedef unsigned long long u64;

#define ADD(x, y) ((x) + (y))
#define MUL(x, y) ((x) * (y))
#define LARGER(x, y) ((x) != (x) ? (x) : ((y) != (y) ? (y) : fmaxf(x, y)))
#define SMALLER(x, y) ((x) != (x) ? (x) : ((y) != (y) ? (y) : fminf(x, y)))

// Combines a number of each thread of the block; every thread gets the result.
#define COMBINE(NAME, FOLD)                                                                     \
    __device__ __forceinline__ float NAME(float x, float *shared) {                             \
        _Pragma("unroll") for (int i = 16; i > 0; i /= 2) {                                     \
            float other = __shfl_xor_sync(0xffffffffu, x, i);                                   \
            x = FOLD(x, other);                                                                 \
        }                                                                                       \
        if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = x;                                \
        __syncthreads();                                                                        \
        x = shared[0];                                                                          \
        _Pragma("unroll") for (int i = 1; i < 8; i++) {                                         \
            float other = shared[i];                                                            \
            x = FOLD(x, other);                                                                 \
        }                                                                                       \
        __syncthreads();                                                                        \
        return x;                                                                               \
    }

COMBINE(block_sum, ADD)
COMBINE(block_product, MUL)
COMBINE(block_max, LARGER)
COMBINE(block_min, SMALLER)

// Row r of `n` elements begins at r / inner * n * inner + r % inner, with steps of `inner`. Of each row one number is
// made, times `scale`.
#define REDUCE(NAME, FIRST, FOLD, BLOCK)                                                        \
    extern "C" __global__ void reduce_##NAME##_f32(float *y, const float *x, u32 n, u32 inner, float scale) { \
        __shared__ float shared[8];                                                             \
        u32 row = blockIdx.x;                                                                   \
        x += (u64)(row / inner) * n * inner + row % inner;                                      \
        float all = FIRST;                                                                      \
        _Pragma("unroll 1") for (u32 i = threadIdx.x; i < n; i += 256) {                        \
            float one = x[(u64)i * inner];                                                      \
            all = FOLD(all, one);                                                               \
        }                                                                                       \
        all = BLOCK(all, shared);                                                               \
        if (threadIdx.x == 0) y[row] = all * scale;                                             \
    }

REDUCE(sum, 0.0f, ADD, block_sum)
REDUCE(prod, 1.0f, MUL, block_product)
REDUCE(max, __int_as_float(0xff800000), LARGER, block_max)
REDUCE(min, __int_as_float(0x7f800000), SMALLER, block_min)

extern "C" __global__ void softmax_f32(float *y, const float *x, u32 n, u32 is_log) {
    __shared__ float shared[8];
    u64 base = (u64)blockIdx.x * n;
    x += base;
    y += base;
    float most = __int_as_float(0xff800000);
#pragma unroll 1
    for (u32 i = threadIdx.x; i < n; i += 256) {
        float one = x[i];
        most = LARGER(most, one);
    }
    most = block_max(most, shared);
    float sum = 0.0f;
#pragma unroll 1
    for (u32 i = threadIdx.x; i < n; i += 256) sum += expf(x[i] - most);
    sum = block_sum(sum, shared);
    float part = is_log ? logf(sum) : 1.0f / sum;
#pragma unroll 1
    for (u32 i = threadIdx.x; i < n; i += 256) {
        float less = x[i] - most;
        y[i] = is_log ? less - part : expf(less) * part;
    }
}

// Elements less their mean (if `centred`), divided by their deviation, times `scale`, plus `bias`, which may be absent.
extern "C" __global__ void norm_f32(float *y, const float *x, const float *scale, const float *bias, u32 n, float epsilon, u32 centred) {
    __shared__ float shared[8];
    u64 base = (u64)blockIdx.x * n;
    x += base;
    y += base;
    float mean = 0.0f;
    if (centred) {
        float sum = 0.0f;
#pragma unroll 1
        for (u32 i = threadIdx.x; i < n; i += 256) sum += x[i];
        mean = block_sum(sum, shared) / (float)n;
    }
    float squares = 0.0f;
#pragma unroll 1
    for (u32 i = threadIdx.x; i < n; i += 256) {
        float less = x[i] - mean;
        squares += less * less;
    }
    float factor = 1.0f / sqrtf(block_sum(squares, shared) / (float)n + epsilon);
#pragma unroll 1
    for (u32 i = threadIdx.x; i < n; i += 256) {
        float one = (x[i] - mean) * factor;
        if (scale) one *= scale[i];
        if (bias) one += bias[i];
        y[i] = one;
    }
}
