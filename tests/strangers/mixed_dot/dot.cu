// one sum per block; STORAGE is how the vectors are stored, sums are always double
__inline__ __device__ double warp_sum(double v) {
    for (int m = 16; m >= 1; m /= 2)
        v += __shfl_xor_sync(0xFFFFFFFF, v, m);
    return v;
}

__global__ void dot_blocks(STORAGE const * const a, STORAGE const * const b, double * const sums,
                           int const n) {
    __shared__ double parts[BS / 32];
    int const i = blockIdx.x * BS + threadIdx.x;
    double v = i < n ? (double) a[i] * b[i] : 0.0;

    v = warp_sum(v);
    if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = v;
    __syncthreads();
    if (threadIdx.x == 0) {
        double total = 0.0;
        for (int w = 0; w < BS / 32; ++w) total += parts[w];
        sums[blockIdx.x] = total;
    }
}
