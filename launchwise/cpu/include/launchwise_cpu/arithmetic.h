// CUDA's arithmetic: intrinsics and overloads that the standard library does not have.
//
// Fast intrinsics such as __expf are computed as precisely as the others.
#pragma once
#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace launchwise_cpu {

template <typename To, typename From>
static inline To bits_as(From from) {
    static_assert(sizeof(To) == sizeof(From), "as many bits");
    To to;
    std::memcpy(&to, &from, sizeof(to));
    return to;
}

// Saturates as the GPU's conversions do; NaN gives 0.
template <typename To, typename From>
static inline To whole(From value) {
    if (value != value) return 0;
    const From low = static_cast<From>(std::numeric_limits<To>::min());
    const From high = static_cast<From>(std::numeric_limits<To>::max());
    if (value <= low) return std::numeric_limits<To>::min();
    return value >= high ? std::numeric_limits<To>::max() : static_cast<To>(value);
}

}  // namespace launchwise_cpu

// As fmin and fmax for floating-point numbers: NaN only where both are NaN.
template <typename A, typename B>
constexpr std::common_type_t<A, B> min(A a, B b) {
    using Both = std::common_type_t<A, B>;
    const Both first = static_cast<Both>(a), second = static_cast<Both>(b);
    return second < first || first != first ? second : first;
}
template <typename A, typename B>
constexpr std::common_type_t<A, B> max(A a, B b) {
    using Both = std::common_type_t<A, B>;
    const Both first = static_cast<Both>(a), second = static_cast<Both>(b);
    return first < second || first != first ? second : first;
}

#define LAUNCHWISE_BITS(name, to, from) \
    static inline to name(from value) { return launchwise_cpu::bits_as<to>(value); }
LAUNCHWISE_BITS(__float_as_int, int, float)
LAUNCHWISE_BITS(__float_as_uint, unsigned, float)
LAUNCHWISE_BITS(__int_as_float, float, int)
LAUNCHWISE_BITS(__uint_as_float, float, unsigned)
LAUNCHWISE_BITS(__double_as_longlong, long long, double)
LAUNCHWISE_BITS(__longlong_as_double, double, long long)
#undef LAUNCHWISE_BITS

// Rounded to the nearest, as every operation here.
#define LAUNCHWISE_ROUNDED(prefix, type)                                                    \
    static inline type prefix##add_rn(type a, type b) { return a + b; }                     \
    static inline type prefix##sub_rn(type a, type b) { return a - b; }                     \
    static inline type prefix##mul_rn(type a, type b) { return a * b; }                     \
    static inline type prefix##div_rn(type a, type b) { return a / b; }                     \
    static inline type prefix##rcp_rn(type a) { return 1 / a; }                             \
    static inline type prefix##sqrt_rn(type a) { return std::sqrt(a); }
LAUNCHWISE_ROUNDED(__f, float)
LAUNCHWISE_ROUNDED(__d, double)
#undef LAUNCHWISE_ROUNDED
static inline float __fmaf_rn(float a, float b, float c) { return std::fma(a, b, c); }
static inline double __fma_rn(double a, double b, double c) { return std::fma(a, b, c); }
static inline float __frsqrt_rn(float a) { return static_cast<float>(1 / std::sqrt(double(a))); }
static inline float __fdividef(float a, float b) { return a / b; }
static inline float fdividef(float a, float b) { return a / b; }
static inline float __saturatef(float a) { return a > 0 ? a < 1 ? a : 1.0f : 0.0f; }

static inline float rsqrtf(float a) { return __frsqrt_rn(a); }
static inline double rsqrt(double a) { return 1 / std::sqrt(a); }
static inline float rsqrt(float a) { return __frsqrt_rn(a); }
static inline float rcbrtf(float a) { return 1 / std::cbrt(a); }
static inline double rcbrt(double a) { return 1 / std::cbrt(a); }
// Not static: glibc declares functions of these names.
inline float __expf(float a) noexcept { return std::exp(a); }
inline float __exp10f(float a) noexcept { return std::pow(10.0f, a); }
inline float __logf(float a) noexcept { return std::log(a); }
inline float __log2f(float a) noexcept { return std::log2(a); }
inline float __log10f(float a) noexcept { return std::log10(a); }
inline float __powf(float a, float b) noexcept { return std::pow(a, b); }
inline float __sinf(float a) noexcept { return std::sin(a); }
inline float __cosf(float a) noexcept { return std::cos(a); }
inline float __tanf(float a) noexcept { return std::tan(a); }
inline void __sincosf(float a, float *sine, float *cosine) noexcept {
    *sine = std::sin(a);
    *cosine = std::cos(a);
}
// sin(pi a), cos(pi a)
static inline double sinpi(double a) { return std::sin(M_PI * std::fmod(a, 2.0)); }
static inline double cospi(double a) { return std::cos(M_PI * std::fmod(a, 2.0)); }
static inline float sinpif(float a) { return static_cast<float>(sinpi(a)); }
static inline float cospif(float a) { return static_cast<float>(cospi(a)); }

