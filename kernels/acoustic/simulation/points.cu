// What a simulation does beside its time steps: arrays with padded rows and without, a check of the
// velocity, sources and receivers.
#include "common/largest.cuh"

// `from` with rows of nx points, `to` with rows of `pitch`; the padding is 0.
extern "C" __global__ void KERNEL(pad)(REAL *to, const REAL *from, int nx, long long rows, int pitch) {
    for (long long row = blockIdx.x; row < rows; row += gridDim.x)
        for (int x = threadIdx.x; x < pitch; x += blockDim.x)
            to[row * pitch + x] = x < nx ? from[row * nx + x] : REAL(0);
}

extern "C" __global__ void KERNEL(unpad)(REAL *to, const REAL *from, int nx, long long rows,
                                         int pitch) {
    for (long long row = blockIdx.x; row < rows; row += gridDim.x)
        for (int x = threadIdx.x; x < nx; x += blockDim.x) to[row * nx + x] = from[row * pitch + x];
}

extern "C" __global__ void KERNEL(clear)(REAL *array, long long count) {
    const long long step = static_cast<long long>(gridDim.x) * blockDim.x;
    for (long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x; i < count;
         i += step)
        array[i] = 0;
}

// findings: values that are no velocity (NaN, infinite, 0 or less), bits of the largest one.
extern "C" __global__ void KERNEL(examine)(const REAL *velocity, long long count,
                                           unsigned long long *findings) {
    const long long step = static_cast<long long>(gridDim.x) * blockDim.x;
    double largest = 0;
    unsigned long long strange = 0;
    for (long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x; i < count;
         i += step) {
        const double value = velocity[i];
        if (value > 0 && value < 1e300)
            largest = common::larger(largest, value);
        else
            ++strange;
    }
    if (strange) atomicAdd(findings, strange);
    common::raise_to_largest(largest, findings + 1);
}

// One block, after a time step: adds the wavelets of the sources at this step to u, then keeps u at the
// receivers, then counts the step.
extern "C" __global__ void KERNEL(points)(REAL *u, const long long *sources, const REAL *wavelets,
                                          int source_count, const long long *receivers,
                                          REAL *traces, int receiver_count, int steps, int *step) {
    const int now = *step;
    // One after the other: two sources may share a point.
    if (threadIdx.x == 0)
        for (int i = 0; i < source_count; ++i) u[sources[i]] += wavelets[i * static_cast<long long>(steps) + now];
    __syncthreads();
    for (int i = threadIdx.x; i < receiver_count; i += blockDim.x)
        traces[now * static_cast<long long>(receiver_count) + i] = u[receivers[i]];
    if (threadIdx.x == 0) *step = now + 1;
}
