// Two kernels that show a GPU's ceilings: a copy with 16-byte accesses, and one that does nothing.
extern "C" __global__ void copy_words(uint4 *__restrict__ to, const uint4 *__restrict__ from,
                                      long long words) {
    // Four loads in flight a thread before the first store: latency hides behind them.
    const long long stride = (long long)gridDim.x * blockDim.x;
    long long word = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    for (; word + 3 * stride < words; word += 4 * stride) {
        const uint4 a = from[word], b = from[word + stride];
        const uint4 c = from[word + 2 * stride], d = from[word + 3 * stride];
        to[word] = a;
        to[word + stride] = b;
        to[word + 2 * stride] = c;
        to[word + 3 * stride] = d;
    }
    for (; word < words; word += stride) to[word] = from[word];
}

extern "C" __global__ void nothing() {}
