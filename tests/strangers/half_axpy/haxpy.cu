#include <cuda_fp16.h>

__global__ void haxpy(int n2, __half alpha, const __half2 *x, __half2 *y)
{
    const __half2 a = __half2half2(alpha);
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    const int stride = gridDim.x * blockDim.x;
#pragma unroll PER_THREAD
    for (int k = 0; k < PER_THREAD; ++k, i += stride)
        if (i < n2)
            y[i] = __hfma2(a, x[i], y[i]);
}
