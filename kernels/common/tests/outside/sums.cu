#include "common/warp.cuh"

extern "C" __global__ void KERNEL(sums)(const REAL *values, REAL *sums, REAL *firsts) {
    DYNAMIC_SHARED(REAL, copy);
    copy[threadIdx.x] = values[threadIdx.x];
    common::sync_warp();
    REAL sum = copy[threadIdx.x];
    for (int mask = 16; mask; mask /= 2) sum += common::shuffle_xor(sum, mask);
    const REAL first = common::shuffle(copy[threadIdx.x], 0);
    if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = sum;
    firsts[threadIdx.x] = first;
}
