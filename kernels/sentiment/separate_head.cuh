// The layers on whole reviews as published: one launch per step, one block per review. Included in the
// namespaces of those who use it.

// A row of algorithm 3 or 5: element `threadIdx.x` of the product of a matrix and the vector `x`.
template <typename At>
__device__ __forceinline__ void vector_product(
    At x, const float *w, float *out, int depth, int columns) {
    const int column = threadIdx.x;
    if (column >= columns) return;
    float sum = 0;
    for (int k = 0; k < depth; ++k) sum += x(k) * w[k * columns + column];
    out[blockIdx.x * static_cast<long long>(columns) + column] = sum;
}

// The last layer has a bias and no ReLU.
extern "C" __global__ void KERNEL(add_bias)(
    float *values, const float *bias, long long count, int columns) {
    const long long i = blockIdx.x * static_cast<long long>(blockDim.x) + threadIdx.x;
    if (i < count) values[i] += bias[i % columns];
}
