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
