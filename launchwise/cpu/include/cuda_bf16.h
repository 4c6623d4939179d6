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

static inline __nv_bfloat16 __float2bfloat16(float a) { return a; }
static inline __nv_bfloat16 __float2bfloat16_rn(float a) { return a; }
static inline __nv_bfloat16 __float2bfloat16_rz(float a) { return __nv_bfloat16::rounded(a, launchwise_cpu::Rounding::ZERO); }
static inline __nv_bfloat16 __float2bfloat16_rd(float a) { return __nv_bfloat16::rounded(a, launchwise_cpu::Rounding::DOWN); }
static inline __nv_bfloat16 __float2bfloat16_ru(float a) { return __nv_bfloat16::rounded(a, launchwise_cpu::Rounding::UP); }
static inline __nv_bfloat16 __double2bfloat16(double a) { return a; }
static inline float __bfloat162float(__nv_bfloat16 a) { return a; }
static inline __nv_bfloat162 __float2bfloat162_rn(float a) { return {a, a}; }
static inline __nv_bfloat162 __floats2bfloat162_rn(float a, float b) { return {a, b}; }
static inline __nv_bfloat162 __float22bfloat162_rn(float2 a) { return {a.x, a.y}; }
static inline float2 __bfloat1622float2(__nv_bfloat162 a) { return {a.x, a.y}; }
static inline __nv_bfloat162 __bfloat162bfloat162(__nv_bfloat16 a) { return {a, a}; }
static inline __nv_bfloat162 __halves2bfloat162(__nv_bfloat16 a, __nv_bfloat16 b) { return {a, b}; }
static inline __nv_bfloat162 make_bfloat162(__nv_bfloat16 a, __nv_bfloat16 b) { return {a, b}; }
static inline __nv_bfloat16 __low2bfloat16(__nv_bfloat162 a) { return a.x; }
static inline __nv_bfloat16 __high2bfloat16(__nv_bfloat162 a) { return a.y; }
static inline __nv_bfloat162 __low2bfloat162(__nv_bfloat162 a) { return {a.x, a.x}; }
static inline __nv_bfloat162 __high2bfloat162(__nv_bfloat162 a) { return {a.y, a.y}; }
static inline __nv_bfloat162 __lows2bfloat162(__nv_bfloat162 a, __nv_bfloat162 b) { return {a.x, b.x}; }
static inline __nv_bfloat162 __highs2bfloat162(__nv_bfloat162 a, __nv_bfloat162 b) { return {a.y, b.y}; }
static inline short __bfloat16_as_short(__nv_bfloat16 a) { return static_cast<short>(a.bits); }
static inline unsigned short __bfloat16_as_ushort(__nv_bfloat16 a) { return a.bits; }
static inline __nv_bfloat16 __short_as_bfloat16(short a) { return __nv_bfloat16::of_bits(static_cast<uint16_t>(a)); }
static inline __nv_bfloat16 __ushort_as_bfloat16(unsigned short a) { return __nv_bfloat16::of_bits(a); }

#define LAUNCHWISE_WHOLE(name, type)                                                                \
    static inline type __bfloat162##name##_rn(__nv_bfloat16 a) { return launchwise_cpu::whole<type>(std::nearbyint(a.wide())); } \
    static inline type __bfloat162##name##_rz(__nv_bfloat16 a) { return launchwise_cpu::whole<type>(std::trunc(a.wide())); } \
    static inline type __bfloat162##name##_rd(__nv_bfloat16 a) { return launchwise_cpu::whole<type>(std::floor(a.wide())); } \
    static inline type __bfloat162##name##_ru(__nv_bfloat16 a) { return launchwise_cpu::whole<type>(std::ceil(a.wide())); } \
    static inline __nv_bfloat16 __##name##2bfloat16_rn(type a) { return a; }                                       \
    static inline __nv_bfloat16 __##name##2bfloat16_rz(type a) { return __nv_bfloat16::rounded(static_cast<double>(a), launchwise_cpu::Rounding::ZERO); } \
    static inline __nv_bfloat16 __##name##2bfloat16_rd(type a) { return __nv_bfloat16::rounded(static_cast<double>(a), launchwise_cpu::Rounding::DOWN); } \
    static inline __nv_bfloat16 __##name##2bfloat16_ru(type a) { return __nv_bfloat16::rounded(static_cast<double>(a), launchwise_cpu::Rounding::UP); }
LAUNCHWISE_WHOLE(int, int)
LAUNCHWISE_WHOLE(uint, unsigned)
LAUNCHWISE_WHOLE(short, short)
LAUNCHWISE_WHOLE(ushort, unsigned short)
LAUNCHWISE_WHOLE(ll, long long)
LAUNCHWISE_WHOLE(ull, unsigned long long)
#undef LAUNCHWISE_WHOLE
static inline signed char __bfloat162char_rz(__nv_bfloat16 a) { return launchwise_cpu::whole<signed char>(std::trunc(a.wide())); }
static inline unsigned char __bfloat162uchar_rz(__nv_bfloat16 a) { return launchwise_cpu::whole<unsigned char>(std::trunc(a.wide())); }
