typedef long long i64;

// 1. every block scans its own chunk
__global__ void scanChunks(const int* in, i64* out, i64* partial, int n)
{
    __shared__ i64 sums[BLOCK_SIZE];
    const int t    = threadIdx.x;
    const int base = (blockIdx.x * BLOCK_SIZE + t) * SERIAL;

    i64 local[SERIAL];
    i64 running = 0;
    for (int s = 0; s < SERIAL; s++) {
        if (base + s < n) running += in[base + s];
        local[s] = running;
    }
    sums[t] = running;
    __syncthreads();

    // Hillis & Steele
    for (int offset = 1; offset < BLOCK_SIZE; offset *= 2) {
        i64 left = t >= offset ? sums[t - offset] : 0;
        __syncthreads(); // everybody has read
        sums[t] += left;
        __syncthreads(); // everybody has written
    }

    const i64 before = sums[t] - running;
    for (int s = 0; s < SERIAL; s++)
        if (base + s < n) out[base + s] = before + local[s];
    if (t == BLOCK_SIZE - 1) partial[blockIdx.x] = sums[t];
}

// 2. one thread scans the sums of the chunks (exclusive)
__global__ void scanPartials(i64* partial, int blocks)
{
    i64 running = 0;
    for (int b = 0; b < blocks; b++) {
        i64 own = partial[b];
        partial[b] = running;
        running += own;
    }
}

// 3. add
__global__ void addOffsets(i64* out, const i64* partial, int n)
{
    const int base = (blockIdx.x * BLOCK_SIZE + threadIdx.x) * SERIAL;
    const i64 offset = partial[blockIdx.x];
    for (int s = 0; s < SERIAL; s++)
        if (base + s < n) out[base + s] += offset;
}
