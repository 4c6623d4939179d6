// As no_duplicates, but element by element all regressions lie side by side: neighbouring threads read
// neighbouring words.
#include "by_thread.cuh"

extern "C" __global__ void KERNEL(regressions)(
    int county, int countx, int rows, int cols, REAL *x, REAL *y, REAL *q, REAL *r, REAL *b) {
    const int m = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
    if (m >= county) return;
    regress<0>(Regression{{county, countx, rows, cols}, x, y, q, r, b}, m);
}
