// Moves of elements, and choices among them.

typedef unsigned char u8;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef long long i64;

__device__ __forceinline__ u32 index() { return blockIdx.x * blockDim.x + threadIdx.x; }

// Extents of six dimensions but the outermost.
struct Extents {
    u32 d1, d2, d3, d4, d5;
};

// The steps of elements along six dimensions; those against their order are below 0, which wraps.
struct Steps {
    u32 s0, s1, s2, s3, s4, s5;
};

struct Place {
    u32 i0, i1, i2, i3, i4, i5;
};

__device__ __forceinline__ Place place(const Extents &e, u32 i) {
    Place p;
    p.i5 = i % e.d5;
    i /= e.d5;
    p.i4 = i % e.d4;
    i /= e.d4;
    p.i3 = i % e.d3;
    i /= e.d3;
    p.i2 = i % e.d2;
    i /= e.d2;
    p.i1 = i % e.d1;
    p.i0 = i / e.d1;
    return p;
}

__device__ __forceinline__ u32 at(const Place &p, const Steps &s) {
    return p.i0 * s.s0 + p.i1 * s.s1 + p.i2 * s.s2 + p.i3 * s.s3 + p.i4 * s.s4 + p.i5 * s.s5;
}

struct Copy {
    u32 n, from, to;
    Extents e;
    Steps x, y;
};

// Elements of one tensor at places of another.
#define COPY(NAME, TYPE)                                                                        \
    extern "C" __global__ void NAME(TYPE *y, const TYPE *x, Copy c) {                           \
        u32 i = index();                                                                        \
        if (i >= c.n) return;                                                                   \
        Place p = place(c.e, i);                                                                \
        y[c.to + at(p, c.y)] = x[c.from + at(p, c.x)];                                          \
    }

COPY(copy_1, u8)
COPY(copy_2, unsigned short)
COPY(copy_4, u32)
COPY(copy_8, u64)

// How an image is padded: extents of the operand, and how many elements are before it.
struct Pad {
    u32 n, mode;
    Extents e;
    u32 x0, x1, x2, x3, x4, x5;
    int p0, p1, p2, p3, p4, p5;
};

// The place in the operand along one dimension; one that is not there where a constant stands.
__device__ __forceinline__ u32 padded(u32 mode, u32 o, u32 x, int p) {
    int at = (int)o - p, size = (int)x;
    if (mode == 0) return at;
    if (mode == 1) return min(max(at, 0), size - 1);
    int period = mode == 2 ? max(2 * (size - 1), 1) : size;
    at %= period;
    if (at < 0) at += period;
    return mode == 2 && at >= size ? period - at : at;
}

// Modes: 0 a constant, 1 the outermost element, 2 reflected, 3 from the other end.
#define PAD(NAME, TYPE)                                                                         \
    extern "C" __global__ void NAME(TYPE *y, const TYPE *x, const TYPE *value, Pad d) {         \
        u32 i = index();                                                                        \
        if (i >= d.n) return;                                                                   \
        Place p = place(d.e, i);                                                                \
        u32 q0 = padded(d.mode, p.i0, d.x0, d.p0), q1 = padded(d.mode, p.i1, d.x1, d.p1);       \
        u32 q2 = padded(d.mode, p.i2, d.x2, d.p2), q3 = padded(d.mode, p.i3, d.x3, d.p3);       \
        u32 q4 = padded(d.mode, p.i4, d.x4, d.p4), q5 = padded(d.mode, p.i5, d.x5, d.p5);       \
        bool is_in = q0 < d.x0 && q1 < d.x1 && q2 < d.x2 && q3 < d.x3 && q4 < d.x4 && q5 < d.x5; \
        if (is_in)                                                                              \
            y[i] = x[((((q0 * d.x1 + q1) * d.x2 + q2) * d.x3 + q3) * d.x4 + q4) * d.x5 + q5];   \
        else                                                                                    \
            y[i] = value ? *value : 0;                                                          \
    }

PAD(pad_1, u8)
PAD(pad_2, unsigned short)
PAD(pad_4, u32)
PAD(pad_8, u64)

// Slices of `inner` elements, of which there are `size` along an axis, by their numbers; 0 where there is none.
#define GATHER(NAME, TYPE, INDEX)                                                               \
    extern "C" __global__ void NAME(TYPE *y, const TYPE *x, const INDEX *k, u32 n, u32 n_picked, u32 size, u32 inner) { \
        u32 i = index();                                                                        \
        if (i >= n) return;                                                                     \
        u32 rest = i / inner;                                                                   \
        INDEX pick = k[rest % n_picked];                                                        \
        if (pick < 0) pick += size;                                                             \
        bool is_there = pick >= 0 && pick < (INDEX)size;                                        \
        y[i] = is_there ? x[((u64)(rest / n_picked) * size + (u32)pick) * inner + i % inner] : 0; \
    }

GATHER(gather_1_i32, u8, int)
GATHER(gather_1_i64, u8, i64)
GATHER(gather_2_i32, unsigned short, int)
GATHER(gather_2_i64, unsigned short, i64)
GATHER(gather_4_i32, u32, int)
GATHER(gather_4_i64, u32, i64)
GATHER(gather_8_i32, u64, int)
GATHER(gather_8_i64, u64, i64)

// Triangles of matrices: elements from the diagonal `k` on, or up to it, and 0 elsewhere.
#define TRIANGLE(NAME, TYPE)                                                                    \
    extern "C" __global__ void NAME(TYPE *y, const TYPE *x, u32 n, u32 n_rows, u32 n_columns, i64 k, u32 is_upper) { \
        u32 i = index();                                                                        \
        if (i >= n) return;                                                                     \
        i64 from = (i64)(i / n_columns % n_rows) + k, at = i % n_columns;                       \
        y[i] = (is_upper ? at >= from : at <= from) ? x[i] : 0;                                 \
    }

TRIANGLE(triangle_1, u8)
TRIANGLE(triangle_2, unsigned short)
TRIANGLE(triangle_4, u32)
TRIANGLE(triangle_8, u64)

struct Select {
    u32 n;
    Extents e;
    Steps c, x, y;
};

// Elements of the first where a condition is true, of the second elsewhere.
#define SELECT(NAME, TYPE)                                                                      \
    extern "C" __global__ void NAME(TYPE *z, const u8 *c, const TYPE *x, const TYPE *y, Select s) { \
        u32 i = index();                                                                        \
        if (i >= s.n) return;                                                                   \
        Place p = place(s.e, i);                                                                \
        z[i] = c[at(p, s.c)] ? x[at(p, s.x)] : y[at(p, s.y)];                                   \
    }

SELECT(select_1, u8)
SELECT(select_2, unsigned short)
SELECT(select_4, u32)
SELECT(select_8, u64)
