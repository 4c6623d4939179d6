// The paper's listing: C with OpenMP offloading, compiled by Clang. One time step of the acoustic wave
// equation; arrays lie on the device, i is the slowest axis and k the contiguous one.
//   REAL                    float or double
//   RADIUS                  half the spatial order
//   TILE_I, TILE_J, TILE_K  sizes of a tile along i, j and k; 0: loops without tiles
// collapse(3) distributes the loops over tiles: one thread walks the points of a tile.
#include <stddef.h>

// weight: c0, summed over the three axes, then c1 to c_RADIUS.
void openmp(REAL *restrict u_new, const REAL *restrict u, const REAL *restrict u_old,
            const REAL *restrict velocity, const REAL *restrict weight, int n, REAL scale) {
    const size_t row = n, plane = row * n;
#pragma omp target teams distribute parallel for collapse(3) \
    is_device_ptr(u_new, u, u_old, velocity, weight)
#if TILE_I > 0
#pragma omp tile sizes(TILE_I, TILE_J, TILE_K)
#endif
    for (int i = RADIUS; i < n - RADIUS; ++i)
        for (int j = RADIUS; j < n - RADIUS; ++j)
            for (int k = RADIUS; k < n - RADIUS; ++k) {
                const size_t at = i * plane + j * row + k;
                REAL laplacian = weight[0] * u[at];
                for (int r = 1; r <= RADIUS; ++r)
                    laplacian += weight[r] * ((u[at - r] + u[at + r]) +
                                              (u[at - r * row] + u[at + r * row]) +
                                              (u[at - r * plane] + u[at + r * plane]));
                u_new[at] = 2 * u[at] - u_old[at] +
                            velocity[at] * velocity[at] * scale * laplacian;
            }
}
