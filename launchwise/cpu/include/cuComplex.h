// Complex numbers: CUDA's types and functions.
#pragma once
#include "cuda_on_cpu.h"

using cuFloatComplex = float2;
using cuDoubleComplex = double2;
using cuComplex = cuFloatComplex;

#define LAUNCHWISE_COMPLEX(type, real, suffix, maker)                                                   \
    static inline type maker(real re, real im) { return {re, im}; }                                     \
    static inline real cuCreal##suffix(type a) { return a.x; }                                          \
    static inline real cuCimag##suffix(type a) { return a.y; }                                          \
    static inline type cuConj##suffix(type a) { return {a.x, -a.y}; }                                   \
    static inline type cuCadd##suffix(type a, type b) { return {a.x + b.x, a.y + b.y}; }                \
    static inline type cuCsub##suffix(type a, type b) { return {a.x - b.x, a.y - b.y}; }                \
    static inline type cuCmul##suffix(type a, type b) {                                                 \
        return {a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x};                                          \
    }                                                                                                   \
    static inline type cuCfma##suffix(type a, type b, type c) { return cuCadd##suffix(cuCmul##suffix(a, b), c); } \
    static inline real cuCabs##suffix(type a) { return std::hypot(a.x, a.y); }                          \
    static inline type cuCdiv##suffix(type a, type b) {                                                 \
        /* Divided by the larger part first, so that squares do not overflow. */                        \
        const real size = std::fabs(b.x) + std::fabs(b.y);                                              \
        const type u = {a.x / size, a.y / size}, v = {b.x / size, b.y / size};                          \
        const real square = v.x * v.x + v.y * v.y;                                                      \
        return {(u.x * v.x + u.y * v.y) / square, (u.y * v.x - u.x * v.y) / square};                    \
    }
LAUNCHWISE_COMPLEX(cuFloatComplex, float, f, make_cuFloatComplex)
LAUNCHWISE_COMPLEX(cuDoubleComplex, double, , make_cuDoubleComplex)
#undef LAUNCHWISE_COMPLEX
static inline cuComplex make_cuComplex(float re, float im) { return {re, im}; }
static inline cuFloatComplex cuComplexDoubleToFloat(cuDoubleComplex a) {
    return {static_cast<float>(a.x), static_cast<float>(a.y)};
}
static inline cuDoubleComplex cuComplexFloatToDouble(cuFloatComplex a) { return {a.x, a.y}; }
