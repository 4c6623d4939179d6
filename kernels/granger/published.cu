// The published launch: blocks of 32 x 32 threads, of which only blockIdx.x and threadIdx.x tell
// regressions apart, 16 a block. So all 32 rows of a block, all blocks of a column of the grid, and the
// last 16 columns of a block and the first 16 of its neighbour do the same ones, in the same Q, R and b,
// without waiting for each other: a race.
#include "by_thread.cuh"

extern "C" __global__ void KERNEL(regressions)(
    int county, int countx, int rows, int cols, REAL *x, REAL *y, REAL *q, REAL *r, REAL *b) {
    const int m = static_cast<int>(blockIdx.x * 16 + threadIdx.x);
    if (m >= county) return;
    regress<1>(Regression{{county, countx, rows, cols}, x, y, q, r, b}, m);
}
