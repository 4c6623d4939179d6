// Sums over tokens by blocks of ROWS tokens.
// Included in the namespaces of those who use it.
#include "pooled_head.cuh"

// `h`: the block's rows of the second layer, SECOND words each, in shared memory; `sums`: THREADS words
// of it. Writes the sums over the rows that count.
template <int THREADS>
__device__ __forceinline__ void pool_rows(
    const float *h, float *sums, const int *lengths, float *partial, long long rows, int tokens) {
    constexpr int GROUPS = THREADS / SECOND;
    const long long base = blockIdx.x * static_cast<long long>(ROWS);
    const int group = threadIdx.x / SECOND, column = threadIdx.x % SECOND;
    const long long first = base / tokens;
    for (int n = 0; n < most_cases(tokens); ++n) {
        const long long begin = (first + n) * tokens;
        if (begin >= base + ROWS || begin >= rows) break;
        const long long end = begin + lengths[first + n];
        const int from = static_cast<int>(begin > base ? begin - base : 0);
        const int to = static_cast<int>(end < base ? 0 : end < base + ROWS ? end - base : ROWS);
        float sum = 0;
        if (group < GROUPS)
            for (int row = from + group; row < to; row += GROUPS) sum += h[row * SECOND + column];
        sums[threadIdx.x] = sum;
        __syncthreads();
        if (group == 0) {
            for (int other = 1; other < GROUPS; ++other) sum += sums[other * SECOND + column];
            partial[place_of_sums(blockIdx.x, n, tokens) + column] = sum;
        }
        __syncthreads();
    }
}
