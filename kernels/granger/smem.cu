// As warp_per_fit, Q and R in shared memory.
#include "by_warp.cuh"

extern "C" __global__ void KERNEL(regressions)(
    int county, int countx, int rows, int cols, REAL *x, REAL *y, REAL *q, REAL *r, REAL *b) {
    DYNAMIC_SHARED(REAL, shared);
    const int warp = static_cast<int>(threadIdx.x / 32);
    const int m = static_cast<int>(blockIdx.x * (blockDim.x / 32)) + warp;
    if (m >= county) return;
    const Regression all{{county, countx, rows, cols}, x, y, q, r, b};
    REAL *own = shared + static_cast<long long>(warp) * cols * (rows + cols);
    const Matrix<1> own_q{own, 1, rows}, own_r{own + static_cast<long long>(rows) * cols, 1, cols};
    regress(all.x_of<1>(m), all.y_of<1>(m), own_q, own_r, all.b_of<1>(m), cols, threadIdx.x % 32);
}
