// Tensor cores with both factors rounded to tf32: ten bits behind the point instead of 23.
struct Kind {
    static constexpr int ELEMENTS = 1, PIECES = 1, KEPT = 4;
    static constexpr float SCALE = 1;

    __device__ __forceinline__ static void keep(const float (&w)[4], unsigned (&v)[KEPT]) {
        for (int n = 0; n < 4; ++n) v[n] = to_tf32(w[n]);
    }
    __device__ __forceinline__ static unsigned right(const unsigned (&v)[KEPT], int, int n) {
        return v[n];
    }
    __device__ __forceinline__ static unsigned left(const float (&x)[4], int, int n) {
        return to_tf32(x[n]);
    }
    __device__ __forceinline__ static void multiply(
        float (&sum)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
        add_tf32(sum, a, b);
    }
};

#include "tensor_case.cuh"
