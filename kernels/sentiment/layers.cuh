// Both layers by register blocks, a launch each. `finish(value, column)` is what becomes of an
// element before it is stored.
#include "tile_product.cuh"

constexpr int FIRST_THREADS = DOWN * FIRST_PADDED / COLUMNS_A_THREAD;
constexpr int SECOND_COLUMNS = 4;
constexpr int SECOND_THREADS = DOWN * SECOND / SECOND_COLUMNS;

template <int COLUMNS, int N, int THREADS, typename At, typename Finish>
__device__ __forceinline__ void layer(
    At at, const float *w, float *out, long long rows, int depth, int columns, Finish finish) {
    DYNAMIC_SHARED(float, slices);
    const long long base = blockIdx.x * static_cast<long long>(ROWS);
    const Share<COLUMNS, N> share;
    float sum[ROWS_A_THREAD][N];
    product<COLUMNS, N, THREADS>(
        [&](int row, int k) { return base + row < rows ? at(base + row, k) : 0; }, w, depth,
        columns, slices, share, sum);
    if (!share.there()) return;
    for (int i = 0; i < ROWS_A_THREAD; ++i)
        for (int j = 0; j < N; ++j) {
            const long long row = base + share.row(i);
            const int column = share.column(j);
            if (row < rows && column < columns)
                out[row * columns + column] = finish(sum[i][j], column);
        }
}

template <typename Finish>
__device__ __forceinline__ void first_layer(
    INPUT input, const float *w, float *out, long long rows, Finish finish) {
    layer<FIRST_PADDED, COLUMNS_A_THREAD, FIRST_THREADS>(
        [&](long long row, int k) { return input.at(row, k); }, w, out, rows, EMBEDDING, FIRST,
        finish);
}

template <typename Finish>
__device__ __forceinline__ void second_layer(
    const float *h, const float *w, float *out, long long rows, Finish finish) {
    layer<SECOND, SECOND_COLUMNS, SECOND_THREADS>(
        [&](long long row, int k) { return h[row * FIRST + k]; }, w, out, rows, FIRST, SECOND,
        finish);
}
