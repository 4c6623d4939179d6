// Floating-point numbers of 16 bits. Each operation computes in double and rounds once, to the nearest
// even: sums, products, quotients and roots of such numbers are rounded correctly that way.
#pragma once
#include "arithmetic.h"
#include "kinds.h"

namespace launchwise_cpu {

struct Binary16 {
    static constexpr int FRACTION = 10, BIAS = 15;
    static constexpr uint16_t NOT_A_NUMBER = 0x7FFF;
};
struct Bfloat16 {
    static constexpr int FRACTION = 7, BIAS = 127;
    static constexpr uint16_t NOT_A_NUMBER = 0x7FFF;
};

enum class Rounding { NEAREST, ZERO, DOWN, UP };

// The bits of a format nearest to a number, or next to it in a direction.
template <typename Format>
static inline uint16_t narrowed(double value, Rounding rounding = Rounding::NEAREST) {
    constexpr int FRACTION = Format::FRACTION, BIAS = Format::BIAS;
    constexpr uint16_t INFINITE = static_cast<uint16_t>((2 * BIAS + 1) << FRACTION);
    const uint64_t bits = bits_as<uint64_t>(value), magnitude = bits << 1 >> 1;
    const uint16_t sign = bits >> 63 ? 0x8000 : 0;
    if (magnitude > uint64_t(2047) << 52) return Format::NOT_A_NUMBER;
    if (magnitude == uint64_t(2047) << 52) return sign | INFINITE;
    if (magnitude == 0) return sign;
    // Numbers of the format: fraction * 2^(exponent - FRACTION), exponent >= 1 - BIAS.
    const int exponent = static_cast<int>(magnitude >> 52) - 1023;
    const int least = 1 - BIAS, shown = exponent < least ? least : exponent;
    const uint64_t fraction = (magnitude & ((uint64_t(1) << 52) - 1)) | uint64_t(1) << 52;
    const int dropped = 52 - FRACTION + shown - exponent;
    uint64_t kept = 0, rest = 1, half = 2;  // far below the smallest number
    if (dropped < 64) {
        kept = fraction >> dropped;
        rest = fraction & ((uint64_t(1) << dropped) - 1);
        half = uint64_t(1) << (dropped - 1);
    }
    const bool away = rounding == Rounding::NEAREST ? rest > half || (rest == half && kept & 1)
                      : rounding == Rounding::DOWN  ? rest && sign
                      : rounding == Rounding::UP    ? rest && !sign
                                                    : false;
    kept += away;
    const bool normal = exponent >= least;
    const uint64_t found = (normal ? static_cast<uint64_t>(shown + BIAS - 1) << FRACTION : 0) + kept;
    if (found < INFINITE) return sign | static_cast<uint16_t>(found);
    const bool infinite = rounding == Rounding::NEAREST || (rounding == Rounding::DOWN && sign) ||
                          (rounding == Rounding::UP && !sign);
    return sign | static_cast<uint16_t>(infinite ? INFINITE : INFINITE - 1);
}

template <typename Format>
static inline float widened(uint16_t bits) {
    constexpr int FRACTION = Format::FRACTION, BIAS = Format::BIAS;
    // The smallest number of the format.
    constexpr float LEAST = 1.0f / (uint32_t(1) << (BIAS + FRACTION - 1));
    const int exponent = bits << 1 >> 1 >> FRACTION & (2 * BIAS + 1);
    const int fraction = bits & ((1 << FRACTION) - 1);
    float magnitude;
    if (exponent == 2 * BIAS + 1)
        magnitude = fraction ? __builtin_nanf("") : HUGE_VALF;
    else if (exponent)
        magnitude = bits_as<float>(static_cast<uint32_t>(exponent + 127 - BIAS) << 23 |
                                   static_cast<uint32_t>(fraction) << (23 - FRACTION));
    else
        magnitude = static_cast<float>(fraction) * LEAST;
    return bits >> 15 ? -magnitude : magnitude;
}
template <>
inline float widened<Bfloat16>(uint16_t bits) {
    return bits_as<float>(static_cast<uint32_t>(bits) << 16);
}

// a * b + c of numbers whose product is exact: the sum rounded to odd, so that a second rounding to a
// format of 16 bits is as good as one.
static inline double fused(double a, double b, double c) {
    const double product = a * b, sum = product + c;
    if (!std::isfinite(sum)) return sum;
    const double back = sum - product, error = (product - (sum - back)) + (c - back);
    if (error == 0 || bits_as<uint64_t>(sum) & 1) return sum;
    return std::nextafter(sum, error > 0 ? HUGE_VAL : -HUGE_VAL);
}

// __half_raw and __nv_bfloat16_raw
template <typename Format>
struct Raw {
    unsigned short x;
};

// __half and __nv_bfloat16, with the conversions of CUDA's classes.
template <typename Format>
struct Narrow {
    uint16_t bits;

