#include "common/largest.cuh"
#include "common/uniform.cuh"

extern "C" __global__ void KERNEL(fill)(
    REAL *values, long long n, unsigned long long seed, double low, double high) {
    const long long step = gridDim.x * (long long)blockDim.x;
    for (long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x; i < n; i += step)
        values[i] = (REAL)common::uniform(seed, i, low, high);
}

extern "C" __global__ void KERNEL(largest)(
    const REAL *values, long long n, unsigned long long *found) {
    double largest = 0;
    const long long step = gridDim.x * (long long)blockDim.x;
    for (long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x; i < n; i += step)
        largest = common::larger(largest, fabs((double)values[i]));
    common::raise_to_largest(largest, found);
}
