#include "stencil.cuh"

__global__ void linear(REAL *output, const REAL *grid, const REAL *source, const REAL *weight,
                       int n, int pitch)
{
    const long long inner = n - 2 * RADIUS;
    const long long own = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (own >= inner * inner * inner) return;
    const int x = own % inner, y = own / inner % inner, z = own / inner / inner;
    output[own] = updated<RADIUS>(grid, source, weight, x, y, z, n, pitch);
}
