// As interleaved, but R and Q^T y are what Gram-Schmidt takes away anyway: no second pass over X and Q.
#include "by_thread.cuh"

// Makes the columns orthonormal; `r` gets what each has of those before it, `b` what y has of each.
__device__ __forceinline__ void decompose(
    Matrix<0> q, Matrix<0> y, Matrix<0> r, Matrix<0> b, int cols) {
    for (int j = 0; j < cols; ++j) {
        for (int i = 0; i < j; ++i) {
            const REAL sum = dot(q, i, q, j);
            r.at(j, i) = sum;
            for (int row = 0; row < q.rows; ++row) q.at(j, row) -= sum * q.at(i, row);
        }
        const REAL length = root(dot(q, j, q, j)), scale = 1 / length;
        REAL sum = 0;
        for (int row = 0; row < q.rows; ++row) {
            const REAL value = q.at(j, row) * scale;
            q.at(j, row) = value;
            sum += value * y.at(0, row);
        }
        r.at(j, j) = length;
        b.at(0, j) = sum;
    }
}

extern "C" __global__ void KERNEL(regressions)(
    int county, int countx, int rows, int cols, REAL *x, REAL *y, REAL *q, REAL *r, REAL *b) {
    const int m = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
    if (m >= county) return;
    const Regression all{{county, countx, rows, cols}, x, y, q, r, b};
    const auto own_q = all.q_of<0>(m);
    const auto own_r = all.r_of<0>(m), own_b = all.b_of<0>(m);
    begin(all.x_of<0>(m), own_q, cols);
    decompose(own_q, all.y_of<0>(m), own_r, own_b, cols);
    for (int i = cols - 1; i >= 0; --i) {
        REAL sum = own_b.at(0, i);
        for (int j = cols - 1; j > i; --j) sum -= own_r.at(j, i) * own_b.at(0, j);
        own_b.at(0, i) = sum / own_r.at(i, i);
    }
}
