// Functions of windows over images of f32: convolutions, pools. An image has three spatial dimensions, the outer ones of
// which may be 1.

typedef unsigned int u32;
typedef unsigned long long u64;

// Extents of the image, of the result and of the window, steps of windows, of elements in windows, and the padding in front.
struct Windows {
    u32 x0, x1, x2, y0, y1, y2, k0, k1, k2, s0, s1, s2, d0, d1, d2;
    int p0, p1, p2;
};

// A convolution of `n` results; channels are those of a group.
struct Conv {
    u32 n, c_in, c_out, groups;
    Windows w;
};

// One result a thread: for few channels, such as those of groups of one.
extern "C" __global__ void conv_f32(float *y, const float *x, const float *f, const float *bias, Conv v) {
    u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= v.n) return;
    const Windows &w = v.w;
    u32 o2 = i % w.y2, rest = i / w.y2;
    u32 o1 = rest % w.y1;
    rest /= w.y1;
    u32 o0 = rest % w.y0;
    rest /= w.y0;
    u32 c = rest % (v.c_out * v.groups), b = rest / (v.c_out * v.groups), g = c / v.c_out;
    int a0 = (int)(o0 * w.s0) - w.p0, a1 = (int)(o1 * w.s1) - w.p1, a2 = (int)(o2 * w.s2) - w.p2;
    u32 size = w.x0 * w.x1 * w.x2;
    x += (u64)(b * v.groups + g) * v.c_in * size;
    f += (u64)c * v.c_in * w.k0 * w.k1 * w.k2;
    float sum = 0.0f;
#pragma unroll 1
    for (u32 j = 0; j < v.c_in; j++, x += size)
#pragma unroll 1
        for (u32 r0 = 0; r0 < w.k0; r0++) {
            u32 q0 = a0 + r0 * w.d0;
#pragma unroll 1
            for (u32 r1 = 0; r1 < w.k1; r1++) {
                u32 q1 = a1 + r1 * w.d1;
                bool is_row = q0 < w.x0 && q1 < w.x1;
#pragma unroll 1
                for (u32 r2 = 0; r2 < w.k2; r2++, f++) {
                    u32 q2 = a2 + r2 * w.d2;
                    if (is_row && q2 < w.x2) sum = fmaf(x[(q0 * w.x1 + q1) * w.x2 + q2], *f, sum);
                }
            }
        }
    y[i] = bias ? sum + bias[c] : sum;
}

// A product of matrices for each image and group (`blockIdx.z`): filters by the elements that windows see. 256 threads
// make a tile of 64 channels by 64 places, four by four of them a thread.
extern "C" __global__ void __launch_bounds__(256) conv_64_f32(float *y, const float *x, const float *f, const float *bias, Conv v) {
    __shared__ __align__(16) float left[2][16][68];
    __shared__ __align__(16) float right[2][16][68];
    const Windows &w = v.w;
    u32 t = threadIdx.x, tx = t % 16, ty = t / 16;
    u32 row = blockIdx.y * 64, column = blockIdx.x * 64, g = blockIdx.z % v.groups;
    u32 n_places = w.y0 * w.y1 * w.y2, n_window = w.k0 * w.k1 * w.k2, n_seen = v.c_in * n_window;
    u32 size = w.x0 * w.x1 * w.x2;
    x += (u64)blockIdx.z * v.c_in * size;
    f += (u64)g * v.c_out * n_seen;
    y += (u64)blockIdx.z * v.c_out * n_places;
    // The place whose elements this thread brings.
    u32 place = column + t % 64;
    bool is_place = place < n_places;
    u32 o2 = place % w.y2, rest = place / w.y2;
    u32 a0 = (int)(rest / w.y1 * w.s0) - w.p0, a1 = (int)(rest % w.y1 * w.s1) - w.p1, a2 = (int)(o2 * w.s2) - w.p2;
    float next_a[4], next_b[4], sums[4][4] = {};
    u32 which = 0, n_turns = (n_seen + 15) / 16;
#pragma unroll 1
    for (u32 turn = 0; turn <= n_turns; turn++) {
        if (turn < n_turns) {
#pragma unroll
            for (u32 i = 0; i < 4; i++) {
                u32 at = t + i * 256;
                u32 m = row + at / 16, ka = turn * 16 + at % 16, kb = turn * 16 + at / 64;
                next_a[i] = m < v.c_out && ka < n_seen ? f[(u64)m * n_seen + ka] : 0.0f;
                u32 c = kb / n_window, r = kb % n_window;
                u32 r2 = r % w.k2, outer = r / w.k2;
                u32 q0 = a0 + outer / w.k1 * w.d0, q1 = a1 + outer % w.k1 * w.d1, q2 = a2 + r2 * w.d2;
                bool is_in = is_place && kb < n_seen && q0 < w.x0 && q1 < w.x1 && q2 < w.x2;
                next_b[i] = is_in ? x[(u64)c * size + (q0 * w.x1 + q1) * w.x2 + q2] : 0.0f;
            }
        }
        if (turn > 0) {
#pragma unroll 2
            for (u32 j = 0; j < 16; j++) {
                float4 p = *(const float4 *)&left[which][j][ty * 4];
                float4 q = *(const float4 *)&right[which][j][tx * 4];
                float p4[4] = {p.x, p.y, p.z, p.w}, q4[4] = {q.x, q.y, q.z, q.w};
#pragma unroll
                for (int m = 0; m < 4; m++)
#pragma unroll
                    for (int n = 0; n < 4; n++) sums[m][n] = fmaf(p4[m], q4[n], sums[m][n]);
            }
        }
        which ^= 1;
        if (turn < n_turns) {
#pragma unroll
            for (u32 i = 0; i < 4; i++) {
                u32 at = t + i * 256;
                left[which][at % 16][at / 16] = next_a[i];
                right[which][at / 64][at % 64] = next_b[i];
            }
        }
        __syncthreads();
    }
#pragma unroll
    for (int m = 0; m < 4; m++) {
        u32 c = row + ty * 4 + m;
        if (c >= v.c_out) continue;
        float more = bias ? bias[g * v.c_out + c] : 0.0f;
#pragma unroll
        for (int n = 0; n < 4; n++) {
            u32 j = column + tx * 4 + n;
            if (j < n_places) y[(u64)c * n_places + j] = sums[m][n] + more;
        }
    }
}

