// Functions that CUDA has for __half and for __nv_bfloat16 by the same names. Read once for each:
// LAUNCHWISE_T is the type, LAUNCHWISE_T2 its pair.
// name(a, b) of numbers, name2(a, b) of pairs
#define LAUNCHWISE_BOTH(name, name2, expression)                                             \
    static inline LAUNCHWISE_T name(const LAUNCHWISE_T a, const LAUNCHWISE_T b) { return expression; }                        \
    static inline LAUNCHWISE_T2 name2(const LAUNCHWISE_T2 a, const LAUNCHWISE_T2 b) { return {name(a.x, b.x), name(a.y, b.y)}; }
LAUNCHWISE_BOTH(__hadd, __hadd2, a + b)
LAUNCHWISE_BOTH(__hsub, __hsub2, a - b)
LAUNCHWISE_BOTH(__hmul, __hmul2, a * b)
LAUNCHWISE_BOTH(__hdiv, __h2div, a / b)
LAUNCHWISE_BOTH(__hadd_rn, __hadd2_rn, a + b)
LAUNCHWISE_BOTH(__hsub_rn, __hsub2_rn, a - b)
LAUNCHWISE_BOTH(__hmul_rn, __hmul2_rn, a * b)
LAUNCHWISE_BOTH(__hadd_sat, __hadd2_sat, launchwise_cpu::saturated(a + b))
LAUNCHWISE_BOTH(__hsub_sat, __hsub2_sat, launchwise_cpu::saturated(a - b))
LAUNCHWISE_BOTH(__hmul_sat, __hmul2_sat, launchwise_cpu::saturated(a * b))
LAUNCHWISE_BOTH(__hmax, __hmax2, b != b ? a : a < b || a != a ? b : a)
LAUNCHWISE_BOTH(__hmin, __hmin2, b != b ? a : b < a || a != a ? b : a)
LAUNCHWISE_BOTH(__hmax_nan, __hmax2_nan, a != a ? a : b != b || a < b ? b : a)
LAUNCHWISE_BOTH(__hmin_nan, __hmin2_nan, a != a ? a : b != b || b < a ? b : a)
#undef LAUNCHWISE_BOTH

#define LAUNCHWISE_BOTH(name, name2, expression)                                             \
    static inline LAUNCHWISE_T name(const LAUNCHWISE_T a) { return expression; }                                   \
    static inline LAUNCHWISE_T2 name2(const LAUNCHWISE_T2 a) { return {name(a.x), name(a.y)}; }
LAUNCHWISE_BOTH(__hneg, __hneg2, -a)
LAUNCHWISE_BOTH(__habs, __habs2, LAUNCHWISE_T::of_bits(a.bits & 0x7FFF))
LAUNCHWISE_BOTH(hsqrt, h2sqrt, LAUNCHWISE_T::rounded(std::sqrt(a.wide())))
LAUNCHWISE_BOTH(hrsqrt, h2rsqrt, LAUNCHWISE_T::rounded(1 / std::sqrt(a.wide())))
LAUNCHWISE_BOTH(hrcp, h2rcp, LAUNCHWISE_T::rounded(1 / a.wide()))
LAUNCHWISE_BOTH(hexp, h2exp, LAUNCHWISE_T::rounded(std::exp(a.wide())))
LAUNCHWISE_BOTH(hexp2, h2exp2, LAUNCHWISE_T::rounded(std::exp2(a.wide())))
LAUNCHWISE_BOTH(hexp10, h2exp10, LAUNCHWISE_T::rounded(std::pow(10.0, a.wide())))
LAUNCHWISE_BOTH(hlog, h2log, LAUNCHWISE_T::rounded(std::log(a.wide())))
LAUNCHWISE_BOTH(hlog2, h2log2, LAUNCHWISE_T::rounded(std::log2(a.wide())))
LAUNCHWISE_BOTH(hlog10, h2log10, LAUNCHWISE_T::rounded(std::log10(a.wide())))
LAUNCHWISE_BOTH(hsin, h2sin, LAUNCHWISE_T::rounded(std::sin(a.wide())))
LAUNCHWISE_BOTH(hcos, h2cos, LAUNCHWISE_T::rounded(std::cos(a.wide())))
LAUNCHWISE_BOTH(htanh, h2tanh, LAUNCHWISE_T::rounded(std::tanh(a.wide())))
LAUNCHWISE_BOTH(htanh_approx, h2tanh_approx, LAUNCHWISE_T::rounded(std::tanh(a.wide())))
LAUNCHWISE_BOTH(hceil, h2ceil, LAUNCHWISE_T::rounded(std::ceil(a.wide())))
LAUNCHWISE_BOTH(hfloor, h2floor, LAUNCHWISE_T::rounded(std::floor(a.wide())))
LAUNCHWISE_BOTH(htrunc, h2trunc, LAUNCHWISE_T::rounded(std::trunc(a.wide())))
LAUNCHWISE_BOTH(hrint, h2rint, LAUNCHWISE_T::rounded(std::nearbyint(a.wide())))
#undef LAUNCHWISE_BOTH

