// The second layer's output is summed over tokens before it leaves the block: it is never stored.
#include "fused_first.cuh"
#include "pooled_blocks.cuh"

extern "C" __global__ void __launch_bounds__(SECOND_THREADS) KERNEL(second)(
    const float *h, const float *w, const float *bias, const int *lengths, float *partial,
    long long rows, int tokens) {
    DYNAMIC_SHARED(float, shared);
    const long long base = blockIdx.x * static_cast<long long>(ROWS);
    const Share<SECOND, SECOND_COLUMNS> share;
    float sum[ROWS_A_THREAD][SECOND_COLUMNS];
    product<SECOND, SECOND_COLUMNS, SECOND_THREADS>(
        [&](int row, int k) { return base + row < rows ? h[(base + row) * FIRST + k] : 0; }, w,
        FIRST, SECOND, shared, share, sum);
    // Everybody has read the last slice: its place is free.
    for (int i = 0; i < ROWS_A_THREAD; ++i)
        for (int j = 0; j < SECOND_COLUMNS; ++j) {
            const int column = share.column(j);
            shared[share.row(i) * SECOND + column] = relu(sum[i][j] + bias[column]);
        }
    __syncthreads();
    pool_rows<SECOND_THREADS>(shared, shared + ROWS * SECOND, lengths, partial, rows, tokens);
}