// The element of an image along one dimension that a transposed window spreads to a result, or one that is not there.
__device__ __forceinline__ u32 spread(u32 o, u32 r, u32 s, u32 d, int p) {
    u32 at = o + p - r * d;
    return (int)at < 0 || at % s ? 0xffffffffu : at / s;
}

// A transposed convolution, one result a thread.
extern "C" __global__ void conv_transposed_f32(float *y, const float *x, const float *f, const float *bias, Conv v) {
    u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= v.n) return;
    const Windows &w = v.w;
    u32 o2 = i % w.y2, rest = i / w.y2;
    u32 o1 = rest % w.y1;
    rest /= w.y1;
    u32 o0 = rest % w.y0;
    rest /= w.y0;
    u32 c = rest % (v.c_out * v.groups), b = rest / (v.c_out * v.groups), g = c / v.c_out;
    u32 size = w.x0 * w.x1 * w.x2, n_window = w.k0 * w.k1 * w.k2;
    x += (u64)(b * v.groups + g) * v.c_in * size;
    f += ((u64)g * v.c_in * v.c_out + c % v.c_out) * n_window;
    float sum = 0.0f;
#pragma unroll 1
    for (u32 j = 0; j < v.c_in; j++, x += size, f += (u64)v.c_out * n_window)
#pragma unroll 1
        for (u32 r = 0; r < n_window; r++) {
            u32 outer = r / w.k2;
            u32 q0 = spread(o0, outer / w.k1, w.s0, w.d0, w.p0), q1 = spread(o1, outer % w.k1, w.s1, w.d1, w.p1);
            u32 q2 = spread(o2, r % w.k2, w.s2, w.d2, w.p2);
            if (q0 < w.x0 && q1 < w.x1 && q2 < w.x2) sum = fmaf(x[(q0 * w.x1 + q1) * w.x2 + q2], f[r], sum);
        }
    y[i] = bias ? sum + bias[c] : sum;
}

// A pool of `n` results; padding behind (`b0` to `b2`) counts in means if `counts`.
struct Pool {
    u32 n, counts, b0, b1, b2;
    float p;
    Windows w;
};

#define LARGER(x, y) ((x) != (x) ? (x) : ((y) != (y) ? (y) : fmaxf(x, y)))
#define ADD(x, y) ((x) + (y))
#define ADD_POWER(x, y) ((x) + powf(fabsf(y), v.p))

#define POOL(NAME, FIRST, FOLD, LAST)                                                           \
    extern "C" __global__ void pool_##NAME##_f32(float *y, const float *x, Pool v) {            \
        u32 i = blockIdx.x * blockDim.x + threadIdx.x;                                          \
        if (i >= v.n) return;                                                                   \
        const Windows &w = v.w;                                                                 \
        u32 o2 = i % w.y2, rest = i / w.y2;                                                     \
        u32 o1 = rest % w.y1;                                                                   \
        rest /= w.y1;                                                                           \
        u32 o0 = rest % w.y0;                                                                   \
        x += (u64)(rest / w.y0) * w.x0 * w.x1 * w.x2;                                           \
        int a0 = (int)(o0 * w.s0) - w.p0, a1 = (int)(o1 * w.s1) - w.p1, a2 = (int)(o2 * w.s2) - w.p2; \
        float all = FIRST;                                                                      \
        u32 count = 0;                                                                          \
        _Pragma("unroll 1") for (u32 r0 = 0; r0 < w.k0; r0++) {                                 \
            int q0 = a0 + (int)(r0 * w.d0);                                                     \
            _Pragma("unroll 1") for (u32 r1 = 0; r1 < w.k1; r1++) {                             \
                int q1 = a1 + (int)(r1 * w.d1);                                                 \
                _Pragma("unroll 1") for (u32 r2 = 0; r2 < w.k2; r2++) {                         \
                    int q2 = a2 + (int)(r2 * w.d2);                                             \
                    bool is_in = (u32)q0 < w.x0 && (u32)q1 < w.x1 && (u32)q2 < w.x2;            \
                    bool is_near = q0 < (int)(w.x0 + v.b0) && q1 < (int)(w.x1 + v.b1) && q2 < (int)(w.x2 + v.b2); \
                    if (is_in || (v.counts && is_near)) count++;                                \
                    if (is_in) {                                                                \
                        float one = x[((u32)q0 * w.x1 + (u32)q1) * w.x2 + (u32)q2];             \
                        all = FOLD(all, one);                                                   \
                    }                                                                           \
                }                                                                               \
            }                                                                                   \
        }                                                                                       \
        y[i] = LAST;                                                                            \
    }

POOL(max, __int_as_float(0xff800000), LARGER, all)
POOL(mean, 0.0f, ADD, all / (float)count)
POOL(lp, 0.0f, ADD_POWER, powf(all, 1.0f / v.p))
