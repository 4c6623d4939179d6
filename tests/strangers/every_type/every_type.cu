#if HALVES
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#endif
#if COMPLEX
#include <cuComplex.h>
#endif

__constant__ TYPE table[8];

static __device__ TYPE sum(TYPE a, TYPE b) {
#if TRUTH
    return a != b;
#elif HALVES
    return __hadd(a, b);
#elif COMPLEX == 1
    return cuCaddf(a, b);
#elif COMPLEX == 2
    return cuCadd(a, b);
#else
    return a + b;
#endif
}

__global__ void every_type(TYPE *out, TYPE *both, TYPE *own, const TYPE *given, TYPE scalar, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    own[i] = sum(given[i], scalar);
    both[i] = sum(both[i], table[i % 8]);
    out[i] = own[i];
}
