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

static inline __half __float2half(float a) { return a; }
static inline __half __float2half_rn(float a) { return a; }
static inline __half __float2half_rz(float a) { return __half::rounded(a, launchwise_cpu::Rounding::ZERO); }
static inline __half __float2half_rd(float a) { return __half::rounded(a, launchwise_cpu::Rounding::DOWN); }
static inline __half __float2half_ru(float a) { return __half::rounded(a, launchwise_cpu::Rounding::UP); }
static inline __half __double2half(double a) { return a; }
static inline float __half2float(__half a) { return a; }
static inline __half2 __float2half2_rn(float a) { return {a, a}; }
static inline __half2 __floats2half2_rn(float a, float b) { return {a, b}; }
static inline __half2 __float22half2_rn(float2 a) { return {a.x, a.y}; }
static inline float2 __half22float2(__half2 a) { return {a.x, a.y}; }
static inline __half2 __half2half2(__half a) { return {a, a}; }
static inline __half2 __halves2half2(__half a, __half b) { return {a, b}; }
static inline __half2 make_half2(__half a, __half b) { return {a, b}; }
static inline __half __low2half(__half2 a) { return a.x; }
static inline __half __high2half(__half2 a) { return a.y; }
static inline __half2 __low2half2(__half2 a) { return {a.x, a.x}; }
static inline __half2 __high2half2(__half2 a) { return {a.y, a.y}; }
static inline __half2 __lows2half2(__half2 a, __half2 b) { return {a.x, b.x}; }
static inline __half2 __highs2half2(__half2 a, __half2 b) { return {a.y, b.y}; }
static inline short __half_as_short(__half a) { return static_cast<short>(a.bits); }
static inline unsigned short __half_as_ushort(__half a) { return a.bits; }
static inline __half __short_as_half(short a) { return __half::of_bits(static_cast<uint16_t>(a)); }
static inline __half __ushort_as_half(unsigned short a) { return __half::of_bits(a); }

#define LAUNCHWISE_WHOLE(name, type)                                                                \
    static inline type __half2##name##_rn(__half a) { return launchwise_cpu::whole<type>(std::nearbyint(a.wide())); } \
    static inline type __half2##name##_rz(__half a) { return launchwise_cpu::whole<type>(std::trunc(a.wide())); } \
    static inline type __half2##name##_rd(__half a) { return launchwise_cpu::whole<type>(std::floor(a.wide())); } \
    static inline type __half2##name##_ru(__half a) { return launchwise_cpu::whole<type>(std::ceil(a.wide())); } \
    static inline __half __##name##2half_rn(type a) { return a; }                                       \
    static inline __half __##name##2half_rz(type a) { return __half::rounded(static_cast<double>(a), launchwise_cpu::Rounding::ZERO); } \
    static inline __half __##name##2half_rd(type a) { return __half::rounded(static_cast<double>(a), launchwise_cpu::Rounding::DOWN); } \
    static inline __half __##name##2half_ru(type a) { return __half::rounded(static_cast<double>(a), launchwise_cpu::Rounding::UP); }
LAUNCHWISE_WHOLE(int, int)
LAUNCHWISE_WHOLE(uint, unsigned)
LAUNCHWISE_WHOLE(short, short)
LAUNCHWISE_WHOLE(ushort, unsigned short)
LAUNCHWISE_WHOLE(ll, long long)
LAUNCHWISE_WHOLE(ull, unsigned long long)
#undef LAUNCHWISE_WHOLE
static inline signed char __half2char_rz(__half a) { return launchwise_cpu::whole<signed char>(std::trunc(a.wide())); }
static inline unsigned char __half2uchar_rz(__half a) { return launchwise_cpu::whole<unsigned char>(std::trunc(a.wide())); }
