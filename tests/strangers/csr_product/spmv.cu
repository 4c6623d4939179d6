/**
 * y = A x, A in compressed rows. One warp per row.
 */
extern "C" __global__ void spmv_csr_vector(const int* row_ptr, const int* col_ind,
                                           const double* val, const double* x, double* y,
                                           int nrows)
{
    const int lane = threadIdx.x & 31;
    const int row  = blockIdx.x * WARPS + (threadIdx.x >> 5);
    if (row >= nrows) return;

    double acc = 0.0;
    for (int k = row_ptr[row] + lane; k < row_ptr[row + 1]; k += 32)
        acc += val[k] * x[col_ind[k]];

    for (int d = 16; d; d >>= 1)
        acc += __shfl_down_sync(0xffffffffu, acc, d);
    if (lane == 0) y[row] = acc;
}
