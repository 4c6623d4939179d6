// CUDA's vector types, with CUDA's sizes and alignments.
#pragma once

#define LAUNCHWISE_VECTORS(type, base, two, four)                                                   \
    struct type##1 { base x; };                                                                     \
    struct alignas(two) type##2 { base x, y; };                                                     \
    struct type##3 { base x, y, z; };                                                               \
    struct alignas(four) type##4 { base x, y, z, w; };                                              \
    constexpr type##1 make_##type##1(base x) { return {x}; }                                        \
    constexpr type##2 make_##type##2(base x, base y) { return {x, y}; }                             \
    constexpr type##3 make_##type##3(base x, base y, base z) { return {x, y, z}; }                  \
    constexpr type##4 make_##type##4(base x, base y, base z, base w) { return {x, y, z, w}; }

LAUNCHWISE_VECTORS(char, signed char, 2, 4)
LAUNCHWISE_VECTORS(uchar, unsigned char, 2, 4)
LAUNCHWISE_VECTORS(short, short, 4, 8)
LAUNCHWISE_VECTORS(ushort, unsigned short, 4, 8)
LAUNCHWISE_VECTORS(int, int, 8, 16)
LAUNCHWISE_VECTORS(uint, unsigned, 8, 16)
LAUNCHWISE_VECTORS(long, long, 16, 16)
LAUNCHWISE_VECTORS(ulong, unsigned long, 16, 16)
LAUNCHWISE_VECTORS(longlong, long long, 16, 16)
LAUNCHWISE_VECTORS(ulonglong, unsigned long long, 16, 16)
LAUNCHWISE_VECTORS(float, float, 8, 16)
LAUNCHWISE_VECTORS(double, double, 16, 16)
#undef LAUNCHWISE_VECTORS

struct dim3 {
    unsigned x, y, z;
    constexpr dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_) {}
    constexpr dim3(uint3 from) : x(from.x), y(from.y), z(from.z) {}
    constexpr operator uint3() const { return {x, y, z}; }
};
