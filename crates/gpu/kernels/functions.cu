// Pointwise functions that programs call, which the crate puts together to kernels (`src/programs.rs`): f_NAME for each step of
// the name. Questions give 0 or 1.

typedef unsigned int u32;
typedef long long i64;

#define FUNCTION extern "C" __device__ __noinline__
#define UNARY(NAME, FORMULA)                                                                    \
    FUNCTION float f_##NAME(float x) { return (FORMULA); }
#define UNARY_OF(NAME, FORMULA)                                                                 \
    FUNCTION float f_##NAME(float x, float a, float b) { return (FORMULA); }
#define BINARY(NAME, RESULT, FORMULA)                                                           \
    FUNCTION RESULT##_of_step f_##NAME(float x, float y) { return (FORMULA); }
#define QUESTION(NAME, FORMULA)                                                                 \
    FUNCTION u32 f_##NAME(float x) { return (FORMULA) ? 1 : 0; }

typedef float float_of_step;
typedef u32 truth_of_step;

#include "formulas.cuh"

UNARY(silu, x * sigmoid(x))
UNARY_OF(divided_by, x / a)
UNARY_OF(power_of, powf(x, a))
QUESTION(is_nan, x != x)
QUESTION(is_finite, x - x == 0.0f)

FUNCTION u32 f_is_inf(float x, float a, float b) {
    return (a != 0.0f && x == __int_as_float(0x7f800000)) || (b != 0.0f && x == __int_as_float(0xff800000)) ? 1 : 0;
}

// The bits of the nearest bf16.
FUNCTION u32 f_to_bf16(float x) {
    u32 bits = __float_as_uint(x);
    return x != x ? bits >> 16 | 0x40 : (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
}
