// One warp per regression, its lanes share the rows. `q` is in global or in shared memory. Included in
// the namespaces of the variants that use it.
#include "common/warp.cuh"
#include "matrices.cuh"

// The sum over all lanes, in one order, every time.
__device__ __forceinline__ REAL sum_of_lanes(REAL value) {
    for (int mask = 16; mask; mask /= 2) value += common::shuffle_xor(value, mask);
    return value;
}

__device__ __forceinline__ REAL dot(Matrix<1> one, int i, Matrix<1> other, int j, int lane) {
    REAL sum = 0;
    for (int row = lane; row < one.rows; row += 32) sum += one.at(i, row) * other.at(j, row);
    return sum_of_lanes(sum);
}

// Each lane only ever touches its own rows of x and q: nobody has to wait before R.
__device__ __forceinline__ void regress(
    Matrix<1> x, Matrix<1> y, Matrix<1> q, Matrix<1> r, Matrix<1> b, int cols, int lane) {
    for (int row = lane; row < x.rows; row += 32) x.at(0, row) = 1;
    for (int column = 0; column < cols; ++column)
        for (int row = lane; row < x.rows; row += 32) q.at(column, row) = x.at(column, row);
    for (int j = 0; j < cols; ++j) {
        for (int i = 0; i < j; ++i) {
            const REAL sum = dot(q, i, q, j, lane);
            for (int row = lane; row < q.rows; row += 32) q.at(j, row) -= sum * q.at(i, row);
        }
        const REAL scale = 1 / root(dot(q, j, q, j, lane));
        for (int row = lane; row < q.rows; row += 32) q.at(j, row) *= scale;
    }
    for (int i = cols - 1; i >= 0; --i) {
        for (int j = 0; j < cols; ++j) {
            const REAL sum = dot(q, i, x, j, lane);
            if (lane == 0) r.at(j, i) = sum;
        }
        REAL sum = dot(q, i, y, 0, lane);
        common::sync_warp();
        for (int j = cols - 1; j > i; --j) sum -= r.at(j, i) * b.at(0, j);
        if (lane == 0) b.at(0, i) = sum / r.at(i, i);
        common::sync_warp();
    }
}
