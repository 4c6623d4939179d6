extern __shared__ double sdata[];

__global__ void reduce(const double *g_idata, double *g_odata, unsigned int n)
{
    unsigned int tid = threadIdx.x;
    double mySum = 0;
    for (unsigned int i = blockIdx.x*blockDim.x + tid; i < n; i += gridDim.x*blockDim.x)
        mySum += g_idata[i];
    sdata[tid] = mySum;

    // do reduction in shared mem
    for (unsigned int s = blockDim.x/2; s > 0; s >>= 1)
    {
        __syncthreads();
        if (tid < s)
            sdata[tid] += sdata[tid + s];
    }

    // write result for this block to global mem
    if (tid == 0) g_odata[blockIdx.x] = sdata[0];
}
