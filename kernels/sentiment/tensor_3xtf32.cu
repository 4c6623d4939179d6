// Tensor cores with each factor as the sum of two tf32: three products instead of one give nearly
// what float32 does (the product of the two small parts is left out).
struct Kind {
    static constexpr int ELEMENTS = 1;

    __device__ __forceinline__ static unsigned word(float value, float) { return bits_of(value); }

    __device__ __forceinline__ static void add(
        float (&sum)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
        unsigned large_a[4], small_a[4], large_b[2], small_b[2];
        for (int i = 0; i < 4; ++i) split(a[i], large_a[i], small_a[i]);
        for (int i = 0; i < 2; ++i) split(b[i], large_b[i], small_b[i]);
        add_tf32(sum, small_a, large_b);
        add_tf32(sum, large_a, small_b);
        add_tf32(sum, large_a, large_b);
    }

    __device__ __forceinline__ static void split(unsigned bits, unsigned &large, unsigned &small) {
        const float value = value_of(bits);
        large = to_tf32(value);
        small = to_tf32(value - value_of(large));
    }
};

#include "tensor_case.cuh"
