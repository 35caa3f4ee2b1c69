// Pointwise functions of f32: one element a thread. Every kernel is named FUNCTION_f32.

typedef unsigned int u32;
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

__device__ __forceinline__ float sigmoid(float x) { return 1.0f / (1.0f + expf(-x)); }

// The sine, or the cosine if `quarter` is 1, by double precision: of a number in radians the quarter of the circle that it
// is in, then a polynomial in what is left.
__device__ __forceinline__ float circle(float x, int quarter) {
    double d = x, n = rint(d * 0.63661977236758138);
    double r = fma(n, -1.5707963267948966, d);
    r = fma(n, -6.1232339957367660e-17, r);
    int q = (int)(i64)n + quarter;
    double s = r * r;
    double sine = r + r * s * (-1.6666666666666666e-1 + s * (8.3333333333331650e-3 + s * (-1.9841269841201856e-4 + s * (2.7557319210152756e-6 + s * -2.5051823583393711e-8))));
    double cosine = 1.0 + s * (-0.5 + s * (4.1666666666666602e-2 + s * (-1.3888888888873056e-3 + s * (2.4801587288851704e-5 + s * -2.7557314284120030e-7))));
    double part = q & 1 ? cosine : sine;
    return (float)(q & 2 ? -part : part);
}

UNARY(sin, circle(x, 0))
UNARY(cos, circle(x, 1))
UNARY(tan, circle(x, 0) / circle(x, 1))
UNARY(asin, asinf(x))
UNARY(acos, acosf(x))
UNARY(atan, atanf(x))
UNARY(sinh, sinhf(x))
UNARY(cosh, coshf(x))
UNARY(asinh, asinhf(x))
UNARY(acosh, acoshf(x))
UNARY(atanh, atanhf(x))
UNARY(softsign, x / (1.0f + fabsf(x)))
UNARY(mish, x * tanhf((x > 0.0f ? x : 0.0f) + log1pf(expf(-fabsf(x)))))
UNARY(neg, -x)
UNARY(abs, fabsf(x))
UNARY(sign, x > 0.0f ? 1.0f : (x < 0.0f ? -1.0f : x))
UNARY(reciprocal, 1.0f / x)
UNARY(square, x * x)
UNARY(sqrt, sqrtf(x))
UNARY(rsqrt, 1.0f / sqrtf(x))
UNARY(exp, expf(x))
UNARY(expm1, expm1f(x))
UNARY(log, logf(x))
UNARY(log1p, log1pf(x))
UNARY(tanh, tanhf(x))
UNARY(erf, erff(x))
UNARY(floor, floorf(x))
UNARY(ceil, ceilf(x))
UNARY(round, rintf(x))
UNARY(trunc, truncf(x))
UNARY(sigmoid, sigmoid(x))
UNARY(relu, x < 0.0f ? 0.0f : x)
UNARY(relu6, x < 0.0f ? 0.0f : (x > 6.0f ? 6.0f : x))
UNARY(gelu, 0.5f * x * (1.0f + erff(x * 0.70710678118654752f)))
UNARY(gelu_tanh, 0.5f * x * (1.0f + tanhf(0.79788456080286536f * (x + 0.044715f * x * x * x))))
UNARY(softplus, (x > 0.0f ? x : 0.0f) + log1pf(expf(-fabsf(x))))
UNARY(hard_swish, x * fminf(fmaxf(x / 6.0f + 0.5f, 0.0f), 1.0f))
UNARY_OF(scale, a * x)
UNARY_OF(selu, x < 0.0f ? b * a * expm1f(x) : b * x)
UNARY_OF(celu, x < 0.0f ? a * expm1f(x / a) : x)
UNARY_OF(swish, x * sigmoid(a * x))
UNARY_OF(thresholded_relu, x != x ? x : (x > a ? x : 0.0f))
UNARY_OF(shrink, x < -a ? x + b : (x > a ? x - b : 0.0f))
UNARY_OF(elu, x < 0.0f ? a * expm1f(x) : x)
UNARY_OF(leaky_relu, x < 0.0f ? a * x : x)
UNARY_OF(hard_sigmoid, fminf(fmaxf(a * x + b, 0.0f), 1.0f))

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

BINARY(add, float, x + y)
BINARY(sub, float, x - y)
BINARY(mul, float, x * y)
BINARY(div, float, x / y)
BINARY(pow, float, powf(x, y))
// Where one is no number the result is none.
BINARY(min, float, x != x ? x : (y != y ? y : fminf(x, y)))
BINARY(max, float, x != x ? x : (y != y ? y : fmaxf(x, y)))
BINARY(squared_difference, float, (x - y) * (x - y))
BINARY(prelu, float, x < 0.0f ? x * y : x)
BINARY(eq, unsigned char, x == y)
BINARY(ne, unsigned char, x != y)
BINARY(lt, unsigned char, x < y)
BINARY(le, unsigned char, x <= y)
BINARY(gt, unsigned char, x > y)
BINARY(ge, unsigned char, x >= y)

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
