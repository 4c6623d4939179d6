#include <cuda_bf16.h>

extern "C" __global__ void f32_to_bf16(__nv_bfloat16* dst, const float* src,
                                       unsigned long long count) {
  unsigned long long tid = blockIdx.x * (unsigned long long)blockDim.x + threadIdx.x;
  if (tid < count) {
    dst[tid] = __float2bfloat16(src[tid]);
  }
}
