// The largest difference of an output and what it should hold, as
// launchwise/workloads/comparison.py computes it on the host.
#pragma once
#include "common/largest.cuh"

namespace common {

// Raises the double at `largest`, which begins as 0. NaN, where it stands against anything else than
// NaN, is larger than every number.
//   WHOLE     whether the numbers are integers
//   NUMBER    what an element of the output is compared as
//   FOUND     type of the output's elements
//   EXPECTED  double for floating-point outputs, else FOUND
template <bool WHOLE, typename NUMBER, typename FOUND, typename EXPECTED>
__device__ __forceinline__ void difference(const FOUND *found, const EXPECTED *expected,
                                           long long count, unsigned long long *largest) {
    const long long step = gridDim.x * (long long)blockDim.x;
    long long worst = 0;
    for (long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x; i < count; i += step) {
        const NUMBER one = found[i];
        const EXPECTED other = expected[i];
        if (one == other || (one != one && other != other)) continue;
        double away = fabs((double)one - (double)other);
        // double does not tell large integers apart.
        if (WHOLE && away < 1) away = 1;
        // Bits of non-negative doubles have the order of the numbers, and those of this NaN are larger.
        // A GPU's own NaN is negative, and fabs leaves it so.
        const long long bits = away == away ? __double_as_longlong(away) : 0x7FF8000000000000LL;
        worst = bits > worst ? bits : worst;
    }
    raise_to_largest(__longlong_as_double(worst), largest);
}

}  // namespace common
