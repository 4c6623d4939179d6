// Few rows an expert: a warp per column of the weights reads it once, 16 bytes a lane, for BLOCK_M rows.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "routing.cuh"

template <typename T>
__device__ void eight_of(const T *from, float (&values)[8]) {
    const uint4 words = *reinterpret_cast<const uint4 *>(from);
    const T *const elements = reinterpret_cast<const T *>(&words);
    for (int e = 0; e < 8; ++e)
        values[e] = static_cast<float>(elements[e]);
}

template <typename T, int BLOCK_M, int BLOCK_N, int num_warps>
__global__ void __launch_bounds__(32 * num_warps) few_rows(
    T *out, const T *x, const T *weights, const T *bias, const float *scale, const int *first, int experts,
    int n, int k) {
    constexpr int COLUMNS = BLOCK_N / num_warps;
    Tile tile;
    if (!find_tile(first, experts, n, BLOCK_M, BLOCK_N, blockIdx.x, tile))
        return;
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int column = tile.column + warp * COLUMNS;
    const T *const right = weights + static_cast<long long>(tile.expert) * n * k;
    float sums[COLUMNS][BLOCK_M] = {};
#pragma unroll 2
    for (int i = lane * 8; i < k; i += 256) {
        float w[COLUMNS][8];
#pragma unroll
        for (int c = 0; c < COLUMNS; ++c)
            eight_of(right + static_cast<long long>(min(column + c, n - 1)) * k + i, w[c]);
#pragma unroll
        for (int r = 0; r < BLOCK_M; ++r) {
            float values[8];
            eight_of(x + static_cast<long long>(tile.row + min(r, tile.rows - 1)) * k + i, values);
#pragma unroll
            for (int c = 0; c < COLUMNS; ++c)
                for (int e = 0; e < 8; ++e)
                    sums[c][r] += w[c][e] * values[e];
        }
    }
#pragma unroll
    for (int c = 0; c < COLUMNS; ++c)
#pragma unroll
        for (int r = 0; r < BLOCK_M; ++r) {
            float sum = sums[c][r];
            for (int far = 16; far; far /= 2)
                sum += __shfl_xor_sync(0xFFFFFFFFu, sum, far);
            if (lane == r && r < tile.rows && column + c < n) {
                sum += static_cast<float>(bias[static_cast<long long>(tile.expert) * n + column + c]);
                out[static_cast<long long>(tile.row + r) * n + column + c] =
                    T(activated(sum, scale[tile.row + r]));
            }
        }
}
