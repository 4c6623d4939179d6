#ifndef BLOCK
#define BLOCK 256
#endif

// Totals up to each element of a block's part; the whole part's goes to totals, if somebody wants it.
__global__ void running_total(const int *in, int *out, int *totals, int n)
{
    __shared__ int upTo[BLOCK];
    const int t = threadIdx.x, i = blockIdx.x * BLOCK + t;
    upTo[t] = i < n ? in[i] : 0;
    for (int step = 1; step < BLOCK; step <<= 1) {
        __syncthreads();
        const int more = t >= step ? upTo[t - step] : 0;
        __syncthreads();
        upTo[t] += more;
    }
    if (i < n) out[i] = upTo[t];
    if (totals != nullptr && t == BLOCK - 1) totals[blockIdx.x] = upTo[t];
}

__global__ void add_before(int *out, const int *totals, int n)
{
    const int i = blockIdx.x * BLOCK + threadIdx.x;
    if (blockIdx.x > 0 && i < n) out[i] += totals[blockIdx.x - 1];
}
