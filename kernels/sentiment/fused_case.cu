// Both layers and the sum over tokens in one launch: what the first layer leaves stays in shared
// memory, and nothing is written but 64 sums a case.
#include "layers.cuh"
#include "pooling.cuh"

extern "C" __global__ void __launch_bounds__(FIRST_THREADS) KERNEL(cases)(
    const void *given, const unsigned short *table, const float *w1, const float *b1,
    const float *w2, const float *b2, const int *lengths, float *partial, long long rows,
    int tokens) {
    DYNAMIC_SHARED(float, shared);
    float *hidden = shared, *slices = shared + FIRST_PADDED * PITCH;
    const long long base = blockIdx.x * static_cast<long long>(ROWS);
    const INPUT input(given, table);
    {
        const Share<FIRST_PADDED, COLUMNS_A_THREAD> share;
        float sum[ROWS_A_THREAD][COLUMNS_A_THREAD];
        product<FIRST_PADDED, COLUMNS_A_THREAD, FIRST_THREADS>(
            [&](int row, int k) { return base + row < rows ? input.at(base + row, k) : 0; }, w1,
            EMBEDDING, FIRST, slices, share, sum);
        // Column after column, as the left factor of the next product.
        for (int i = 0; i < ROWS_A_THREAD; ++i)
            for (int j = 0; j < COLUMNS_A_THREAD; ++j) {
                const int column = share.column(j);
                const float value = column < FIRST ? relu(sum[i][j] + b1[column]) : 0;
                hidden[column * PITCH + share.row(i)] = value;
            }
    }
    const Share<SECOND, SECOND_COLUMNS> share;
    float sum[ROWS_A_THREAD][SECOND_COLUMNS];
    clear<SECOND>(sum);
    for (int begin = 0; begin < FIRST; begin += DEPTH) {
        __syncthreads();
        for (int i = threadIdx.x; i < DEPTH * SECOND; i += FIRST_THREADS) {
            const int k = begin + i / SECOND;
            slices[i] = k < FIRST ? w2[k * SECOND + i % SECOND] : 0;
        }
        __syncthreads();
        if (share.there()) add_slice(hidden + begin * PITCH, slices, DEPTH, share, sum);
    }
    __syncthreads();
    if (share.there())
        for (int i = 0; i < ROWS_A_THREAD; ++i)
            for (int j = 0; j < SECOND_COLUMNS; ++j) {
                const int column = share.column(j);
                hidden[share.row(i) * SECOND + column] = relu(sum[i][j] + b2[column]);
            }
    __syncthreads();
    pool_rows<FIRST_THREADS>(hidden, hidden + ROWS * SECOND, lengths, partial, rows, tokens);
}
