// A thread does a whole regression, in the order of the published kernel. Included in the namespaces of
// those who use it.
#include "matrices.cuh"

template <int STEP>
__device__ __forceinline__ REAL dot(Matrix<STEP> one, int i, Matrix<STEP> other, int j) {
    REAL sum = 0;
    for (int row = 0; row < one.rows; ++row) sum += one.at(i, row) * other.at(j, row);
    return sum;
}

// Intercepts, and a copy of X to be made orthonormal.
template <int STEP>
__device__ __forceinline__ void begin(Matrix<STEP> x, Matrix<STEP> q, int cols) {
    for (int row = 0; row < x.rows; ++row) x.at(0, row) = 1;
    for (int column = 0; column < cols; ++column)
        for (int row = 0; row < x.rows; ++row) q.at(column, row) = x.at(column, row);
}

// Modified Gram-Schmidt.
template <int STEP>
__device__ __forceinline__ void orthonormalise(Matrix<STEP> q, int cols) {
    for (int j = 0; j < cols; ++j) {
        for (int i = 0; i < j; ++i) {
            const REAL sum = dot(q, i, q, j);
            for (int row = 0; row < q.rows; ++row) q.at(j, row) -= sum * q.at(i, row);
        }
        const REAL scale = 1 / root(dot(q, j, q, j));
        for (int row = 0; row < q.rows; ++row) q.at(j, row) *= scale;
    }
}

// From the last coefficient to the first: its row of R = Q^T X, its element of Q^T y, substitution.
template <int STEP>
__device__ __forceinline__ void solve(const Regression &all, int m) {
    const auto x = all.x_of<STEP>(m), q = all.q_of<STEP>(m), y = all.y_of<STEP>(m);
    const auto r = all.r_of<STEP>(m), b = all.b_of<STEP>(m);
    const int cols = all.sizes.cols;
    for (int i = cols - 1; i >= 0; --i) {
        for (int j = 0; j < cols; ++j) r.at(j, i) = dot(q, i, x, j);
        REAL sum = dot(q, i, y, 0);
        for (int j = cols - 1; j > i; --j) sum -= r.at(j, i) * b.at(0, j);
        b.at(0, i) = sum / r.at(i, i);
    }
}

template <int STEP>
__device__ __forceinline__ void regress(const Regression &all, int m) {
    const auto q = all.q_of<STEP>(m);
    begin(all.x_of<STEP>(m), q, all.sizes.cols);
    orthonormalise(q, all.sizes.cols);
    solve<STEP>(all, m);
}
