// The published kernel, each regression once: one thread a regression, its matrices for itself.
#include "by_thread.cuh"

extern "C" __global__ void KERNEL(regressions)(
    int county, int countx, int rows, int cols, REAL *x, REAL *y, REAL *q, REAL *r, REAL *b) {
    const int m = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
    if (m >= county) return;
    regress<1>(Regression{{county, countx, rows, cols}, x, y, q, r, b}, m);
}
