// Functions of whole rows of f32: sums and their like, softmax, normalisation. A block for each row: of
// up to 256 threads, by whole warps.

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
        _Pragma("unroll 1") for (u32 i = 1; i < blockDim.x / 32; i++) {                         \
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
        _Pragma("unroll 1") for (u32 i = threadIdx.x; i < n; i += blockDim.x) {                        \
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

// The logarithm of the sum of exponentials of each row.
extern "C" __global__ void reduce_log_sum_exp_f32(float *y, const float *x, u32 n, u32 inner, float scale) {
    __shared__ float shared[8];
    u32 row = blockIdx.x;
    x += (u64)(row / inner) * n * inner + row % inner;
    float most = __int_as_float(0xff800000);
#pragma unroll 1
    for (u32 i = threadIdx.x; i < n; i += blockDim.x) {
        float one = x[(u64)i * inner];
        most = LARGER(most, one);
    }
    most = block_max(most, shared);
    // Infinite elements are no distance from another.
    float from = fabsf(most) == __int_as_float(0x7f800000) ? 0.0f : most;
    float sum = 0.0f;
#pragma unroll 1
    for (u32 i = threadIdx.x; i < n; i += blockDim.x) sum += expf(x[(u64)i * inner] - from);
    sum = block_sum(sum, shared);
    if (threadIdx.x == 0) y[row] = (from + logf(sum)) * scale;
}

// Rows as those of a reduction; `is_log` asks for the logarithm.
extern "C" __global__ void softmax_f32(float *y, const float *x, u32 n, u32 inner, u32 is_log) {
    __shared__ float shared[8];
    u32 row = blockIdx.x;
    u64 base = (u64)(row / inner) * n * inner + row % inner;
    x += base;
    y += base;
    float most = __int_as_float(0xff800000);
#pragma unroll 1
    for (u32 i = threadIdx.x; i < n; i += blockDim.x) {
        float one = x[(u64)i * inner];
        most = LARGER(most, one);
    }
    most = block_max(most, shared);
    float sum = 0.0f;
#pragma unroll 1
    for (u32 i = threadIdx.x; i < n; i += blockDim.x) sum += expf(x[(u64)i * inner] - most);
    sum = block_sum(sum, shared);
    float part = is_log ? logf(sum) : 1.0f / sum;
#pragma unroll 1
    for (u32 i = threadIdx.x; i < n; i += blockDim.x) {
        float less = x[(u64)i * inner] - most;
        y[(u64)i * inner] = is_log ? less - part : expf(less) * part;
    }
}

// How rows are normalised: which element of `scale` and `bias` belongs to one of a row follows from the place of the row
// among `groups`, of `each` channels, and from its place in the row, in runs of `inner`.
struct Norm {
    u32 n, centred, groups, each, inner;
    float epsilon;
};

// Elements less their mean (if `centred`), divided by their deviation, times `scale`, plus `bias`, which may be absent.
extern "C" __global__ void norm_f32(float *y, const float *x, const float *scale, const float *bias, Norm k) {
    __shared__ float shared[8];
    u64 base = (u64)blockIdx.x * k.n;
    u32 channel = blockIdx.x % k.groups * k.each;
    x += base;
    y += base;
    float mean = 0.0f;
    if (k.centred) {
        float sum = 0.0f;
#pragma unroll 1
        for (u32 i = threadIdx.x; i < k.n; i += blockDim.x) sum += x[i];
        mean = block_sum(sum, shared) / (float)k.n;
    }
    float squares = 0.0f;
#pragma unroll 1
    for (u32 i = threadIdx.x; i < k.n; i += blockDim.x) {
        float less = x[i] - mean;
        squares += less * less;
    }
    float factor = 1.0f / sqrtf(block_sum(squares, shared) / (float)k.n + k.epsilon);
#pragma unroll 1
    for (u32 i = threadIdx.x; i < k.n; i += blockDim.x) {
        float one = (x[i] - mean) * factor;
        u32 at = channel + i / k.inner;
        if (scale) one *= scale[at];
        if (bias) one += bias[at];
        y[i] = one;
    }
}

// Elements less the mean of their channel, divided by its deviation, times its `scale`, plus its `bias`. Channels change
// every `inner` elements.
extern "C" __global__ void batch_norm_f32(float *y, const float *x, const float *scale, const float *bias, const float *mean, const float *variance, u32 n, u32 n_channels, u32 inner, float epsilon) {
    u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    u32 c = i / inner % n_channels;
    y[i] = (x[i] - mean[c]) / sqrtf(variance[c] + epsilon) * scale[c] + bias[c];
}
