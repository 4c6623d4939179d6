// One thread a point in blocks of bx x by x bz threads. The block shape is a launch argument; its
// neighbours are shared through L1 and L2 alone.
extern "C" __global__ void __launch_bounds__(1024)
    KERNEL(block3d)(REAL *__restrict__ u_new, const REAL *__restrict__ u,
                    const REAL *__restrict__ u_old, const REAL *__restrict__ velocity, INDEX n,
                    REAL scale) {
    constexpr REAL weight[RADIUS + 1] = WEIGHTS;
    const INDEX x = static_cast<INDEX>(blockIdx.x) * blockDim.x + threadIdx.x + RADIUS;
    const INDEX y = static_cast<INDEX>(blockIdx.y) * blockDim.y + threadIdx.y + RADIUS;
    const INDEX z = static_cast<INDEX>(blockIdx.z) * blockDim.z + threadIdx.z + RADIUS;
    const INDEX last = n - RADIUS;
    if (x >= last || y >= last || z >= last) return;
    const INDEX row = row_pitch<REAL, ROW_PADDING>(n);
    const INDEX plane = row * n;
    step<RADIUS>(u_new, u, u_old, velocity, z * plane + y * row + x, row, plane, scale, weight);
}
