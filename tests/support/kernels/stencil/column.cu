#include "stencil.cuh"

__global__ void column(REAL *output, const REAL *grid, const REAL *source, const REAL *weight,
                       int n, int pitch)
{
    const long long inner = n - 2 * RADIUS;
    const long long own = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    const int x = own % inner, y = own / inner % inner;
    const long long first = own / inner / inner * tz;
    for (long long z = first; z < first + tz && z < inner; ++z)
        output[(z * inner + y) * inner + x] =
            updated<RADIUS>(grid, source, weight, x, y, z, n, pitch);
}
