// Inputs made on the device, and how well a solution fulfils its equations, in float64. Nothing here
// uses tridiagonal.cuh: a mistake there must not repeat itself in the check.

// Where logical row i lies: in natural order (m = 0), or with row k of all sub-systems together and
// what is left over behind the last whole sub-system at the end.
__device__ __forceinline__ long long position(long long i, long long rows, int m) {
    if (!m) return i;
    const long long subsystems = rows / m;
    return i < subsystems * m ? i % m * subsystems + i / m : i;
}

// Uniform in [-1, 1), a function of (seed, index) alone; NumPy computes the same bits.
__device__ __forceinline__ double uniform(unsigned long long seed, long long index) {
    unsigned long long bits = seed + (unsigned long long)(index + 1) * 0x9E3779B97F4A7C15ull;
    bits = (bits ^ (bits >> 30)) * 0xBF58476D1CE4E5B9ull;
    bits = (bits ^ (bits >> 27)) * 0x94D049BB133111EBull;
    bits ^= bits >> 31;
    return __dadd_rn(-1.0, __dmul_rn(2.0, (double)(bits >> 11) * 0x1p-53));
}

// Row-dominant systems of n rows each, one behind the other, with nothing between them.
extern "C" __global__ void KERNEL(fill)(REAL *a, REAL *b, REAL *c, REAL *d, long long rows,
                                        long long n, int m, unsigned long long seed) {
    const long long step = gridDim.x * (long long)blockDim.x;
    for (long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x; i < rows; i += step) {
        const long long at = position(i, rows, m);
        const REAL below = i % n ? (REAL)uniform(seed, i) : (REAL)0;
        const REAL above = i % n < n - 1 ? (REAL)uniform(seed + 1, i) : (REAL)0;
        const double sum = __dadd_rn(fabs((double)below), fabs((double)above));
        const double size = __dadd_rn(__dmul_rn(1.1, sum), 0.1);
        a[at] = below;
        b[at] = (REAL)(uniform(seed + 2, i) < 0 ? -size : size);
        c[at] = above;
        d[at] = (REAL)uniform(seed + 3, i);
    }
}

// The largest bits of a block's warps to `at`: those of non-negative doubles sort as they do.
__device__ __forceinline__ void keep_largest(double value, unsigned long long *at) {
    unsigned long long bits = (unsigned long long)__double_as_longlong(value);
    for (int distance = 16; distance; distance /= 2) {
        const unsigned long long other = __shfl_xor_sync(0xFFFFFFFFu, bits, distance);
        bits = other > bits ? other : bits;
    }
    if (threadIdx.x % 32 == 0 && bits) atomicMax(at, bits);
}

// NaN compares false: it counts as infinitely large.
__device__ __forceinline__ double larger(double one, double other) {
    return other <= 1e300 ? fmax(one, other) : 1e300;
}

// The largest sum of a row's |a|, |b| and |c|: the infinity norm of the matrix.
extern "C" __global__ void KERNEL(norm)(const REAL *a, const REAL *b, const REAL *c, long long rows,
                                        unsigned long long *found) {
    const long long step = gridDim.x * (long long)blockDim.x;
    double worst = 0;
    for (long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x; i < rows; i += step)
        worst = larger(worst, fabs((double)a[i]) + fabs((double)b[i]) + fabs((double)c[i]));
    keep_largest(worst, found);
}

// The largest |x|.
extern "C" __global__ void KERNEL(largest)(const REAL *x, long long rows,
                                           unsigned long long *found) {
    const long long step = gridDim.x * (long long)blockDim.x;
    double worst = 0;
    for (long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x; i < rows; i += step)
        worst = larger(worst, fabs((double)x[i]));
    keep_largest(worst, found);
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
        worst = larger(worst, fabs(rest));
    }
    keep_largest(worst, found);
}
