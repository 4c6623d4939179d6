// Inputs made on the device, an independent float64 reference, and the comparison. Nothing here
// uses stencil.cuh: a mistake there must not repeat itself in the reference.

// Uniform in [low, high), a function of (seed, logical index) alone, so that the same point holds
// the same value whatever the pitch; NumPy computes the same bits. Cells of the padding get NaN.
extern "C" __global__ void KERNEL(fill)(REAL *array, long long n, long long pitch,
                                        unsigned long long seed, double low, double high) {
    for (long long row = blockIdx.x; row < n * n; row += gridDim.x)
        for (long long x = threadIdx.x; x < pitch; x += blockDim.x) {
            const unsigned long long index = (unsigned long long)(row * n + x) + 1;
            unsigned long long bits = seed + index * 0x9E3779B97F4A7C15ull;
            bits = (bits ^ (bits >> 30)) * 0xBF58476D1CE4E5B9ull;
            bits = (bits ^ (bits >> 27)) * 0x94D049BB133111EBull;
            bits ^= bits >> 31;
            // No fused multiply-add: it would round once where NumPy rounds twice.
            const double uniform = (double)(bits >> 11) * 0x1p-53;
            const double value = __dadd_rn(low, __dmul_rn(high - low, uniform));
            array[row * pitch + x] = x < n ? (REAL)value : (REAL)nan("");
        }
}

// The time step in float64, axis by axis, weights read at run time.
extern "C" __global__ void KERNEL(reference)(double *expected, const REAL *u, const REAL *u_old,
                                             const REAL *velocity, const double *weights,
                                             long long n, long long pitch, int radius,
                                             double scale) {
    const long long inner = n - 2 * radius;
    const long long steps[3] = {1, pitch, pitch * n};
    for (long long row = blockIdx.x; row < inner * inner; row += gridDim.x) {
        const long long i = row / inner + radius, j = row % inner + radius;
        for (long long k = threadIdx.x + radius; k < n - radius; k += blockDim.x) {
            const long long at = (i * n + j) * pitch + k;
            double sum = 0;
            for (int axis = 0; axis < 3; ++axis) {
                double part = weights[0] * (double)u[at];
                for (int offset = 1; offset <= radius; ++offset)
                    part += weights[offset] * ((double)u[at - offset * steps[axis]] +
                                               (double)u[at + offset * steps[axis]]);
                sum += part;
            }
            const double speed = (double)velocity[at];
            expected[(i * n + j) * n + k] =
                2.0 * (double)u[at] - (double)u_old[at] + speed * speed * scale * sum;
        }
    }
}

__device__ __forceinline__ bool is_poison(float value) { return __float_as_int(value) == -1; }
__device__ __forceinline__ bool is_poison(double value) {
    return __double_as_longlong(value) == -1;
}

// Inside the boundary every point must be within `tolerance` of the reference (NaN is not);
// everywhere else the poison, all bits set, must still be there.
// findings: points off, bits of the largest error, cells written outside the interior.
extern "C" __global__ void KERNEL(compare)(const REAL *u_new, const double *expected, long long n,
                                           long long pitch, int radius, double tolerance,
                                           unsigned long long *findings) {
    unsigned long long off = 0, outside = 0;
    double worst = 0;
    for (long long row = blockIdx.x; row < n * n; row += gridDim.x) {
        const long long y = row % n, z = row / n;
        const bool inside = y >= radius && y < n - radius && z >= radius && z < n - radius;
        for (long long x = threadIdx.x; x < pitch; x += blockDim.x) {
            const REAL found = u_new[row * pitch + x];
            if (inside && x >= radius && x < n - radius) {
                const double error = fabs((double)found - expected[row * n + x]);
                if (!(error <= tolerance)) ++off;
                // NaN compares false; it counts as infinitely wrong.
                worst = error <= 1e300 ? fmax(worst, error) : 1e300;
            } else if (!is_poison(found)) {
                ++outside;
            }
        }
    }
    if (off) atomicAdd(findings, off);
    if (outside) atomicAdd(findings + 2, outside);
    // Bits of non-negative doubles sort as the numbers do; one atomic a warp is enough.
    unsigned long long bits = (unsigned long long)__double_as_longlong(worst);
    for (int distance = 16; distance; distance /= 2) {
        const unsigned long long other = __shfl_xor_sync(0xFFFFFFFFu, bits, distance);
        bits = other > bits ? other : bits;
    }
    if (threadIdx.x % 32 == 0 && bits) atomicMax(findings + 1, bits);
}
