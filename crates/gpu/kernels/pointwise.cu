// Pointwise functions of f32: one element a thread. Every kernel is named FUNCTION_f32.

typedef unsigned int u32;
typedef unsigned char truth;
typedef long long i64;

__device__ __forceinline__ u32 index() { return blockIdx.x * blockDim.x + threadIdx.x; }

#define UNARY(NAME, FORMULA)                                                                    \
    extern "C" __global__ void NAME##_f32(float *y, const float *in, u32 n) {                   \
        u32 i = index();                                                                        \
        if (i >= n) return;                                                                     \
        float x = in[i];                                                                        \
        y[i] = (FORMULA);                                                                       \
    }

// With two numbers that are attributes of the operation.
#define UNARY_OF(NAME, FORMULA)                                                                 \
    extern "C" __global__ void NAME##_f32(float *y, const float *in, u32 n, float a, float b) { \
        u32 i = index();                                                                        \
        if (i >= n) return;                                                                     \
        float x = in[i];                                                                        \
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

#define BINARY(NAME, RESULT, FORMULA)                                                           \
    extern "C" __global__ void NAME##_f32(RESULT *z, const float *p, const float *q, Layout l) { \
        u32 i = index(), a, b;                                                                  \
        if (i >= l.n) return;                                                                   \
        place(l, i, a, b);                                                                      \
        float x = p[a], y = q[b];                                                               \
        z[i] = (FORMULA);                                                                       \
    }

#include "formulas.cuh"

UNARY_OF(scale, a * x)

// The end of a product of matrices: a multiple of it, plus one of another operand.
extern "C" __global__ void sum_of_f32(float *z, const float *p, const float *q, Layout l, float s, float t) {
    u32 i = index(), a, b;
    if (i >= l.n) return;
    place(l, i, a, b);
    z[i] = s * p[a] + t * q[b];
}

// Each element, at least the number at `low` and at most that at `high`, where there are such.
extern "C" __global__ void clip_f32(float *y, const float *in, const float *low, const float *high, u32 n) {
    u32 i = index();
    if (i >= n) return;
    float x = in[i];
    if (low && x < *low) x = *low;
    if (high && x > *high) x = *high;
    y[i] = x;
}
