// As tensor_3xtf32 with float16, which has as many bits and goes twice as fast. Its range is small: weights
// are scaled, and those above 255 would overflow, embeddings and sums above 65 504.
struct Kind {
    static constexpr int ELEMENTS = 2, PIECES = 2, KEPT = 4;
    static constexpr float SCALE = 256;

    __device__ __forceinline__ static void keep(const float (&w)[4], unsigned (&v)[KEPT]) {
        for (int n = 0; n < 4; ++n) v[n] = left(w, n / 2, n % 2);
    }
    __device__ __forceinline__ static unsigned right(const unsigned (&v)[KEPT], int piece, int n) {
        return v[piece * 2 + n];
    }
    __device__ __forceinline__ static unsigned left(const float (&x)[4], int piece, int n) {
        const float low = x[2 * n], high = x[2 * n + 1];
        const unsigned large = to_half_pair(low, high);
        if (piece == 0) return large;
        return to_half_pair(low - from_half(static_cast<unsigned short>(large & 0xFFFFu)),
                            high - from_half(static_cast<unsigned short>(large >> 16)));
    }
    __device__ __forceinline__ static void multiply(
        float (&sum)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
        add_half(sum, a, b);
    }
};

#include "tensor_case.cuh"
