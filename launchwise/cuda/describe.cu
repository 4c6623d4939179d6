// Two kernels that show a GPU's ceilings: a copy with 16-byte accesses, and one that does nothing.
extern "C" __global__ void copy_words(uint4 *__restrict__ to, const uint4 *__restrict__ from,
                                      long long words) {
    // Four loads in flight a thread before the first store: latency hides behind them.
    const long long word = (long long)blockIdx.x * 4 * blockDim.x + threadIdx.x;
    if (word + 3 * blockDim.x < words) {
        const uint4 a = from[word], b = from[word + blockDim.x];
        const uint4 c = from[word + 2 * blockDim.x], d = from[word + 3 * blockDim.x];
        to[word] = a;
        to[word + blockDim.x] = b;
        to[word + 2 * blockDim.x] = c;
        to[word + 3 * blockDim.x] = d;
    }
}

extern "C" __global__ void nothing() {}

// Chains of dependent multiply-adds, enough of them side by side to hide their latency.
#define CHAINS 8
#define STEPS 1024
template <typename Real> __device__ void multiply_add(Real *__restrict__ to, Real factor) {
    Real values[CHAINS];
    for (int chain = 0; chain < CHAINS; ++chain)
        values[chain] = threadIdx.x + chain;
    for (int step = 0; step < STEPS; ++step)
#pragma unroll
        for (int chain = 0; chain < CHAINS; ++chain)
            values[chain] = values[chain] * factor + factor;
    Real sum = 0;
    for (int chain = 0; chain < CHAINS; ++chain)
        sum += values[chain];
    // Never true, but the compiler cannot know, and so has to compute.
    if (sum == Real(-1))
        to[0] = sum;
}

extern "C" __global__ void multiply_add_float32(float *to, float factor) {
    multiply_add(to, factor);
}

extern "C" __global__ void multiply_add_float64(double *to, double factor) {
    multiply_add(to, factor);
}
