// As tensor_bf16 with float16: ten bits behind the point, as tf32 has, and a small range: weights,
// embeddings and sums above 65 504 would overflow.
struct Kind {
    static constexpr int ELEMENTS = 2, PIECES = 1, KEPT = 2;
    static constexpr float SCALE = 1;

    __device__ __forceinline__ static void keep(const float (&w)[4], unsigned (&v)[KEPT]) {
        for (int n = 0; n < 2; ++n) v[n] = to_half_pair(w[2 * n], w[2 * n + 1]);
    }
    __device__ __forceinline__ static unsigned right(const unsigned (&v)[KEPT], int, int n) {
        return v[n];
    }
    __device__ __forceinline__ static unsigned left(const float (&x)[4], int, int n) {
        return to_half_pair(x[2 * n], x[2 * n + 1]);
    }
    __device__ __forceinline__ static void multiply(
        float (&sum)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
        add_half(sum, a, b);
    }
};

#include "tensor_case.cuh"
