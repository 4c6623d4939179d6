__global__ void quantize_kernel(signed char* __restrict__ q, const float* __restrict__ x,
                                const float inv_scale, const int numel)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < numel) {
        int v = __float2int_rn(x[i] * inv_scale);
        v = max(-128, min(127, v)); // saturate
        q[i] = (signed char)v;
    }
}
