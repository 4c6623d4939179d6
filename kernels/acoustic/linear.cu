// The untiled baseline: one thread per point of the linearised interior, x fastest, 128 threads per
// block. OpenMP deals out the points of a collapsed triple loop alike; openmp.c is that program.
extern "C" __global__ void __launch_bounds__(128)
    KERNEL(linear)(REAL *__restrict__ u_new, const REAL *__restrict__ u,
                   const REAL *__restrict__ u_old, const REAL *__restrict__ velocity, INDEX n,
                   REAL scale) {
    constexpr REAL weight[RADIUS + 1] = WEIGHTS;
    const INDEX interior = n - 2 * RADIUS;
    const INDEX thread = static_cast<INDEX>(blockIdx.x) * 128 + threadIdx.x;
    if (thread >= interior * interior * interior) return;
    const INDEX x = thread % interior + RADIUS;
    const INDEX y = thread / interior % interior + RADIUS;
    const INDEX z = thread / interior / interior + RADIUS;
    const INDEX row = row_pitch<REAL, ROW_PADDING>(n);
    const INDEX plane = row * n;
    step<RADIUS>(u_new, u, u_old, velocity, z * plane + y * row + x, row, plane, scale, weight);
}
