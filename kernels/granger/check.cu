// Inputs made on the device, and the float64 reference by normal equations. It shares neither the method
// nor the memory layout with the variants: a mistake in matrices.cuh must not repeat itself in the check.
#include "common/uniform.cuh"

// Where element `inner` of regression m lies, of `each` elements a regression.
__device__ __forceinline__ long long position(
    long long m, long long inner, long long each, long long county, int side_by_side) {
    return side_by_side ? inner * county + m : m * each + inner;
}

// Uniform values in [-1, 1), the same for both layouts. The first `blank` elements of each regression are
// NaN: a kernel that needs them has to write them.
extern "C" __global__ void KERNEL(fill)(
    REAL *values, long long county, long long each, long long blank, int side_by_side,
    unsigned long long seed) {
    const long long step = gridDim.x * (long long)blockDim.x;
    for (long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x; i < county * each; i += step) {
        const long long m = i / each, inner = i % each;
        const REAL value = inner < blank ? (REAL)NAN : (REAL)common::uniform(seed, i);
        values[position(m, inner, each, county, side_by_side)] = value;
    }
}

// One block a regression: X^T X and X^T y with the first column of X all ones, then Cholesky by the
// first thread. `out`: coefficients, regression after regression.
extern "C" __global__ void KERNEL(reference)(
    int county, int countx, int rows, int cols, const REAL *x, const REAL *y, int side_by_side,
    double *out) {
    DYNAMIC_SHARED(double, shared);
    double *g = shared, *right = shared + cols * cols;
    const long long m = blockIdx.x;
    const auto of = [&](const REAL *values, int column, int row, int columns) {
        const long long inner = (long long)column * rows + row;
        return (double)values[position(m, inner, (long long)columns * rows, county, side_by_side)];
    };
    const auto element = [&](int column, int row) { return column ? of(x, column, row, cols) : 1.0; };
    for (int n = threadIdx.x; n < cols * (cols + 1); n += blockDim.x) {
        const int i = n / (cols + 1), j = n % (cols + 1);
        double sum = 0;
        for (int row = 0; row < rows; ++row)
            sum += element(i, row) * (j < cols ? element(j, row) : of(y, m != 1, row, countx));
        (j < cols ? g[i * cols + j] : right[i]) = sum;
    }
    __syncthreads();
    if (threadIdx.x) return;
    for (int j = 0; j < cols; ++j) {
        for (int k = 0; k < j; ++k)
            for (int i = j; i < cols; ++i) g[i * cols + j] -= g[i * cols + k] * g[j * cols + k];
        const double scale = 1 / sqrt(g[j * cols + j]);
        for (int i = j; i < cols; ++i) g[i * cols + j] *= scale;
    }
    for (int i = 0; i < cols; ++i) {
        for (int k = 0; k < i; ++k) right[i] -= g[i * cols + k] * right[k];
        right[i] /= g[i * cols + i];
    }
    for (int i = cols - 1; i >= 0; --i) {
        for (int k = i + 1; k < cols; ++k) right[i] -= g[k * cols + i] * right[k];
        right[i] /= g[i * cols + i];
        out[m * cols + i] = right[i];
    }
}
