// One thread an element of the product, everything from global memory; bias and ReLU in a pass of
// their own, as in the published first version.
#include "elementwise.cuh"

template <typename At>
__device__ __forceinline__ void element(
    At at, const float *w, float *out, long long rows, int depth, int columns) {
    const long long i = blockIdx.x * static_cast<long long>(blockDim.x) + threadIdx.x;
    if (i >= rows * columns) return;
    const long long row = i / columns;
    const int column = static_cast<int>(i % columns);
    float sum = 0;
    for (int k = 0; k < depth; ++k) sum += at(row, k) * w[k * columns + column];
    out[i] = sum;
}

extern "C" __global__ void KERNEL(first)(
    const void *given, const unsigned short *table, const float *w, float *out, long long rows) {
    const INPUT input(given, table);
    element([&](long long row, int k) { return input.at(row, k); }, w, out, rows, EMBEDDING, FIRST);
}

extern "C" __global__ void KERNEL(second)(
    const float *h, const float *w, float *out, long long rows) {
    element([&](long long row, int k) { return h[row * FIRST + k]; }, w, out, rows, FIRST, SECOND);
}
