#include "stencil.cuh"

__global__ void block3d(REAL *output, const REAL *grid, const REAL *source, const REAL *weight,
                        int n, int pitch)
{
    const int inner = n - 2 * RADIUS;
    const int x = blockIdx.x * blockDim.x + threadIdx.x;
    const int y = blockIdx.y * blockDim.y + threadIdx.y;
    const int z = blockIdx.z * blockDim.z + threadIdx.z;
    if (x >= inner || y >= inner || z >= inner) return;
    output[((long long)z * inner + y) * inner + x] =
        updated<RADIUS>(grid, source, weight, x, y, z, n, pitch);
}
