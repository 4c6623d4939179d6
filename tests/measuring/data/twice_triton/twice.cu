__global__ void twice(REAL *y, const REAL *x, int n, float factor)
{
    int i = blockIdx.x * 128 + threadIdx.x;
    if (i < n) y[i] += (REAL)(factor * (float)x[i]);
}
