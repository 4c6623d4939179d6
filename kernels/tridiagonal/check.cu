// Inputs made on the device, and the residual of a solution in float64. Nothing here uses
// tridiagonal.cuh: a mistake there must not repeat itself in the check.
#include "common/largest.cuh"
#include "common/uniform.cuh"

// Where logical row i lies: in natural order (m = 0), or with row k of all sub-systems together and
// what is left over behind the last whole sub-system at the end.
__device__ __forceinline__ long long position(long long i, long long rows, int m) {
    if (!m) return i;
    const long long subsystems = rows / m;
    return i < subsystems * m ? i % m * subsystems + i / m : i;
}

// Row-dominant systems of n rows each, one behind the other, with nothing between them.
extern "C" __global__ void KERNEL(fill)(REAL *a, REAL *b, REAL *c, REAL *d, long long rows,
                                        long long n, int m, unsigned long long seed) {
    const long long step = gridDim.x * (long long)blockDim.x;
    for (long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x; i < rows; i += step) {
        const long long at = position(i, rows, m);
        const REAL below = i % n ? (REAL)common::uniform(seed, i) : (REAL)0;
        const REAL above = i % n < n - 1 ? (REAL)common::uniform(seed + 1, i) : (REAL)0;
        const double sum = __dadd_rn(fabs((double)below), fabs((double)above));
        const double size = __dadd_rn(__dmul_rn(1.1, sum), 0.1);
        a[at] = below;
        b[at] = (REAL)(common::uniform(seed + 2, i) < 0 ? -size : size);
        c[at] = above;
        d[at] = (REAL)common::uniform(seed + 3, i);
    }
}

// The largest sum of a row's |a|, |b| and |c|: the infinity norm of the matrix.
extern "C" __global__ void KERNEL(norm)(const REAL *a, const REAL *b, const REAL *c, long long rows,
                                        unsigned long long *found) {
    const long long step = gridDim.x * (long long)blockDim.x;
    double worst = 0;
    for (long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x; i < rows; i += step)
        worst = common::larger(worst, fabs((double)a[i]) + fabs((double)b[i]) + fabs((double)c[i]));
    common::raise_to_largest(worst, found);
}

// The largest |x|.
extern "C" __global__ void KERNEL(largest)(const REAL *x, long long rows,
                                           unsigned long long *found) {
    const long long step = gridDim.x * (long long)blockDim.x;
    double worst = 0;
    for (long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x; i < rows; i += step)
        worst = common::larger(worst, fabs((double)x[i]));
    common::raise_to_largest(worst, found);
}

// The largest |d - A x|.
extern "C" __global__ void KERNEL(residual)(const REAL *a, const REAL *b, const REAL *c,
                                            const REAL *d, const REAL *x, long long rows, int m,
                                            unsigned long long *found) {
    const long long step = gridDim.x * (long long)blockDim.x;
    double worst = 0;
    for (long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x; i < rows; i += step) {
        const long long at = position(i, rows, m);
        double rest = (double)d[at] - (double)b[at] * (double)x[at];
        if (i > 0) rest -= (double)a[at] * (double)x[position(i - 1, rows, m)];
        if (i < rows - 1) rest -= (double)c[at] * (double)x[position(i + 1, rows, m)];
        worst = common::larger(worst, fabs(rest));
    }
    common::raise_to_largest(worst, found);
}
