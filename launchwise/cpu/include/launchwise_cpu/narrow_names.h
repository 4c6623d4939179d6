// Conversions of a 16-bit floating-point type whose names hold that of the type: `__half2float` and
// `__bfloat162float`, `__float22half2_rn` and `__float22bfloat162_rn`.
//   NAME   half or bfloat16
//   TYPE   the number
//   TYPE2  the pair
#pragma once
#include "launchwise_cpu/narrow.h"

#define LAUNCHWISE_NAMED(NAME, TYPE, TYPE2) \
    static inline TYPE __float2##NAME(float a) { return a; } \
    static inline TYPE __float2##NAME##_rn(float a) { return a; } \
    static inline TYPE __float2##NAME##_rz(float a) { return TYPE::rounded(a, launchwise_cpu::Rounding::ZERO); } \
    static inline TYPE __float2##NAME##_rd(float a) { return TYPE::rounded(a, launchwise_cpu::Rounding::DOWN); } \
    static inline TYPE __float2##NAME##_ru(float a) { return TYPE::rounded(a, launchwise_cpu::Rounding::UP); } \
    static inline TYPE __double2##NAME(double a) { return a; } \
    static inline float __##NAME##2float(TYPE a) { return a; } \
    static inline TYPE2 __float2##NAME##2_rn(float a) { return {a, a}; } \
    static inline TYPE2 __floats2##NAME##2_rn(float a, float b) { return {a, b}; } \
    static inline TYPE2 __float22##NAME##2_rn(float2 a) { return {a.x, a.y}; } \
    static inline float2 __##NAME##22float2(TYPE2 a) { return {a.x, a.y}; } \
    static inline TYPE2 __##NAME##2##NAME##2(TYPE a) { return {a, a}; } \
    static inline TYPE2 __halves2##NAME##2(TYPE a, TYPE b) { return {a, b}; } \
    static inline TYPE2 make_##NAME##2(TYPE a, TYPE b) { return {a, b}; } \
    static inline TYPE __low2##NAME(TYPE2 a) { return a.x; } \
    static inline TYPE __high2##NAME(TYPE2 a) { return a.y; } \
    static inline TYPE2 __low2##NAME##2(TYPE2 a) { return {a.x, a.x}; } \
    static inline TYPE2 __high2##NAME##2(TYPE2 a) { return {a.y, a.y}; } \
    static inline TYPE2 __lows2##NAME##2(TYPE2 a, TYPE2 b) { return {a.x, b.x}; } \
    static inline TYPE2 __highs2##NAME##2(TYPE2 a, TYPE2 b) { return {a.y, b.y}; } \
    static inline short __##NAME##_as_short(TYPE a) { return static_cast<short>(a.bits); } \
    static inline unsigned short __##NAME##_as_ushort(TYPE a) { return a.bits; } \
    static inline TYPE __short_as_##NAME(short a) { return TYPE::of_bits(static_cast<uint16_t>(a)); } \
    static inline TYPE __ushort_as_##NAME(unsigned short a) { return TYPE::of_bits(a); } \
    static inline signed char __##NAME##2char_rz(TYPE a) { return launchwise_cpu::whole<signed char>(std::trunc(a.wide())); } \
    static inline unsigned char __##NAME##2uchar_rz(TYPE a) { return launchwise_cpu::whole<unsigned char>(std::trunc(a.wide())); } \
    LAUNCHWISE_WHOLE(NAME, TYPE, int, int) \
    LAUNCHWISE_WHOLE(NAME, TYPE, uint, unsigned) \
    LAUNCHWISE_WHOLE(NAME, TYPE, short, short) \
    LAUNCHWISE_WHOLE(NAME, TYPE, ushort, unsigned short) \
    LAUNCHWISE_WHOLE(NAME, TYPE, ll, long long) \
    LAUNCHWISE_WHOLE(NAME, TYPE, ull, unsigned long long)

// Rounding to whole numbers of a kind, and back.
#define LAUNCHWISE_WHOLE(NAME, TYPE, KIND, WHOLE) \
    static inline WHOLE __##NAME##2##KIND##_rn(TYPE a) { return launchwise_cpu::whole<WHOLE>(std::nearbyint(a.wide())); } \
    static inline WHOLE __##NAME##2##KIND##_rz(TYPE a) { return launchwise_cpu::whole<WHOLE>(std::trunc(a.wide())); } \
    static inline WHOLE __##NAME##2##KIND##_rd(TYPE a) { return launchwise_cpu::whole<WHOLE>(std::floor(a.wide())); } \
    static inline WHOLE __##NAME##2##KIND##_ru(TYPE a) { return launchwise_cpu::whole<WHOLE>(std::ceil(a.wide())); } \
    static inline TYPE __##KIND##2##NAME##_rn(WHOLE a) { return a; } \
    static inline TYPE __##KIND##2##NAME##_rz(WHOLE a) { return TYPE::rounded(static_cast<double>(a), launchwise_cpu::Rounding::ZERO); } \
    static inline TYPE __##KIND##2##NAME##_rd(WHOLE a) { return TYPE::rounded(static_cast<double>(a), launchwise_cpu::Rounding::DOWN); } \
    static inline TYPE __##KIND##2##NAME##_ru(WHOLE a) { return TYPE::rounded(static_cast<double>(a), launchwise_cpu::Rounding::UP); }
