// CUDA C++ for g++: runs a kernel's own source on one thread of the CPU.
//
// Included before every translation unit of the CPU device. source.py replaces __global__, __device__,
// __host__, __shared__ and __constant__ in the preprocessed text.
#pragma once
#include <algorithm>
#include <cassert>
#include <cfloat>
#include <climits>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

// Each library has what the runtime defines for itself.
#define LAUNCHWISE_HIDDEN __attribute__((visibility("hidden")))

#define __grid_constant__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __maxnreg__(...)
#define __align__(bytes) __attribute__((aligned(bytes)))
#define __builtin_align__(bytes) __align__(bytes)
#define CUDART_INF_F HUGE_VALF
#define CUDART_INF HUGE_VAL
#define CUDART_NAN_F __builtin_nanf("")
#define CUDART_NAN __builtin_nan("")
#define CUDART_PI_F 3.141592654f
#define CUDART_PI 3.1415926535897931

#include "launchwise_cpu/kinds.h"
#include "launchwise_cpu/host_types.h"
#include "launchwise_cpu/vectors.h"

LAUNCHWISE_HIDDEN extern dim3 gridDim, blockDim;
LAUNCHWISE_HIDDEN extern uint3 blockIdx, threadIdx;
constexpr int warpSize = 32;

#include "launchwise_cpu/failures.h"
#include "launchwise_cpu/arithmetic.h"
#include "launchwise_cpu/atomics.h"
#include "launchwise_cpu/shared.h"
#include "launchwise_cpu/warps.h"

namespace launchwise_cpu {

template <typename... Parameters, size_t... Index>
static inline void call(
    void (*kernel)(Parameters...), void **arguments, std::index_sequence<Index...>) {
    kernel(*static_cast<std::remove_reference_t<Parameters> *>(arguments[Index])...);
}

// Runs a launch; 1 if it failed.
template <Waits WAITS, typename... Parameters>
static int run(void (*kernel)(Parameters...), void **arguments, const Request *request) {
    static void (*the_kernel)(Parameters...);
    static void **the_arguments;
    the_kernel = kernel;
    the_arguments = arguments;
    return run_launch(
        *request, [] { call(the_kernel, the_arguments, std::index_sequence_for<Parameters...>{}); },
        WAITS);
}

// Parameters of a kernel: 8 times the size in bytes, plus the kind. Returns how many there are.
template <typename... Parameters>
static unsigned describe(void (*)(Parameters...), unsigned *described) {
    ((*described++ = 8 * sizeof(Parameters) + KindOf<std::remove_cv_t<Parameters>>::value), ...);
    return sizeof...(Parameters);
}

}  // namespace launchwise_cpu
