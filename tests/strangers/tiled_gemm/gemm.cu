#include <cuda_runtime.h>

namespace detail {

constexpr int kRowsPerThread = 4;

template <typename T>
__device__ __forceinline__ T loadOr0(const T* p, int r, int c, int rows, int cols) {
  return (r < rows && c < cols) ? p[r * cols + c] : T(0);
}

}  // namespace detail

/// C = alpha A B + beta C, all of them row major.
template <int TileM, int TileN, int TileK, typename T>
__global__ void gemm(const T* __restrict__ A, const T* __restrict__ B, T* __restrict__ C,
                     T alpha, T beta, int M, int N, int K) {
  using namespace detail;
  __shared__ T As[TileM][TileK + 1];
  __shared__ T Bs[TileK][TileN];

  const int row0 = blockIdx.y * TileM;
  const int col0 = blockIdx.x * TileN;
  const int tid = threadIdx.y * TileN + threadIdx.x;
  constexpr int kThreads = TileN * TileM / kRowsPerThread;

  T acc[kRowsPerThread] = {};
  for (int k0 = 0; k0 < K; k0 += TileK) {
    for (int e = tid; e < TileM * TileK; e += kThreads)
      As[e / TileK][e % TileK] = loadOr0(A, row0 + e / TileK, k0 + e % TileK, M, K);
    for (int e = tid; e < TileK * TileN; e += kThreads)
      Bs[e / TileN][e % TileN] = loadOr0(B, k0 + e / TileN, col0 + e % TileN, K, N);
    __syncthreads();  // tiles are there

#pragma unroll
    for (int k = 0; k < TileK; ++k)
#pragma unroll
      for (int i = 0; i < kRowsPerThread; ++i)
        acc[i] += As[threadIdx.y * kRowsPerThread + i][k] * Bs[k][threadIdx.x];
    __syncthreads();  // tiles are free
  }

  for (int i = 0; i < kRowsPerThread; ++i) {
    const int r = row0 + threadIdx.y * kRowsPerThread + i;
    const int c = col0 + threadIdx.x;
    if (r < M && c < N) C[r * N + c] = alpha * acc[i] + beta * C[r * N + c];
  }
}
