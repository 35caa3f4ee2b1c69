// What the conformance suite of drivers launches.

typedef unsigned int u32;

extern "C" __global__ void nothing() {}

// y[i] = a * x[i] + y[i]
extern "C" __global__ void axpy(u32 n, float a, const float *x, float *y) {
    u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = a * x[i] + y[i];
}

// The sum of 256 numbers by shared memory and barriers, one block each.
extern "C" __global__ void sums(float *y, const float *x) {
    __shared__ float part[256];
    part[threadIdx.x] = x[blockIdx.x * 256 + threadIdx.x];
    __syncthreads();
    for (u32 i = 128; i > 0; i /= 2) {
        if (threadIdx.x < i) part[threadIdx.x] += part[threadIdx.x + i];
        __syncthreads();
    }
    if (threadIdx.x == 0) y[blockIdx.x] = part[0];
}

// Arguments of all sizes.
extern "C" __global__ void arguments(double *y, double a, float b, u32 c, long long d) { y[0] = a + b + c + d; }

// Memory whose size the launch says.
extern "C" __global__ void dynamic_shared(u32 *y) {
    extern __shared__ u32 squares[];
    squares[threadIdx.x] = threadIdx.x * threadIdx.x;
    __syncthreads();
    y[threadIdx.x] = squares[blockDim.x - 1 - threadIdx.x];
}
