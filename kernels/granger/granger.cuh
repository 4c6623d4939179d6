// What all variants share. Included once, as a header.
#pragma once

#include "common/dynamic_shared.cuh"

#ifdef __CUDACC__
__device__ __forceinline__ float root(float value) { return sqrtf(value); }
__device__ __forceinline__ double root(double value) { return sqrt(value); }
#else
template <typename T>
inline T root(T value) { return std::sqrt(value); }
#endif
