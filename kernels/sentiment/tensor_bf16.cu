// Tensor cores with both factors rounded to bf16, two of them a word: seven bits behind the point.
struct Kind {
    static constexpr int ELEMENTS = 2;

    __device__ __forceinline__ static unsigned word(float low, float high) {
        return to_bf16_pair(low, high);
    }

    __device__ __forceinline__ static void add(
        float (&sum)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
        add_bf16(sum, a, b);
    }
};

#include "tensor_case.cuh"