static inline LAUNCHWISE_T __hfma(const LAUNCHWISE_T a, const LAUNCHWISE_T b, const LAUNCHWISE_T c) {
    return LAUNCHWISE_T::rounded(launchwise_cpu::fused(a.wide(), b.wide(), c.wide()));
}
static inline LAUNCHWISE_T __hfma_sat(const LAUNCHWISE_T a, const LAUNCHWISE_T b, const LAUNCHWISE_T c) { return launchwise_cpu::saturated(__hfma(a, b, c)); }
static inline LAUNCHWISE_T __hfma_relu(const LAUNCHWISE_T a, const LAUNCHWISE_T b, const LAUNCHWISE_T c) { return launchwise_cpu::positive(__hfma(a, b, c)); }
#define LAUNCHWISE_PAIRS(name2, name) \
    static inline LAUNCHWISE_T2 name2(const LAUNCHWISE_T2 a, const LAUNCHWISE_T2 b, const LAUNCHWISE_T2 c) { return {name(a.x, b.x, c.x), name(a.y, b.y, c.y)}; }
LAUNCHWISE_PAIRS(__hfma2, __hfma)
LAUNCHWISE_PAIRS(__hfma2_sat, __hfma_sat)
LAUNCHWISE_PAIRS(__hfma2_relu, __hfma_relu)
#undef LAUNCHWISE_PAIRS
// a * b + c of complex numbers
static inline LAUNCHWISE_T2 __hcmadd(const LAUNCHWISE_T2 a, const LAUNCHWISE_T2 b, const LAUNCHWISE_T2 c) {
    return {__hfma(-a.y, b.y, __hfma(a.x, b.x, c.x)), __hfma(a.y, b.x, __hfma(a.x, b.y, c.y))};
}

// Ordered comparisons are false for NaN, those with u true.
#define LAUNCHWISE_COMPARISON(name, sign)                                                            \
    static inline bool __h##name(const LAUNCHWISE_T a, const LAUNCHWISE_T b) { return a.wide() sign b.wide(); }            \
    static inline bool __h##name##u(const LAUNCHWISE_T a, const LAUNCHWISE_T b) { return a != a || b != b || a.wide() sign b.wide(); } \
    static inline LAUNCHWISE_T2 __h##name##2(const LAUNCHWISE_T2 a, const LAUNCHWISE_T2 b) { return {LAUNCHWISE_T(__h##name(a.x, b.x) ? 1 : 0), LAUNCHWISE_T(__h##name(a.y, b.y) ? 1 : 0)}; } \
    static inline LAUNCHWISE_T2 __h##name##u2(const LAUNCHWISE_T2 a, const LAUNCHWISE_T2 b) { return {LAUNCHWISE_T(__h##name##u(a.x, b.x) ? 1 : 0), LAUNCHWISE_T(__h##name##u(a.y, b.y) ? 1 : 0)}; } \
    static inline bool __hb##name##2(const LAUNCHWISE_T2 a, const LAUNCHWISE_T2 b) { return __h##name(a.x, b.x) && __h##name(a.y, b.y); } \
    static inline bool __hb##name##u2(const LAUNCHWISE_T2 a, const LAUNCHWISE_T2 b) { return __h##name##u(a.x, b.x) && __h##name##u(a.y, b.y); } \
    static inline unsigned __h##name##2_mask(const LAUNCHWISE_T2 a, const LAUNCHWISE_T2 b) { return (__h##name(a.x, b.x) ? 0xFFFFu : 0) | (__h##name(a.y, b.y) ? 0xFFFF0000u : 0); } \
    static inline unsigned __h##name##u2_mask(const LAUNCHWISE_T2 a, const LAUNCHWISE_T2 b) { return (__h##name##u(a.x, b.x) ? 0xFFFFu : 0) | (__h##name##u(a.y, b.y) ? 0xFFFF0000u : 0); }
