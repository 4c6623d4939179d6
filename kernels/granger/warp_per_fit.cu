// A warp a regression: its lanes read a column's neighbours, and 32 of them add a product up.
#include "by_warp.cuh"

extern "C" __global__ void KERNEL(regressions)(
    int county, int countx, int rows, int cols, REAL *x, REAL *y, REAL *q, REAL *r, REAL *b) {
    const int m = static_cast<int>(blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32);
    if (m >= county) return;
    const Regression all{{county, countx, rows, cols}, x, y, q, r, b};
    regress(all.x_of<1>(m), all.y_of<1>(m), all.q_of<1>(m), all.r_of<1>(m), all.b_of<1>(m), cols,
            threadIdx.x % 32);
}
