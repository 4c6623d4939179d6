// Products of 16 x 8 elements by a warp's tensor cores (mma.sync, sm_80 and later). Operands are words:
// one tf32 each, or two bf16 or float16 that are neighbours along the products' sum; eight words a product.
// Included once, as a header.
#pragma once

// What lane `lane` holds of the operands: words (row g, k t), (row g + 8, k t), (row g, k t + 4),
// (row g + 8, k t + 4) of the left one, (k t, column g), (k t + 4, column g) of the right one, where
// g = lane / 4 and t = lane % 4; of the result (g, 2 t), (g, 2 t + 1), (g + 8, 2 t), (g + 8, 2 t + 1).
#ifdef __CUDACC__
// Older cards have no such cores: what they compute is wrong, and their rows say so.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
#define TENSOR_CORES 0
#else
#define TENSOR_CORES 1
#endif

__device__ __forceinline__ unsigned bits_of(float value) { return __float_as_uint(value); }
__device__ __forceinline__ float value_of(unsigned bits) { return __uint_as_float(bits); }

// Rounded to the ten bits behind the point that tensor cores look at; what lies behind them, they ignore.
__device__ __forceinline__ unsigned to_tf32(float value) { return bits_of(value) + 0x1000u; }

__device__ __forceinline__ unsigned to_bf16_pair(float low, float high) {
    unsigned bits = 0;
#if TENSOR_CORES
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(bits) : "f"(high), "f"(low));
#endif
    return bits;
}

__device__ __forceinline__ unsigned to_half_pair(float low, float high) {
    const __half2 pair = __floats2half2_rn(low, high);
    return __half_as_ushort(__high2half(pair)) * 0x10000u + __half_as_ushort(__low2half(pair));
}

// sum += a b, by the instruction for elements of a shape and type.
#if TENSOR_CORES
#define PRODUCT(elements, a, b, sum)                                                                \
    asm("mma.sync.aligned." elements ".f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "          \
        "{%0, %1, %2, %3};"                                                                         \
        : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])                                    \
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]))
#else
#define PRODUCT(elements, a, b, sum) sum[0] = value_of(0x7FC00000u)
#endif

__device__ __forceinline__ void add_tf32(
    float (&sum)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
    PRODUCT("m16n8k8.row.col.f32.tf32.tf32", a, b, sum);
}

__device__ __forceinline__ void add_bf16(
    float (&sum)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
    PRODUCT("m16n8k16.row.col.f32.bf16.bf16", a, b, sum);
}

__device__ __forceinline__ void add_half(
    float (&sum)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
    PRODUCT("m16n8k16.row.col.f32.f16.f16", a, b, sum);
}
#undef PRODUCT
#else
inline unsigned bits_of(float value) {
    unsigned bits;
    std::memcpy(&bits, &value, 4);
    return bits;
}

inline float value_of(unsigned bits) {
    float value;
    std::memcpy(&value, &bits, 4);
    return value;
}

inline unsigned to_tf32(float value) { return bits_of(value) + 0x1000u; }

inline unsigned to_bf16(float value) {
    const unsigned bits = bits_of(value);
    return (bits + 0x7FFFu + (bits >> 16 & 1)) >> 16;
}

inline unsigned to_bf16_pair(float low, float high) { return to_bf16(high) << 16 | to_bf16(low); }

inline unsigned to_half(float value) {
    const float size = std::fabs(value);
    const int exponent = size > 0 ? std::max(std::ilogb(size), -14) : -14;
    const unsigned fraction = static_cast<unsigned>(std::nearbyint(std::ldexp(size, 10 - exponent)));
    return (std::signbit(value) ? 0x8000u : 0u) + (static_cast<unsigned>(exponent + 14) << 10) + fraction;
}

inline unsigned to_half_pair(float low, float high) { return to_half(high) << 16 | to_half(low); }

// All lanes hand in what they have; then each takes what it needs from the others.
template <typename Product>
inline void add_by_lanes(
    float (&sum)[4], const unsigned (&a)[4], const unsigned (&b)[2], Product product) {
    static unsigned left[1024][4], right[1024][2];
    std::memcpy(left[threadIdx.x], a, sizeof(a));
    std::memcpy(right[threadIdx.x], b, sizeof(b));
    __syncthreads();
    const unsigned warp = threadIdx.x / 32 * 32, lane = threadIdx.x % 32;
    for (unsigned n = 0; n < 4; ++n) {
        const unsigned row = lane / 4, column = lane % 4 * 2 + n % 2;
        for (unsigned k = 0; k < 8; ++k)
            sum[n] += product(left[warp + row * 4 + k % 4][n / 2 + k / 4 * 2],
                              right[warp + column * 4 + k % 4][k / 4]);
    }
    __syncthreads();
}

inline void add_tf32(float (&sum)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
    add_by_lanes(sum, a, b, [](unsigned x, unsigned y) {
        return value_of(x & ~0x1FFFu) * value_of(y & ~0x1FFFu);
    });
}

inline void add_bf16(float (&sum)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
    add_by_lanes(sum, a, b, [](unsigned x, unsigned y) {
        return value_of(x << 16) * value_of(y << 16) +
               value_of(x & 0xFFFF0000u) * value_of(y & 0xFFFF0000u);
    });
}

inline void add_half(float (&sum)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
    const auto half = [](unsigned bits) { return from_half(static_cast<unsigned short>(bits)); };
    add_by_lanes(sum, a, b, [&](unsigned x, unsigned y) {
        return half(x & 0xFFFFu) * half(y & 0xFFFFu) + half(x >> 16) * half(y >> 16);
    });
}
#endif
