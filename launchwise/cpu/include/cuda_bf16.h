// bfloat16: CUDA's types and functions.
#pragma once
#include "cuda_fp16.h"
#include "launchwise_cpu/narrow.h"

using __nv_bfloat16 = launchwise_cpu::Narrow<launchwise_cpu::Bfloat16>;
using __nv_bfloat162 = launchwise_cpu::Pair<launchwise_cpu::Bfloat16>;
using __nv_bfloat16_raw = launchwise_cpu::Raw<launchwise_cpu::Bfloat16>;
using nv_bfloat16 = __nv_bfloat16;
using nv_bfloat162 = __nv_bfloat162;

#define CUDART_INF_BF16 __ushort_as_bfloat16(0x7F80u)
#define CUDART_NAN_BF16 __ushort_as_bfloat16(0x7FFFu)
#define CUDART_MAX_NORMAL_BF16 __ushort_as_bfloat16(0x7F7Fu)
#define CUDART_MIN_DENORM_BF16 __ushort_as_bfloat16(0x0001u)
#define CUDART_ONE_BF16 __ushort_as_bfloat16(0x3F80u)
#define CUDART_ZERO_BF16 __ushort_as_bfloat16(0x0000u)
#define CUDART_NEG_ZERO_BF16 __ushort_as_bfloat16(0x8000u)

#define LAUNCHWISE_T __nv_bfloat16
#define LAUNCHWISE_T2 __nv_bfloat162
#include "launchwise_cpu/narrow_functions.h"
#undef LAUNCHWISE_T
#undef LAUNCHWISE_T2

#include "launchwise_cpu/narrow_names.h"
LAUNCHWISE_NAMED(bfloat16, __nv_bfloat16, __nv_bfloat162)
