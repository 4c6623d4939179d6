// Sums over the tokens of a case within a block's rows, and the layers on whole cases from those sums.
// A block's rows may be of several cases; each (block, case) has 64 sums of its own, so that they are
// added up in the same order every time. Included in the namespaces of those who use it.

// Cases that ROWS rows may touch.
__device__ __forceinline__ int most_cases(int tokens) { return ROWS / tokens + 2; }

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
            const long long at = blockIdx.x * static_cast<long long>(most_cases(tokens)) + n;
            partial[at * SECOND + column] = sum;
        }
        __syncthreads();
    }
}

// The layers on whole cases, four of them a block of 128 threads.
extern "C" __global__ void KERNEL(head)(
    const float *partial, const int *lengths, const float *w3, const float *b3, const float *w4,
    const float *b4, float *logits, int cases, int tokens) {
    DYNAMIC_SHARED(float, shared);
    const int own = threadIdx.x / THIRD, lane = threadIdx.x % THIRD;
    const int number = blockIdx.x * (blockDim.x / THIRD) + own;
    const bool there = number < cases;
    float *pooled = shared + own * (SECOND + THIRD);
    if (there) {
        const long long begin = static_cast<long long>(number) * tokens;
        const long long last = (begin + tokens - 1) / ROWS;
        for (int column = lane; column < SECOND; column += THIRD) {
            float sum = 0;
            for (long long block = begin / ROWS; block <= last; ++block) {
                const long long n = number - block * ROWS / tokens;
                sum += partial[(block * most_cases(tokens) + n) * SECOND + column];
            }
            pooled[column] = sum / lengths[number];
        }
    }
    __syncthreads();
    const long long at = there ? number : 0;
    classify(pooled, pooled + SECOND, w3, b3, w4, b4, logits + at * CLASSES, lane, there);
}
