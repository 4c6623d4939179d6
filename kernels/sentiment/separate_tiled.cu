// As tiled, but the layers on whole reviews take one launch per step; the vector of a product lies in
// shared memory (algorithm 5). Nine launches in place of six.
#include "tiled.cu"
#include "separate_head.cuh"

extern "C" __global__ void KERNEL(vector)(
    const float *x, const float *w, float *out, int depth, int columns) {
    DYNAMIC_SHARED(float, own);
    const int k = threadIdx.x;
    if (k < depth) own[k] = x[blockIdx.x * static_cast<long long>(depth) + k];
    __syncthreads();
    vector_product([&](int k) { return own[k]; }, w, out, depth, columns);
}
