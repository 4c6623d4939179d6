// Input values, made on the device. launchwise/workloads/inputs.py computes the same bits in NumPy.
#pragma once

namespace common {

// Element `index` of the uniform sequence of `seed`, in [low, high): output index + 1 of SplitMix64
// (Steele, Lea, Flood 2014), its upper 53 bits as a fraction.
__device__ __forceinline__ double uniform(
    unsigned long long seed, long long index, double low = -1.0, double high = 1.0) {
    unsigned long long bits = seed + (unsigned long long)(index + 1) * 0x9E3779B97F4A7C15ull;
    bits = (bits ^ (bits >> 30)) * 0xBF58476D1CE4E5B9ull;
    bits = (bits ^ (bits >> 27)) * 0x94D049BB133111EBull;
    bits ^= bits >> 31;
    // No fused multiply-add: it rounds once where NumPy rounds twice.
    return __dadd_rn(low, __dmul_rn(high - low, (double)(bits >> 11) * 0x1p-53));
}

}  // namespace common
