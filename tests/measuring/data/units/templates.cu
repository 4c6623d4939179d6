#include <cuda_bf16.h>
enum class Mode { sum, product };
struct Plus { __device__ float operator()(float a, float b) const { return a + b; } };
using real = float;
constexpr int WIDE = 96;

namespace mine {
template <int BM, int BN, typename T, bool SAFE = true>
__global__ void gemm(T *out, const T *__restrict__ in, int n)
{
    __shared__ T tile[BM * BN];
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (SAFE && i >= n) return;
#pragma unroll BN
    for (int k = 0; k < BM * BN; k += 8) tile[k] = in[i];
    out[i] = tile[i % BN];
}
template __global__ void gemm<5, 5, float, false>(float *, const float *, int);
namespace {
template <typename T> __global__ void hidden(T *out, const T *in, int n)
{
    __shared__ T tile[24];
    tile[threadIdx.x] = in[n - 1];
    out[threadIdx.x] = tile[threadIdx.x ^ 1];
}
__global__ void alone(float *out, const float *in, int n) { out[threadIdx.x] = in[n - 1]; }
}
}

template <Mode M, class Op, char C> __global__ void reduce(float *out, const float *in, int n)
{
    out[threadIdx.x] = M == Mode::sum ? Op()(in[n - 1], C) : 0;
}

template <int N> static __global__ void scale(float *out, const float *in, int n)
{
    __shared__ float tile[N];
    tile[threadIdx.x] = in[n - 1];
    out[threadIdx.x] = tile[threadIdx.x ^ 1];
}
template __global__ void scale<32>(float *, const float *, int);
__global__ void plain(float *out, const float *in, int n) { out[threadIdx.x] = in[n - 1]; }
#ifdef __EDITOR__  // Not the compiler's any more
#define __global__
#endif