    Narrow() = default;
    // Volatile numbers are read and written by their bits.
    Narrow(const Raw<Format> &raw) : bits(raw.x) {}
    operator Raw<Format>() const { return {bits}; }
    operator Raw<Format>() const volatile { return {bits}; }
    Narrow &operator=(const Raw<Format> &raw) { return *this = of_bits(raw.x); }
    void operator=(const Raw<Format> &raw) volatile { bits = raw.x; }
#define LAUNCHWISE_CONVERSION(type)                                                          \
    Narrow(type value) : bits(narrowed<Format>(static_cast<double>(value))) {}               \
    Narrow &operator=(type value) { return *this = Narrow(value); }
    LAUNCHWISE_CONVERSION(float)
    LAUNCHWISE_CONVERSION(double)
    LAUNCHWISE_CONVERSION(short)
    LAUNCHWISE_CONVERSION(unsigned short)
    LAUNCHWISE_CONVERSION(int)
    LAUNCHWISE_CONVERSION(unsigned)
    LAUNCHWISE_CONVERSION(long)
    LAUNCHWISE_CONVERSION(unsigned long)
    LAUNCHWISE_CONVERSION(long long)
    LAUNCHWISE_CONVERSION(unsigned long long)
#undef LAUNCHWISE_CONVERSION
    operator float() const { return widened<Format>(bits); }
    operator bool() const { return (bits & 0x7FFF) != 0; }
#define LAUNCHWISE_CONVERSION(type) \
    operator type() const { return whole<type>(widened<Format>(bits)); }
    LAUNCHWISE_CONVERSION(char)
    LAUNCHWISE_CONVERSION(signed char)
    LAUNCHWISE_CONVERSION(unsigned char)
    LAUNCHWISE_CONVERSION(short)
    LAUNCHWISE_CONVERSION(unsigned short)
    LAUNCHWISE_CONVERSION(int)
    LAUNCHWISE_CONVERSION(unsigned)
    LAUNCHWISE_CONVERSION(long)
    LAUNCHWISE_CONVERSION(unsigned long)
    LAUNCHWISE_CONVERSION(long long)
    LAUNCHWISE_CONVERSION(unsigned long long)
#undef LAUNCHWISE_CONVERSION

