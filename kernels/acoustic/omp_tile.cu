// One thread walks a tile of tx x ty x tz points; tiles are linearised with x fastest, 128 threads
// per block. That is how OpenMP deals out tiles under `collapse(3)`, but the kernel is CUDA and not
// what Clang makes of such loops: openmp.c is.
extern "C" __global__ void __launch_bounds__(128)
    KERNEL(omp_tile)(REAL *__restrict__ u_new, const REAL *__restrict__ u,
                     const REAL *__restrict__ u_old, const REAL *__restrict__ velocity, INDEX n,
                     REAL scale, int tx, int ty, int tz) {
    constexpr REAL weight[RADIUS + 1] = WEIGHTS;
    const INDEX interior = n - 2 * RADIUS;
    const INDEX tiles_x = (interior + tx - 1) / tx;
    const INDEX tiles_y = (interior + ty - 1) / ty;
    const INDEX tiles_z = (interior + tz - 1) / tz;
    const INDEX tile = static_cast<INDEX>(blockIdx.x) * 128 + threadIdx.x;
    if (tile >= tiles_x * tiles_y * tiles_z) return;
    const INDEX x0 = tile % tiles_x * tx + RADIUS;
    const INDEX y0 = tile / tiles_x % tiles_y * ty + RADIUS;
    const INDEX z0 = tile / tiles_x / tiles_y * tz + RADIUS;
    const INDEX last = n - RADIUS;
    const INDEX row = row_pitch<REAL, ROW_PADDING>(n);
    const INDEX plane = row * n;
    for (INDEX z = z0; z < min(z0 + tz, last); ++z)
        for (INDEX y = y0; y < min(y0 + ty, last); ++y)
            for (INDEX x = x0; x < min(x0 + tx, last); ++x)
                step<RADIUS>(u_new, u, u_old, velocity, z * plane + y * row + x, row, plane,
                             scale, weight);
}
