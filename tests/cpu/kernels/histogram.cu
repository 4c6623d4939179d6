template <int BINS>
__device__ void clear(unsigned (&counts)[BINS]) {
    for (int bin = threadIdx.x; bin < BINS; bin += blockDim.x) counts[bin] = 0;
}

__global__ void histogram(unsigned *counts, const unsigned char *bytes, int n) {
    __shared__ unsigned own[256], most;
    clear(own);
    if (threadIdx.x == 0) most = 0;
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        const unsigned before = atomicAdd(&own[bytes[i]], 1u);
        atomicMax(&most, before + 1);
    }
    __syncthreads();
    for (int bin = threadIdx.x; bin < 256; bin += blockDim.x)
        if (own[bin]) atomicAdd(&counts[bin], own[bin]);
    if (threadIdx.x == 0) atomicMax(&counts[256], most);
}
