// The largest of many non-negative doubles, such as the largest error of a result.
#pragma once

namespace common {

// The larger of two values; NaN and values above 1e300 count as 1e300.
__device__ __forceinline__ double larger(double largest, double value) {
    return value <= 1e300 ? fmax(largest, value) : 1e300;
}

// Raises the double at `largest`, which begins as 0, to the largest `value` of the grid. Every thread
// of the block calls it, in whole warps: one atomic operation per warp.
__device__ __forceinline__ void raise_to_largest(double value, unsigned long long *largest) {
    // Bits of non-negative doubles have the order of the numbers.
    unsigned long long bits = (unsigned long long)__double_as_longlong(value);
    for (int distance = 16; distance; distance /= 2) {
        const unsigned long long other = __shfl_xor_sync(0xFFFFFFFFu, bits, distance);
        bits = other > bits ? other : bits;
    }
    if (threadIdx.x % 32 == 0 && bits) atomicMax(largest, bits);
}

}  // namespace common
