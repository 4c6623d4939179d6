// Inputs made on the device, and the float64 reference by normal equations: nothing of how the variants
// do it, nor where: a mistake in matrices.cuh must not repeat itself in the check.

// Uniform in [-1, 1), a function of (seed, index) alone.
__device__ __forceinline__ double uniform(unsigned long long seed, long long index) {
    unsigned long long bits = seed + (unsigned long long)(index + 1) * 0x9E3779B97F4A7C15ull;
    bits = (bits ^ (bits >> 30)) * 0xBF58476D1CE4E5B9ull;
    bits = (bits ^ (bits >> 27)) * 0x94D049BB133111EBull;
    bits ^= bits >> 31;
    return __dadd_rn(-1.0, __dmul_rn(2.0, (double)(bits >> 11) * 0x1p-53));
}

// Where element `inner` of regression m lies, of `each` elements a regression.
__device__ __forceinline__ long long position(
    long long m, long long inner, long long each, long long county, int side_by_side) {
    return side_by_side ? inner * county + m : m * each + inner;
}

// A value for every element of every regression; the same for both ways to lie. The first `blank`
// elements of each are no numbers: whoever needs them has to write them.
extern "C" __global__ void KERNEL(fill)(
    REAL *values, long long county, long long each, long long blank, int side_by_side,
    unsigned long long seed) {
    const long long step = gridDim.x * (long long)blockDim.x;
    for (long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x; i < county * each; i += step) {
        const long long m = i / each, inner = i % each;
        const REAL value = inner < blank ? (REAL)NAN : (REAL)uniform(seed, i);
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