LAUNCHWISE_COMPARISON(eq, ==)
LAUNCHWISE_COMPARISON(lt, <)
LAUNCHWISE_COMPARISON(le, <=)
LAUNCHWISE_COMPARISON(gt, >)
LAUNCHWISE_COMPARISON(ge, >=)
#undef LAUNCHWISE_COMPARISON
static inline bool __hne(const LAUNCHWISE_T a, const LAUNCHWISE_T b) { return a == a && b == b && a != b; }
static inline bool __hneu(const LAUNCHWISE_T a, const LAUNCHWISE_T b) { return a != b; }
static inline LAUNCHWISE_T2 __hne2(const LAUNCHWISE_T2 a, const LAUNCHWISE_T2 b) { return {LAUNCHWISE_T(__hne(a.x, b.x) ? 1 : 0), LAUNCHWISE_T(__hne(a.y, b.y) ? 1 : 0)}; }
static inline LAUNCHWISE_T2 __hneu2(const LAUNCHWISE_T2 a, const LAUNCHWISE_T2 b) { return {LAUNCHWISE_T(a.x != b.x ? 1 : 0), LAUNCHWISE_T(a.y != b.y ? 1 : 0)}; }
static inline unsigned __hne2_mask(const LAUNCHWISE_T2 a, const LAUNCHWISE_T2 b) { return (__hne(a.x, b.x) ? 0xFFFFu : 0) | (__hne(a.y, b.y) ? 0xFFFF0000u : 0); }
static inline unsigned __hneu2_mask(const LAUNCHWISE_T2 a, const LAUNCHWISE_T2 b) { return (a.x != b.x ? 0xFFFFu : 0) | (a.y != b.y ? 0xFFFF0000u : 0); }
static inline bool __hbne2(const LAUNCHWISE_T2 a, const LAUNCHWISE_T2 b) { return __hne(a.x, b.x) && __hne(a.y, b.y); }
static inline bool __hbneu2(const LAUNCHWISE_T2 a, const LAUNCHWISE_T2 b) { return a.x != b.x && a.y != b.y; }
static inline bool __hisnan(const LAUNCHWISE_T a) { return a != a; }
static inline LAUNCHWISE_T2 __hisnan2(const LAUNCHWISE_T2 a) { return {LAUNCHWISE_T(a.x != a.x ? 1 : 0), LAUNCHWISE_T(a.y != a.y ? 1 : 0)}; }
static inline int __hisinf(const LAUNCHWISE_T a) {
    return std::isinf(a.wide()) ? a.wide() > 0 ? 1 : -1 : 0;
}

// Halves of a pair
static inline float __low2float(const LAUNCHWISE_T2 a) { return a.x; }
static inline float __high2float(const LAUNCHWISE_T2 a) { return a.y; }
static inline LAUNCHWISE_T2 __lowhigh2highlow(const LAUNCHWISE_T2 a) { return {a.y, a.x}; }
