// The formulas of pointwise functions of f32, for kernels and for functions that generated programs consist of. Who includes
// this defines UNARY(NAME, FORMULA) of x, UNARY_OF of x and two numbers a and b, and BINARY(NAME, RESULT, FORMULA) of x and y.

__device__ __forceinline__ float sigmoid(float x) { return 1.0f / (1.0f + expf(-x)); }

// The number, or the nearer of 0 and `most` if it is not between; what is no number stays so.
__device__ __forceinline__ float within(float x, float most) { return x < 0.0f ? 0.0f : (x > most ? most : x); }

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
UNARY(relu6, within(x, 6.0f))
UNARY(gelu, 0.5f * x * (1.0f + erff(x * 0.70710678118654752f)))
UNARY(gelu_tanh, 0.5f * x * (1.0f + tanhf(0.79788456080286536f * (x + 0.044715f * x * x * x))))
UNARY(softplus, (x > 0.0f ? x : 0.0f) + log1pf(expf(-fabsf(x))))
UNARY(hard_swish, x * within(x / 6.0f + 0.5f, 1.0f))
UNARY_OF(selu, x < 0.0f ? b * a * expm1f(x) : b * x)
UNARY_OF(celu, x < 0.0f ? a * expm1f(x / a) : x)
UNARY_OF(swish, x * sigmoid(a * x))
UNARY_OF(thresholded_relu, x > a ? x : 0.0f)
UNARY_OF(shrink, x < -a ? x + b : (x > a ? x - b : 0.0f))
UNARY_OF(elu, x < 0.0f ? a * expm1f(x) : x)
UNARY_OF(leaky_relu, x < 0.0f ? a * x : x)
UNARY_OF(hard_sigmoid, within(a * x + b, 1.0f))

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
BINARY(eq, truth, x == y)
BINARY(ne, truth, x != y)
BINARY(lt, truth, x < y)
BINARY(le, truth, x <= y)
BINARY(gt, truth, x > y)
BINARY(ge, truth, x >= y)
