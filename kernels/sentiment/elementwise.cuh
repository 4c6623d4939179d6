// What the variants that go layer by layer do between products. Included in the namespaces of those
// who use it.

extern "C" __global__ void KERNEL(bias_relu)(
    float *values, const float *bias, long long count, int columns) {
    const long long step = gridDim.x * static_cast<long long>(blockDim.x);
    long long i = blockIdx.x * static_cast<long long>(blockDim.x) + threadIdx.x;
    for (; i < count; i += step) values[i] = relu(values[i] + bias[i % columns]);
}

// Mean over the tokens that count; a thread has one column of one case.
extern "C" __global__ void KERNEL(pool)(
    const float *values, const int *lengths, float *pooled, int cases, int tokens) {
    const long long i = blockIdx.x * static_cast<long long>(blockDim.x) + threadIdx.x;
    if (i >= static_cast<long long>(cases) * SECOND) return;
    const int number = static_cast<int>(i / SECOND), column = static_cast<int>(i % SECOND);
    const float *own = values + static_cast<long long>(number) * tokens * SECOND + column;
    float sum = 0;
    for (int token = 0; token < lengths[number]; ++token) sum += own[token * SECOND];
    pooled[i] = sum / lengths[number];
}

// The layers on whole cases, four of them a block of 128 threads.
extern "C" __global__ void KERNEL(head)(
    const float *pooled, const float *w3, const float *b3, const float *w4, const float *b4,
    float *logits, int cases) {
    DYNAMIC_SHARED(float, hidden);
    const int own = threadIdx.x / THIRD, number = blockIdx.x * (blockDim.x / THIRD) + own;
    const bool there = number < cases;
    const long long at = there ? number : 0;
    classify(pooled + at * SECOND, hidden + own * THIRD, w3, b3, w4, b4, logits + at * CLASSES,
             threadIdx.x % THIRD, there);
}
