// The largest difference of an output of 16-bit floating-point numbers and what it should hold.
//   FOUND     __half or __nv_bfloat16
#include "common/difference.cuh"
#include "common/half_types.cuh"

extern "C" __global__ void KERNEL(largest_difference)(const FOUND *found, const double *expected,
                                                      long long count,
                                                      unsigned long long *largest) {
    common::difference<false, float>(found, expected, count, largest);
}
