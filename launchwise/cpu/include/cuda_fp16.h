// Half precision: CUDA's types and functions.
#pragma once
#include "cuda_on_cpu.h"
#include "launchwise_cpu/narrow.h"

using __half = launchwise_cpu::Narrow<launchwise_cpu::Binary16>;
using __half2 = launchwise_cpu::Pair<launchwise_cpu::Binary16>;
using __half_raw = launchwise_cpu::Raw<launchwise_cpu::Binary16>;
using half = __half;
using half2 = __half2;
using __nv_half = __half;
using __nv_half2 = __half2;
using nv_half = __half;
using nv_half2 = __half2;

#define CUDART_INF_FP16 __ushort_as_half(0x7C00u)
#define CUDART_NAN_FP16 __ushort_as_half(0x7FFFu)
#define CUDART_MAX_NORMAL_FP16 __ushort_as_half(0x7BFFu)
#define CUDART_MIN_DENORM_FP16 __ushort_as_half(0x0001u)
#define CUDART_ONE_FP16 __ushort_as_half(0x3C00u)
#define CUDART_ZERO_FP16 __ushort_as_half(0x0000u)
#define CUDART_NEG_ZERO_FP16 __ushort_as_half(0x8000u)

#define LAUNCHWISE_T __half
#define LAUNCHWISE_T2 __half2
#include "launchwise_cpu/narrow_functions.h"
#undef LAUNCHWISE_T
#undef LAUNCHWISE_T2

#include "launchwise_cpu/narrow_names.h"
LAUNCHWISE_NAMED(half, __half, __half2)
