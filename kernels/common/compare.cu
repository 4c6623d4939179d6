// The largest difference of an output and what it should hold (see difference.cuh).
//   FOUND     type of the output
//   EXPECTED  double for floating-point outputs, else FOUND
#include "common/difference.cuh"

extern "C" __global__ void KERNEL(largest_difference)(const FOUND *found, const EXPECTED *expected,
                                                      long long count,
                                                      unsigned long long *largest) {
    common::difference<(FOUND)0.5 == (FOUND)0, FOUND>(found, expected, count, largest);
}
