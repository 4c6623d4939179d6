// A tile of an expert's product per block, on tensor cores: tiles of both factors come to shared memory by
// asynchronous copies, num_stages - 1 steps ahead.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_pipeline.h>
#include <mma.h>

#include "routing.cuh"

// A tile of `rows` rows of `width` elements to shared memory, 16 bytes a copy; zeros from outside.
template <typename T, int rows, int width, int threads>
__device__ void copy_tile(T *to, const T *from, int step, int rows_inside, int width_inside) {
    constexpr int vectors = width / 8;
    for (int i = threadIdx.x; i < rows * vectors; i += threads) {
        const int row = i / vectors, column = i % vectors * 8;
        const bool inside = row < rows_inside && column < width_inside;
        const T *place = inside ? from + static_cast<long long>(row) * step + column : from;
        __pipeline_memcpy_async(to + row * (width + 8) + column, place, 16, inside ? 0 : 16);
    }
}

template <typename T, int BLOCK_M, int BLOCK_N, int BLOCK_K, int num_warps, int num_stages>
__global__ void __launch_bounds__(32 * num_warps) tensor_tiles(
    T *out, const T *x, const T *weights, const T *bias, const float *scale, const int *first, int experts,
    int n, int k) {
    using namespace nvcuda;
    constexpr int THREADS = 32 * num_warps, STEP = BLOCK_K + 8;
    constexpr int WARPS_M = BLOCK_M == 16 ? 1 : BLOCK_M == 128 && num_warps == 8 ? 4 : 2;
    constexpr int WARPS_N = num_warps / WARPS_M;
    constexpr int DOWN = BLOCK_M / WARPS_M / 16, ACROSS = BLOCK_N / WARPS_N / 16;
    extern __shared__ __align__(128) unsigned char memory[];
    T *const stages = reinterpret_cast<T *>(memory);
    constexpr int STAGE = (BLOCK_M + BLOCK_N) * STEP;

    Tile tile;
    if (!find_tile(first, experts, n, BLOCK_M, BLOCK_N, blockIdx.x, tile))
        return;
    const T *left = x + static_cast<long long>(tile.row) * k;
    const T *right = weights + (static_cast<long long>(tile.expert) * n + tile.column) * k;
    const int steps = (k + BLOCK_K - 1) / BLOCK_K;
    const auto fetch = [&](int step) {
        if (step < steps) {
            T *const stage = stages + step % num_stages * STAGE;
            const int start = step * BLOCK_K;
            copy_tile<T, BLOCK_M, BLOCK_K, THREADS>(stage, left + start, k, tile.rows, k - start);
            copy_tile<T, BLOCK_N, BLOCK_K, THREADS>(
                stage + BLOCK_M * STEP, right + start, k, n - tile.column, k - start);
        }
        __pipeline_commit();
    };
    for (int step = 0; step < num_stages - 1; ++step)
        fetch(step);

    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int row = warp % WARPS_M * DOWN * 16, column = warp / WARPS_M * ACROSS * 16;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> sums[DOWN][ACROSS];
    for (auto &line : sums)
        for (auto &sum : line)
            wmma::fill_fragment(sum, 0.0f);
    for (int step = 0; step < steps; ++step) {
        __pipeline_wait_prior(num_stages - 2);
        __syncthreads();
        fetch(step + num_stages - 1);
        const T *const a = stages + step % num_stages * STAGE, *const b = a + BLOCK_M * STEP;
#pragma unroll
        for (int inner = 0; inner < BLOCK_K; inner += 16) {
            wmma::fragment<wmma::matrix_a, 16, 16, 16, T, wmma::row_major> some[DOWN];
            wmma::fragment<wmma::matrix_b, 16, 16, 16, T, wmma::col_major> others[ACROSS];
#pragma unroll
            for (int i = 0; i < DOWN; ++i)
                wmma::load_matrix_sync(some[i], a + (row + 16 * i) * STEP + inner, STEP);
#pragma unroll
            for (int j = 0; j < ACROSS; ++j)
                wmma::load_matrix_sync(others[j], b + (column + 16 * j) * STEP + inner, STEP);
#pragma unroll
            for (int i = 0; i < DOWN; ++i)
#pragma unroll
                for (int j = 0; j < ACROSS; ++j)
                    wmma::mma_sync(sums[i][j], some[i], others[j], sums[i][j]);
        }
    }
    __pipeline_wait_prior(0);
    __syncthreads();

    // Each warp turns its sums, 16 x 16 at a time, into rows: two lanes have one, eight elements each.
    float *const mine = reinterpret_cast<float *>(memory) + warp * 16 * 20;
    const int own_row = lane / 2, own_column = lane % 2 * 8;
#pragma unroll
    for (int i = 0; i < DOWN; ++i)
#pragma unroll
        for (int j = 0; j < ACROSS; ++j) {
            wmma::store_matrix_sync(mine, sums[i][j], 20, wmma::mem_row_major);
            __syncwarp();
            const int r = row + 16 * i + own_row, c = tile.column + column + 16 * j + own_column;
            if (r < tile.rows && c < n) {
                const float weight = scale[tile.row + r];
                const T *const added = bias + static_cast<long long>(tile.expert) * n + c;
                __align__(16) T done[8];
                for (int e = 0; e < 8; ++e) {
                    const float sum = mine[own_row * 20 + own_column + e] + static_cast<float>(added[e]);
                    done[e] = T(activated(sum, weight));
                }
                *reinterpret_cast<uint4 *>(out + static_cast<long long>(tile.row + r) * n + c) =
                    *reinterpret_cast<const uint4 *>(done);
            }
            __syncwarp();
        }
}
