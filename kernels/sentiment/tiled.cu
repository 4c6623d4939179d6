// Square tiles of both factors in shared memory; one thread an element of the product. TILE: rows and
// columns of a tile.
#include "elementwise.cuh"

template <typename At>
__device__ __forceinline__ void tile_of(
    At at, const float *w, float *out, long long rows, int depth, int columns) {
    DYNAMIC_SHARED(float, shared);
    float *left = shared, *right = shared + TILE * (TILE + 1);
    const int y = threadIdx.x / TILE, x = threadIdx.x % TILE;
    const long long row = blockIdx.x * static_cast<long long>(TILE) + y;
    const int column = blockIdx.y * TILE + x;
    float sum = 0;
    for (int begin = 0; begin < depth; begin += TILE) {
        left[y * (TILE + 1) + x] = row < rows && begin + x < depth ? at(row, begin + x) : 0;
        right[y * TILE + x] =
            begin + y < depth && column < columns ? w[(begin + y) * columns + column] : 0;
        __syncthreads();
        for (int k = 0; k < TILE; ++k) sum += left[y * (TILE + 1) + k] * right[k * TILE + x];
        __syncthreads();
    }
    if (row < rows && column < columns) out[row * columns + column] = sum;
}

extern "C" __global__ void KERNEL(first)(
    const void *given, const unsigned short *table, const float *w, float *out, long long rows) {
    const INPUT input(given, table);
    tile_of([&](long long row, int k) { return input.at(row, k); }, w, out, rows, EMBEDDING, FIRST);
}

extern "C" __global__ void KERNEL(second)(
    const float *h, const float *w, float *out, long long rows) {
    tile_of([&](long long row, int k) { return h[row * FIRST + k]; }, w, out, rows, FIRST, SECOND);
}
