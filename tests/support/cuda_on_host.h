// Enough of CUDA C++ to run a kernel's own source on the CPU, one thread after the other.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstring>
#include <tuple>
#include <utility>

#define __global__
#define __device__
#define __forceinline__ inline
#define __launch_bounds__(...)
using std::max;
using std::min;

struct Dim3 {
    unsigned x, y, z;
};
static Dim3 gridDim, blockDim, blockIdx, threadIdx;

static inline int __float_as_int(float value) {
    int bits;
    std::memcpy(&bits, &value, 4);
    return bits;
}
static inline long long __double_as_longlong(double value) {
    long long bits;
    std::memcpy(&bits, &value, 8);
    return bits;
}
static inline double __dadd_rn(double a, double b) { return a + b; }
static inline double __dmul_rn(double a, double b) { return a * b; }
template <typename T, typename U>
static inline T atomicAdd(T *at, U by) {
    T old = *at;
    *at += by;
    return old;
}
template <typename T>
static inline T atomicMax(T *at, T by) {
    T old = *at;
    *at = max(old, by);
    return old;
}
// Threads run one by one, from the last of a block to the first, so lane 0 comes last and a warp's
// maximum can be handed on from lane to lane. That is all that the kernels use shuffles for.
template <typename T>
static inline T __shfl_xor_sync(unsigned, T value, int) {
    static T running = 0;
    if (threadIdx.x == blockDim.x - 1) running = 0;
    return running = max(running, value);
}

template <typename... Parameters, size_t... Index>
static void call(void (*kernel)(Parameters...), void **arguments, std::index_sequence<Index...>) {
    kernel(*static_cast<std::remove_reference_t<Parameters> *>(arguments[Index])...);
}

template <typename... Parameters>
static void run(void (*kernel)(Parameters...), void **arguments, const unsigned *shape) {
    gridDim = {shape[0], shape[1], shape[2]};
    blockDim = {shape[3], shape[4], shape[5]};
    for (blockIdx.z = 0; blockIdx.z < gridDim.z; ++blockIdx.z)
        for (blockIdx.y = 0; blockIdx.y < gridDim.y; ++blockIdx.y)
            for (blockIdx.x = 0; blockIdx.x < gridDim.x; ++blockIdx.x)
                for (threadIdx.z = 0; threadIdx.z < blockDim.z; ++threadIdx.z)
                    for (threadIdx.y = 0; threadIdx.y < blockDim.y; ++threadIdx.y)
                        for (unsigned x = blockDim.x; x-- > 0;) {
                            threadIdx.x = x;
                            call(kernel, arguments, std::index_sequence_for<Parameters...>{});
                        }
}
