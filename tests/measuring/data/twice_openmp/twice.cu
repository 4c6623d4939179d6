__global__ void twice(REAL *y, const REAL *x, int n)
{
    int i = blockIdx.x * 128 + threadIdx.x;
    if (i < n) y[i] += 2 * x[i];
}
