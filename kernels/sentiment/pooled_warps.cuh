// Sums over tokens by warps of ROWS tokens each. LAST_ANSWERS: whichever is the last to hand in sums of a
// case answers it; or a launch of its own does, which spares the warps the waiting. Included in the
// namespaces of those who use it.
#include "pooled_head.cuh"

// What a case's answer needs. `arrivals`: warps that have handed in sums, by case; 0 at the beginning,
// and again when all is done.
struct Answer {
    const int *lengths;
    const float *w3, *b3, *w4, *b4;
    int *arrivals;
    float *partial, *logits;
    long long rows;
    int tokens;

    // Visits the cases of a warp's tokens: `put(begin, end, out)` writes the 64 sums over those between
    // `begin` and `end`.
    template <typename Put>
    __device__ __forceinline__ void hand_in(long long part, Put put) const {
        const long long base = part * ROWS;
        const int first = static_cast<int>(base / tokens);
        for (int n = 0; n < most_cases(tokens); ++n) {
            const long long begin = static_cast<long long>(first + n) * tokens;
            if (begin >= base + ROWS || begin >= rows) break;
            put(begin, begin + lengths[first + n], partial + place_of_sums(part, n, tokens));
            if (LAST_ANSWERS && is_last(first + n)) finish(first + n);
        }
    }

    __device__ __forceinline__ bool is_last(int number) const {
        const int parts = static_cast<int>(last_part(number, tokens) - first_part(number, tokens));
        return arrive(arrivals + number) == parts;
    }

    // A lane has two columns of the mean, then a unit of the third layer.
    __device__ __forceinline__ void finish(int number) const {
        static_assert(SECOND == 64 && THIRD == 32 && CLASSES == 2, "a lane has two columns, one unit");
        const int lane = threadIdx.x % 32;
        float pooled[2];
        see_arrived();
        for (int n = 0; n < 2; ++n)
            pooled[n] = sum_of_parts(number, tokens, n * 32 + lane, [&](long long place) {
                            return published(partial + place);
                        }) /
                        lengths[number];
        float sum = b3[lane];
#pragma unroll
        for (int k = 0; k < SECOND; ++k)
            sum += common::shuffle(pooled[k / 32], k % 32) * w3[k * THIRD + lane];
        const float hidden = relu(sum);
        for (int n = 0; n < CLASSES; ++n) {
            const float logit = sum_of_lanes<1>(hidden * w4[lane * CLASSES + n]) + b4[n];
            if (lane == 0) logits[number * 2LL + n] = logit;
        }
        if (lane == 0) arrivals[number] = 0;
    }
};
