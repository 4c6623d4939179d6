/* Privatised histogram: every block counts in shared memory first,
   then adds what it has to the result. */

#ifndef BINS
#define BINS 64
#endif

extern "C" __global__ void hist_clear(int *hist) { hist[threadIdx.x] = 0; }

extern "C" __global__ __launch_bounds__(BLOCK)
void hist_add(int *__restrict__ hist, const int *__restrict__ values, const int N) {
    __shared__ int mine[BINS];
    for (int b = threadIdx.x; b < BINS; b += BLOCK) mine[b] = 0;
    __syncthreads();

    const int first = blockIdx.x * BLOCK * ITEMS + threadIdx.x;
#pragma unroll
    for (int k = 0; k < ITEMS; ++k) {
        const int i = first + k * BLOCK;
        if (i < N) atomicAdd(mine + values[i], 1);
    }
    __syncthreads();  // all counted
    for (int b = threadIdx.x; b < BINS; b += BLOCK) {
        if (mine[b]) atomicAdd(hist + b, mine[b]);
    }
}