#define LAUNCHWISE_CONVERSIONS(from, short_name)                                                     \
    static inline int __##short_name##2int_rn(from a) { return launchwise_cpu::whole<int>(std::nearbyint(a)); } \
    static inline int __##short_name##2int_rz(from a) { return launchwise_cpu::whole<int>(std::trunc(a)); } \
    static inline int __##short_name##2int_ru(from a) { return launchwise_cpu::whole<int>(std::ceil(a)); } \
    static inline int __##short_name##2int_rd(from a) { return launchwise_cpu::whole<int>(std::floor(a)); } \
    static inline unsigned __##short_name##2uint_rn(from a) { return launchwise_cpu::whole<unsigned>(std::nearbyint(a)); } \
    static inline unsigned __##short_name##2uint_rz(from a) { return launchwise_cpu::whole<unsigned>(std::trunc(a)); } \
    static inline long long __##short_name##2ll_rn(from a) { return launchwise_cpu::whole<long long>(std::nearbyint(a)); } \
    static inline long long __##short_name##2ll_rz(from a) { return launchwise_cpu::whole<long long>(std::trunc(a)); }
LAUNCHWISE_CONVERSIONS(float, float)
LAUNCHWISE_CONVERSIONS(double, double)
#undef LAUNCHWISE_CONVERSIONS
static inline float __double2float_rn(double a) { return static_cast<float>(a); }
static inline float __int2float_rn(int a) { return static_cast<float>(a); }
static inline float __uint2float_rn(unsigned a) { return static_cast<float>(a); }
static inline double __int2double_rn(int a) { return a; }
static inline double __ll2double_rn(long long a) { return static_cast<double>(a); }

static inline int __popc(unsigned a) { return __builtin_popcount(a); }
static inline int __popcll(unsigned long long a) { return __builtin_popcountll(a); }
static inline int __clz(int a) { return a ? __builtin_clz(static_cast<unsigned>(a)) : 32; }
static inline int __clzll(long long a) {
    return a ? __builtin_clzll(static_cast<unsigned long long>(a)) : 64;
}
static inline int __ffs(int a) { return __builtin_ffs(a); }
static inline int __ffsll(long long a) { return __builtin_ffsll(a); }
static inline unsigned __brev(unsigned a) {
    unsigned reversed = 0;
    for (int bit = 0; bit < 32; ++bit) reversed |= (a >> bit & 1u) << (31 - bit);
    return reversed;
}
static inline unsigned long long __brevll(unsigned long long a) {
    return static_cast<unsigned long long>(__brev(static_cast<unsigned>(a))) << 32 |
           __brev(static_cast<unsigned>(a >> 32));
}
static inline int __mulhi(int a, int b) {
    return static_cast<int>(static_cast<long long>(a) * b >> 32);
}
static inline unsigned __umulhi(unsigned a, unsigned b) {
    return static_cast<unsigned>(static_cast<unsigned long long>(a) * b >> 32);
}
static inline long long __mul64hi(long long a, long long b) {
    return static_cast<long long>(static_cast<__int128>(a) * b >> 64);
}
static inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
    return static_cast<unsigned long long>(static_cast<unsigned __int128>(a) * b >> 64);
}
static inline int __mul24(int a, int b) { return (a << 8 >> 8) * (b << 8 >> 8); }
static inline unsigned __umul24(unsigned a, unsigned b) { return (a & 0xFFFFFFu) * (b & 0xFFFFFFu); }
static inline unsigned __funnelshift_l(unsigned low, unsigned high, unsigned by) {
    return static_cast<unsigned>(((static_cast<unsigned long long>(high) << 32 | low) << (by & 31)) >> 32);
}
static inline unsigned __funnelshift_r(unsigned low, unsigned high, unsigned by) {
    return static_cast<unsigned>((static_cast<unsigned long long>(high) << 32 | low) >> (by & 31));
}
static inline unsigned __byte_perm(unsigned a, unsigned b, unsigned selector) {
    const unsigned long long bytes = static_cast<unsigned long long>(b) << 32 | a;
    unsigned result = 0;
    for (int place = 0; place < 4; ++place) {
        const unsigned choice = selector >> 4 * place;
        unsigned byte = static_cast<unsigned>(bytes >> 8 * (choice & 7)) & 0xFFu;
        if (choice & 8) byte = byte & 0x80u ? 0xFFu : 0;
        result |= byte << 8 * place;
    }
    return result;
}

// Loads and stores with a cache hint.
#define LAUNCHWISE_LOAD(name) \
    template <typename T>     \
    static inline T name(const T *at) { return *at; }
LAUNCHWISE_LOAD(__ldg)
LAUNCHWISE_LOAD(__ldca)
LAUNCHWISE_LOAD(__ldcg)
LAUNCHWISE_LOAD(__ldcs)
LAUNCHWISE_LOAD(__ldlu)
LAUNCHWISE_LOAD(__ldcv)
#undef LAUNCHWISE_LOAD
#define LAUNCHWISE_STORE(name)         \
    template <typename T, typename U>  \
    static inline void name(T *at, U value) { *at = value; }
LAUNCHWISE_STORE(__stwb)
LAUNCHWISE_STORE(__stcg)
LAUNCHWISE_STORE(__stcs)
LAUNCHWISE_STORE(__stwt)
#undef LAUNCHWISE_STORE
