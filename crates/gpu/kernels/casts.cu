// Changes of the type of elements: cast_FROM_TO. What is no number is 0 as an integer, what is too large the largest. All
// else is rounded to nearest, once.

typedef unsigned char u8;
typedef signed char i8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef long long i64;

struct f16 {
    u16 bits;
};
struct bf16 {
    u16 bits;
};
struct i1 {
    u8 bits;
};
typedef float f32;
typedef double f64;
typedef int i32;

// Elements as one of three types: float, double, i64.
__device__ __forceinline__ float wide(f16 x) {
    float y;
    asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(x.bits));
    return y;
}
__device__ __forceinline__ float wide(bf16 x) { return __uint_as_float((u32)x.bits << 16); }
__device__ __forceinline__ float wide(f32 x) { return x; }
__device__ __forceinline__ double wide(f64 x) { return x; }
__device__ __forceinline__ i64 wide(i1 x) { return x.bits ? 1 : 0; }
__device__ __forceinline__ i64 wide(u8 x) { return x; }
__device__ __forceinline__ i64 wide(i8 x) { return x; }
__device__ __forceinline__ i64 wide(i32 x) { return x; }
__device__ __forceinline__ i64 wide(i64 x) { return x; }

// The nearest float whose last bit says whether it is exact, so that it can be rounded again.
__device__ __forceinline__ float odd(double x) {
    float y = (float)x;
    if ((double)y == x || x != x) return y;
    u32 bits = __float_as_uint(y);
    if (fabs((double)y) > fabs(x)) bits -= 1;
    return __uint_as_float(bits | 1);
}

__device__ __forceinline__ void narrow(float x, f16 &y) { asm("cvt.rn.f16.f32 %0, %1;" : "=h"(y.bits) : "f"(x)); }
__device__ __forceinline__ void narrow(double x, f16 &y) { narrow(odd(x), y); }
__device__ __forceinline__ void narrow(i64 x, f16 &y) { narrow((double)x, y); }

__device__ __forceinline__ void narrow(float x, bf16 &y) {
    u32 bits = __float_as_uint(x);
    y.bits = x != x ? bits >> 16 | 0x40 : (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
}
__device__ __forceinline__ void narrow(double x, bf16 &y) { narrow(odd(x), y); }
__device__ __forceinline__ void narrow(i64 x, bf16 &y) { narrow((double)x, y); }

template <class X> __device__ __forceinline__ void narrow(X x, f32 &y) { y = (f32)x; }
template <class X> __device__ __forceinline__ void narrow(X x, f64 &y) { y = (f64)x; }
template <class X> __device__ __forceinline__ void narrow(X x, i1 &y) { y.bits = x != 0; }

// Floats to integers, rounded towards 0.
template <class X> __device__ __forceinline__ void narrow(X x, i32 &y) { y = x != x ? 0 : (i32)x; }
template <class X> __device__ __forceinline__ void narrow(X x, i64 &y) { y = x != x ? 0 : (i64)x; }
template <class X> __device__ __forceinline__ void narrow(X x, u8 &y) {
    i32 whole;
    narrow(x, whole);
    y = whole < 0 ? 0 : (whole > 255 ? 255 : whole);
}
template <class X> __device__ __forceinline__ void narrow(X x, i8 &y) {
    i32 whole;
    narrow(x, whole);
    y = whole < -128 ? -128 : (whole > 127 ? 127 : whole);
}
// Integers keep their low bits.
__device__ __forceinline__ void narrow(i64 x, i32 &y) { y = (i32)x; }
__device__ __forceinline__ void narrow(i64 x, i64 &y) { y = x; }
__device__ __forceinline__ void narrow(i64 x, u8 &y) { y = (u8)x; }
__device__ __forceinline__ void narrow(i64 x, i8 &y) { y = (i8)x; }

#define CAST(FROM, TO)                                                                          \
    extern "C" __global__ void cast_##FROM##_##TO(TO *y, const FROM *x, u32 n) {                \
        u32 i = blockIdx.x * blockDim.x + threadIdx.x;                                          \
        if (i >= n) return;                                                                     \
        TO made;                                                                                \
        narrow(wide(x[i]), made);                                                               \
        y[i] = made;                                                                            \
    }

CAST(f16, bf16) CAST(f16, f32) CAST(f16, f64) CAST(f16, i1) CAST(f16, u8) CAST(f16, i8) CAST(f16, i32) CAST(f16, i64)
CAST(bf16, f16) CAST(bf16, f32) CAST(bf16, f64) CAST(bf16, i1) CAST(bf16, u8) CAST(bf16, i8) CAST(bf16, i32) CAST(bf16, i64)
CAST(f32, f16) CAST(f32, bf16) CAST(f32, f64) CAST(f32, i1) CAST(f32, u8) CAST(f32, i8) CAST(f32, i32) CAST(f32, i64)
CAST(f64, f16) CAST(f64, bf16) CAST(f64, f32) CAST(f64, i1) CAST(f64, u8) CAST(f64, i8) CAST(f64, i32) CAST(f64, i64)
CAST(i1, f16) CAST(i1, bf16) CAST(i1, f32) CAST(i1, f64) CAST(i1, u8) CAST(i1, i8) CAST(i1, i32) CAST(i1, i64)
CAST(u8, f16) CAST(u8, bf16) CAST(u8, f32) CAST(u8, f64) CAST(u8, i1) CAST(u8, i8) CAST(u8, i32) CAST(u8, i64)
CAST(i8, f16) CAST(i8, bf16) CAST(i8, f32) CAST(i8, f64) CAST(i8, i1) CAST(i8, u8) CAST(i8, i32) CAST(i8, i64)
CAST(i32, f16) CAST(i32, bf16) CAST(i32, f32) CAST(i32, f64) CAST(i32, i1) CAST(i32, u8) CAST(i32, i8) CAST(i32, i64)
CAST(i64, f16) CAST(i64, bf16) CAST(i64, f32) CAST(i64, f64) CAST(i64, i1) CAST(i64, u8) CAST(i64, i8) CAST(i64, i32)

// Floats without their last bits: so many are set to 0.
extern "C" __global__ void cut_f32(u32 *y, const u32 *x, u32 n, u32 n_bits) {
    u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i] >> n_bits << n_bits;
}

extern "C" __global__ void cut_f64(unsigned long long *y, const unsigned long long *x, u32 n, u32 n_bits) {
    u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i] >> n_bits << n_bits;
}
