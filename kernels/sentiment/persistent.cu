// Reviews one by one from a queue, all of them by one launch; the published method has a launch sequence
// per review. Blocks stay: each takes the number of the next review until there is none. It copies the
// review from the host's page-locked memory to a place of its own on the device, and its warps do both
// layers on ROWS tokens at a time, as those of fused_case. ROWS, WARPS and RESIDENT are macros of the build.
#include "fused_case.cu"

// What a review consists of, as words that a thread copies: WORDS per token.
template <typename Input>
struct Copied {
    using Word = FourFloats;
    static constexpr int WORDS = EMBEDDING / 4;
};
template <>
struct Copied<Tokens> {
    using Word = unsigned short;
    static constexpr int WORDS = 1;
};

// All threads of the block copy; each has COPIES_AHEAD words on their way, so that the bus is never idle.
template <typename Word>
__device__ __forceinline__ void copy_review(const Word *from, Word *to, int count) {
    constexpr int COPIES_AHEAD = 8;
    for (int begin = threadIdx.x; begin < count; begin += COPIES_AHEAD * THREADS) {
        Word words[COPIES_AHEAD];
#pragma unroll
        for (int n = 0; n < COPIES_AHEAD; ++n)
            if (begin + n * THREADS < count) words[n] = from[begin + n * THREADS];
#pragma unroll
        for (int n = 0; n < COPIES_AHEAD; ++n)
            if (begin + n * THREADS < count) to[begin + n * THREADS] = words[n];
    }
}

// `given`, `lengths` and `logits` lie in host memory. `queue`: the number of the next review, 0 at the
// beginning. `places`: a review per block.
extern "C" __global__ void __launch_bounds__(THREADS) KERNEL(queued)(
    const void *given, const unsigned short *table, const float *weights, const float *b1,
    const float *b2, const int *lengths, const float *w3, const float *b3, const float *w4,
    const float *b4, int *queue, void *places, float *logits, int cases, int tokens) {
    DYNAMIC_SHARED(float, shared);
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, across = lane % 8;
    float *slab = shared + warp * SLAB, *behind = shared + WARPS * SLAB;
#if RESIDENT
    float *all = behind;
    for (int i = threadIdx.x * 4; i < WEIGHTS; i += THREADS * 4)
        *reinterpret_cast<Some<4> *>(all + i) = *reinterpret_cast<const Some<4> *>(weights + i);
    behind += WEIGHTS;
#else
    const float *all = weights;
#endif
    // Sums over a warp's tokens, and over those that it has at the moment; then the mean of the review.
    float *sums = behind + warp * 2 * SECOND, *now = sums + SECOND;
    float *pooled = behind + WARPS * 2 * SECOND;
    int *next = reinterpret_cast<int *>(pooled + SECOND + THIRD);
    using Word = Copied<INPUT>::Word;
    const int words = tokens * Copied<INPUT>::WORDS;
    Word *place = static_cast<Word *>(places) + blockIdx.x * static_cast<long long>(words);
    for (;;) {
        if (threadIdx.x == 0) *next = atomicAdd(queue, 1);
        __syncthreads();
        const int number = *next;
        if (number >= cases) return;
        const long long begin = number * static_cast<long long>(words);
        copy_review(static_cast<const Word *>(given) + begin, place, words);
        for (int column = lane; column < SECOND; column += 32) sums[column] = 0;
        __syncthreads();
        const int length = lengths[number];
        // A warp without tokens in the last round works on the review's last one, and counts nothing.
        for (int round = 0; round < tokens; round += WARPS * ROWS) {
            const int base = round + warp * ROWS;
            float first[HIGH][FIRST_WIDE], second[HIGH][SECOND_WIDE];
            begin_with(b1, FIRST, across, first);
            first_layer(INPUT(place, table), base, tokens, all, slab, lane, first);
#pragma unroll
            for (int i = 0; i < HIGH; ++i)
#pragma unroll
                for (int j = 0; j < FIRST_WIDE; ++j) first[i][j] = relu(first[i][j]);
            begin_with(b2, SECOND, across, second);
            second_layer(first, all + FIRST_WEIGHTS, lane, second);
            pool(second, base, 0, length, lane, now);
            common::sync_warp();
            for (int column = lane; column < SECOND; column += 32) sums[column] += now[column];
            common::sync_warp();
        }
        __syncthreads();
        for (int column = threadIdx.x; column < SECOND; column += THREADS) {
            float sum = 0;
            for (int n = 0; n < WARPS; ++n) sum += behind[n * 2 * SECOND + column];
            pooled[column] = sum / length;
        }
        __syncthreads();
        float *answer = logits + number * static_cast<long long>(CLASSES);
        classify(pooled, pooled + SECOND, w3, b3, w4, b4, answer, lane, warp == 0);
    }
}
