// Inputs made on the device, an independent float64 reference, and the comparison. Nothing here
// uses stencil.cuh: a mistake there must not repeat itself in the reference.
#include "common/largest.cuh"
#include "common/uniform.cuh"

// Uniform in [low, high) by (seed, logical index), so that a point holds the same value whatever the
// pitch. Cells of the padding are NaN.
extern "C" __global__ void KERNEL(fill)(REAL *array, long long n, long long pitch,
                                        unsigned long long seed, double low, double high) {
    for (long long row = blockIdx.x; row < n * n; row += gridDim.x)
        for (long long x = threadIdx.x; x < pitch; x += blockDim.x) {
            const double value = common::uniform(seed, row * n + x, low, high);
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

// The expected step as the input of the next one: inside the boundary rounded to REAL, zero elsewhere.
extern "C" __global__ void KERNEL(as_input)(REAL *array, const double *expected, long long n,
                                            long long pitch, int radius) {
    for (long long row = blockIdx.x; row < n * n; row += gridDim.x) {
        const long long y = row % n, z = row / n;
        const bool inside = y >= radius && y < n - radius && z >= radius && z < n - radius;
        for (long long x = threadIdx.x; x < pitch; x += blockDim.x)
            array[row * pitch + x] =
                inside && x >= radius && x < n - radius ? (REAL)expected[row * n + x] : REAL(0);
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
                worst = common::larger(worst, error);
            } else if (!is_poison(found)) {
                ++outside;
            }
        }
    }
    if (off) atomicAdd(findings, off);
    if (outside) atomicAdd(findings + 2, outside);
    common::raise_to_largest(worst, findings + 1);
}
