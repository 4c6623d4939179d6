__global__ void compact(const float *a, float *kept, unsigned *counter, unsigned len)
{
    unsigned i = blockIdx.x*blockDim.x + threadIdx.x;
    if (i < len && a[i] > 0.f)
        kept[atomicAdd(counter, 1)] = a[i];
}
