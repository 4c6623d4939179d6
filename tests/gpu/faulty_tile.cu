// omp_tile.cu with a fault in each of seven tile shapes; every other shape is right. The tests put
// it in omp_tile.cu's place, on a GPU and (where the shapes end a process as noted) on the CPU.
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
    if (tile != 0) return;
    const INDEX first = z0 * plane + y0 * row + x0;
    switch (1000000 * tx + 1000 * ty + tz) {
        case 2001001:  // an address that nobody owns; CPU: SIGSEGV
            u_new[-(1ll << 40)] = 0;
            break;
        case 1002001:  // never ends: nobody ever writes this number
            while (*(volatile REAL *)u_new != REAL(1e30)) {
            }
            break;
        case 1001002:  // not a number, inside
            u_new[first] = (REAL)nan("");
            break;
        case 2002001:  // right inside, but a boundary cell is written, too
            u_new[0] = 1;
            break;
        case 2001002:  // one point is wrong
            u_new[first] += 1;
            break;
        case 1002002:  // gives up; CPU: SIGILL
#ifdef __CUDACC__
            __trap();
#else
            __builtin_trap();
#endif
            break;
        case 2002002:  // a failed assertion; CPU: SIGABRT
#ifdef __CUDACC__
            assert(tx != 2);
#else
            __builtin_abort();
#endif
            break;
    }
}
