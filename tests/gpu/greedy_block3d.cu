// block3d.cu without a bound on its threads and with more values alive than 1024 threads can have
// registers for: small blocks compute what they should, large ones are refused at launch.
extern "C" __global__ void KERNEL(block3d)(REAL *__restrict__ u_new, const REAL *__restrict__ u,
                                           const REAL *__restrict__ u_old,
                                           const REAL *__restrict__ velocity, INDEX n, REAL scale) {
    constexpr REAL weight[RADIUS + 1] = WEIGHTS;
    const INDEX x = static_cast<INDEX>(blockIdx.x) * blockDim.x + threadIdx.x + RADIUS;
    const INDEX y = static_cast<INDEX>(blockIdx.y) * blockDim.y + threadIdx.y + RADIUS;
    const INDEX z = static_cast<INDEX>(blockIdx.z) * blockDim.z + threadIdx.z + RADIUS;
    const INDEX last = n - RADIUS;
    if (x >= last || y >= last || z >= last) return;
    // Each value says where the next one is, and they are added in the other order: when the last
    // one is there, all are alive.
    constexpr int hoarded = 100;
    REAL hoard[hoarded], sum = 0;
    INDEX at = x;
#pragma unroll
    for (int k = 0; k < hoarded; ++k) {
        hoard[k] = u[at];
        at += hoard[k] == REAL(1e30) ? 2 : 1;
    }
#pragma unroll
    for (int k = hoarded; k-- > 0;) sum = sum * REAL(0.5) + hoard[k];
    const INDEX row = row_pitch<REAL, ROW_PADDING>(n);
    const INDEX plane = row * n;
    step<RADIUS>(u_new, u, u_old, velocity, z * plane + y * row + x, row, plane, scale, weight);
    if (sum == REAL(1e30)) u_new[0] = sum;  // Never: what is hoarded has to be used.
}
