// Tensor cores with each factor as the sum of two tf32: three products instead of one give nearly
// what float32 does. Weights are kept whole and split by whoever multiplies.
struct Kind {
    static constexpr int ELEMENTS = 1, PIECES = 2, KEPT = 4;
    static constexpr float SCALE = 1;

    __device__ __forceinline__ static void keep(const float (&w)[4], unsigned (&v)[KEPT]) {
        for (int n = 0; n < 4; ++n) v[n] = bits_of(w[n]);
    }
    // Tensor cores ignore what is behind ten bits.
    __device__ __forceinline__ static unsigned right(const unsigned (&v)[KEPT], int piece, int n) {
        return piece ? rest(v[n], v[n]) : v[n];
    }
    // Rounded, not cut off: the compiler would know that this changes nothing for the cores, and put
    // operands together anew for every product.
    __device__ __forceinline__ static unsigned left(const float (&x)[4], int piece, int n) {
        const unsigned large = to_tf32(x[n]);
        return piece ? rest(bits_of(x[n]), large) : large;
    }
    __device__ __forceinline__ static void multiply(
        float (&sum)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
        add_tf32(sum, a, b);
    }

    __device__ __forceinline__ static unsigned rest(unsigned whole, unsigned large) {
        return bits_of(value_of(whole) - value_of(large & ~0x1FFFu));
    }
};

#include "tensor_case.cuh"
