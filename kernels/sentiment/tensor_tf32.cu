// Tensor cores with both factors rounded to tf32: ten bits behind the point instead of 23.
struct Kind {
    static constexpr int ELEMENTS = 1;

    __device__ __forceinline__ static unsigned word(float value, float) { return to_tf32(value); }

    __device__ __forceinline__ static void add(
        float (&sum)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
        add_tf32(sum, a, b);
    }
};

#include "tensor_case.cuh"
