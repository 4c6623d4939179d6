__device__ float sum_of_warp(float value) {
    for (int apart = 16; apart; apart /= 2) value += __shfl_xor_sync(0xffffffffu, value, apart);
    return value;
}
__global__ void sum(float *out, const float *in) {
    __shared__ float sums[8];
    float value = sum_of_warp(in[threadIdx.x]);
    if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = value;
    __syncthreads();
    if (threadIdx.x / 32 == READER) {
        value = sum_of_warp(threadIdx.x % 32 < 8 ? sums[threadIdx.x % 32] : 0.0f);
        if (threadIdx.x % 32 == 0) *out = value;
    }
}
