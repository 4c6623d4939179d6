// Embeddings looked up beforehand, and the float64 reference. Of what the variants stand on it uses the
// conversion of float16 alone: a mistake elsewhere must not repeat itself in the check.

// Embeddings of words, as somebody would hand them in.
extern "C" __global__ void KERNEL(look_up)(
    const unsigned short *words, const unsigned short *table, float *x, long long rows) {
    const long long step = gridDim.x * (long long)blockDim.x;
    long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    for (; i < rows * EMBEDDING; i += step)
        x[i] = from_half(table[(long long)words[i / EMBEDDING] * EMBEDDING + i % EMBEDDING]);
}

// One block a case, 64 threads: each layer of a token before the next token.
extern "C" __global__ void KERNEL(reference)(
    const unsigned short *words, const unsigned short *table, const int *lengths,
    const float *w1, const float *b1, const float *w2, const float *b2, const float *w3,
    const float *b3, const float *w4, const float *b4, double *logits, int tokens) {
    DYNAMIC_SHARED(double, shared);
    double *x = shared, *h = shared + 300, *third = h + 150, *mean = third + 32;
    const int thread = threadIdx.x, length = lengths[blockIdx.x];
    double pooled = 0;
    for (int token = 0; token < length; ++token) {
        const long long word = words[blockIdx.x * (long long)tokens + token];
        for (int k = thread; k < 300; k += 64) x[k] = from_half(table[word * 300 + k]);
        __syncthreads();
        for (int column = thread; column < 150; column += 64) {
            double sum = b1[column];
            for (int k = 0; k < 300; ++k) sum += x[k] * w1[k * 150 + column];
            h[column] = sum > 0 ? sum : 0;
        }
        __syncthreads();
        double sum = b2[thread];
        for (int k = 0; k < 150; ++k) sum += h[k] * w2[k * 64 + thread];
        pooled += sum > 0 ? sum : 0;
        __syncthreads();
    }
    mean[thread] = pooled / length;
    __syncthreads();
    if (thread < 32) {
        double sum = b3[thread];
        for (int k = 0; k < 64; ++k) sum += mean[k] * w3[k * 32 + thread];
        third[thread] = sum > 0 ? sum : 0;
    }
    __syncthreads();
    if (thread < 2) {
        double sum = b4[thread];
        for (int k = 0; k < 32; ++k) sum += third[k] * w4[k * 2 + thread];
        logits[blockIdx.x * 2LL + thread] = sum;
    }
}
