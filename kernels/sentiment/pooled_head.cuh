// The layers on whole cases, from sums over parts of their tokens. Included in the namespaces of those
// who use it.
#include "pooling.cuh"

// Four cases a block of 128 threads.
extern "C" __global__ void KERNEL(head)(
    const float *partial, const int *lengths, const float *w3, const float *b3, const float *w4,
    const float *b4, float *logits, int cases, int tokens) {
    DYNAMIC_SHARED(float, shared);
    const int own = threadIdx.x / THIRD, lane = threadIdx.x % THIRD;
    const int number = blockIdx.x * (blockDim.x / THIRD) + own;
    const bool there = number < cases;
    float *pooled = shared + own * (SECOND + THIRD);
    if (there)
        for (int column = lane; column < SECOND; column += THIRD) {
            const float sum = sum_of_parts(
                number, tokens, column, [&](long long place) { return partial[place]; });
            pooled[column] = sum / lengths[number];
        }
    __syncthreads();
    const long long at = there ? number : 0;
    classify(pooled, pooled + SECOND, w3, b3, w4, b4, logits + at * CLASSES, lane, there);
}
