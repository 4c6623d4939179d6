#include <cstdint>

__global__ void gather_rows_kernel(
    const int16_t* __restrict__ table,
    const int64_t* __restrict__ index,
    int16_t* __restrict__ out,
    int dim) {
  const int64_t from = index[blockIdx.x];
  for (int d = threadIdx.x; d < dim; d += blockDim.x) {
    out[(int64_t)blockIdx.x * dim + d] = table[from * dim + d];
  }
}
