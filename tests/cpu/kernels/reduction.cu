// Sum of a vector: shuffles within warps, shared memory between them, one atomic operation per block.
__device__ float sum_of_warp(float value) {
    for (int apart = warpSize / 2; apart > 0; apart /= 2)
        value += __shfl_down_sync(0xffffffff, value, apart);
    return value;
}

__global__ void sum(float *total, const float *values, int n) {
    __shared__ float sums[32];
    const int thread = threadIdx.y * blockDim.x + threadIdx.x, threads = blockDim.x * blockDim.y;
    float value = 0;
    for (int i = blockIdx.x * threads + thread; i < n; i += gridDim.x * threads) value += values[i];
    value = sum_of_warp(value);
    if (thread % 32 == 0) sums[thread / 32] = value;
    __syncthreads();
    if (thread < 32) {
        value = thread < threads / 32 ? sums[thread] : 0;
        value = sum_of_warp(value);
        if (thread == 0) atomicAdd(total, value);
    }
}
