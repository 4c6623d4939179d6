// What does not depend on the type. Included once, as a header.
#pragma once

#ifndef DYNAMIC_SHARED
#define DYNAMIC_SHARED(type, name)                                    \
    extern __shared__ __align__(16) unsigned char name##_bytes[];     \
    type *name = reinterpret_cast<type *>(name##_bytes)
#endif

#ifdef __CUDACC__
__device__ __forceinline__ float root(float value) { return sqrtf(value); }
__device__ __forceinline__ double root(double value) { return sqrt(value); }
#else
template <typename T>
inline T root(T value) { return std::sqrt(value); }
#endif
