// A block of bx x by x bz threads reads its points of u with their halo into shared memory, waits, and
// then each thread computes one point from there.
#include "common/dynamic_shared.cuh"

extern "C" __global__ void __launch_bounds__(1024)
    KERNEL(shared_tile)(REAL *__restrict__ u_new, const REAL *__restrict__ u,
                        const REAL *__restrict__ u_old, const REAL *__restrict__ velocity, INDEX n,
                        REAL scale) {
    DYNAMIC_SHARED(REAL, tile);
    constexpr REAL weight[RADIUS + 1] = WEIGHTS;
    const int bx = blockDim.x, by = blockDim.y, bz = blockDim.z;
    const int width = bx + 2 * RADIUS, height = by + 2 * RADIUS, depth = bz + 2 * RADIUS;
    const INDEX row = row_pitch<REAL, ROW_PADDING>(n);
    const INDEX plane = row * n;
    const INDEX x0 = static_cast<INDEX>(blockIdx.x) * bx, y0 = static_cast<INDEX>(blockIdx.y) * by;
    const INDEX z0 = static_cast<INDEX>(blockIdx.z) * bz;
    for (int z = threadIdx.z; z < depth && z0 + z < n; z += bz)
        for (int y = threadIdx.y; y < height && y0 + y < n; y += by)
            for (int x = threadIdx.x; x < width && x0 + x < n; x += bx)
                tile[(z * height + y) * width + x] = u[(z0 + z) * plane + (y0 + y) * row + x0 + x];
    __syncthreads();
    const INDEX x = x0 + threadIdx.x + RADIUS, y = y0 + threadIdx.y + RADIUS;
    const INDEX z = z0 + threadIdx.z + RADIUS, last = n - RADIUS;
    if (x >= last || y >= last || z >= last) return;
    const REAL *mine = tile + ((threadIdx.z + RADIUS) * height + threadIdx.y + RADIUS) * width +
                       threadIdx.x + RADIUS;
    const int step_y = width, step_z = width * height;
    REAL laplacian = weight[0] * *mine;
#pragma unroll
    for (int k = 1; k <= RADIUS; ++k)
        laplacian += weight[k] * ((mine[-k] + mine[k]) + (mine[-k * step_y] + mine[k * step_y]) +
                                  (mine[-k * step_z] + mine[k * step_z]));
    const INDEX at = z * plane + y * row + x;
    const REAL speed = velocity[at];
    u_new[at] = REAL(2) * *mine - u_old[at] + speed * speed * scale * laplacian;
}