    static Narrow of_bits(uint16_t bits) {
        Narrow made;
        made.bits = bits;
        return made;
    }
    static Narrow rounded(double value, Rounding rounding = Rounding::NEAREST) {
        return of_bits(narrowed<Format>(value, rounding));
    }
    double wide() const { return widened<Format>(bits); }

#define LAUNCHWISE_OPERATOR(sign)                                                           \
    friend Narrow operator sign(const Narrow &a, const Narrow &b) {                         \
        return rounded(a.wide() sign b.wide());                                             \
    }                                                                                       \
    friend Narrow &operator sign##=(Narrow &a, const Narrow &b) { return a = a sign b; }
    LAUNCHWISE_OPERATOR(+)
    LAUNCHWISE_OPERATOR(-)
    LAUNCHWISE_OPERATOR(*)
    LAUNCHWISE_OPERATOR(/)
#undef LAUNCHWISE_OPERATOR
#define LAUNCHWISE_OPERATOR(sign) \
    friend bool operator sign(const Narrow &a, const Narrow &b) { return a.wide() sign b.wide(); }
    LAUNCHWISE_OPERATOR(==)
    LAUNCHWISE_OPERATOR(!=)
    LAUNCHWISE_OPERATOR(<)
    LAUNCHWISE_OPERATOR(<=)
    LAUNCHWISE_OPERATOR(>)
    LAUNCHWISE_OPERATOR(>=)
#undef LAUNCHWISE_OPERATOR
    friend Narrow operator+(const Narrow &a) { return a; }
    friend Narrow operator-(const Narrow &a) { return of_bits(a.bits ^ 0x8000); }
    friend Narrow &operator++(Narrow &a) { return a = rounded(a.wide() + 1); }
    friend Narrow &operator--(Narrow &a) { return a = rounded(a.wide() - 1); }
    friend Narrow operator++(Narrow &a, int) {
        const Narrow before = a;
        ++a;
        return before;
    }
    friend Narrow operator--(Narrow &a, int) {
        const Narrow before = a;
        --a;
        return before;
    }
};

// __half2 and __nv_bfloat162
template <typename Format>
struct alignas(4) Pair {
    using Element = Narrow<Format>;
    Element x, y;

    Pair() = default;
    Pair(const Element &first, const Element &second) : x(first), y(second) {}

#define LAUNCHWISE_OPERATOR(sign)                                                              \
    friend Pair operator sign(const Pair &a, const Pair &b) { return {a.x sign b.x, a.y sign b.y}; } \
    friend Pair &operator sign##=(Pair &a, const Pair &b) { return a = a sign b; }
    LAUNCHWISE_OPERATOR(+)
    LAUNCHWISE_OPERATOR(-)
    LAUNCHWISE_OPERATOR(*)
    LAUNCHWISE_OPERATOR(/)
#undef LAUNCHWISE_OPERATOR
#define LAUNCHWISE_OPERATOR(sign) \
    friend bool operator sign(const Pair &a, const Pair &b) { return a.x sign b.x && a.y sign b.y; }
    LAUNCHWISE_OPERATOR(==)
    LAUNCHWISE_OPERATOR(<)
    LAUNCHWISE_OPERATOR(<=)
    LAUNCHWISE_OPERATOR(>)
    LAUNCHWISE_OPERATOR(>=)
    LAUNCHWISE_OPERATOR(!=)
#undef LAUNCHWISE_OPERATOR
    friend Pair operator+(const Pair &a) { return a; }
    friend Pair operator-(const Pair &a) { return {-a.x, -a.y}; }
    friend Pair &operator++(Pair &a) { return a = {++a.x, ++a.y}; }
    friend Pair &operator--(Pair &a) { return a = {--a.x, --a.y}; }
};

template <>
struct KindOf<Narrow<Binary16>> : std::integral_constant<unsigned, FLOATING> {};
template <>
struct KindOf<Narrow<Bfloat16>> : std::integral_constant<unsigned, BFLOAT16> {};

template <typename Format>
static inline Narrow<Format> saturated(const Narrow<Format> &a) {
    return a != a ? Narrow<Format>(0) : a < Narrow<Format>(0) ? Narrow<Format>(0)
           : a > Narrow<Format>(1)    ? Narrow<Format>(1)
                                      : a;
}
// NaN stays NaN.
template <typename Format>
static inline Narrow<Format> positive(const Narrow<Format> &a) {
    return a < Narrow<Format>(0) ? Narrow<Format>(0) : a;
}

}  // namespace launchwise_cpu
