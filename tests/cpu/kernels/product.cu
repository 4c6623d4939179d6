// C = A B of n x n numbers, n a multiple of TILE. Two barriers per tile: the second one keeps the tiles
// until all have read them.
template <typename Real, int TILE>
__global__ void product(Real *c, const Real *a, const Real *b, int n) {
    __shared__ Real tile_a[TILE][TILE], tile_b[TILE][TILE];
    const int x = blockIdx.x * TILE + threadIdx.x, y = blockIdx.y * TILE + threadIdx.y;
    Real sum = 0;
    for (int k = 0; k < n; k += TILE) {
        tile_a[threadIdx.y][threadIdx.x] = a[y * n + k + threadIdx.x];
        tile_b[threadIdx.y][threadIdx.x] = b[(k + threadIdx.y) * n + x];
        __syncthreads();
        for (int i = 0; i < TILE; ++i) sum += tile_a[threadIdx.y][i] * tile_b[i][threadIdx.x];
        __syncthreads();  // after
    }
    c[y * n + x] = sum;
}

template __global__ void product<float, 8>(float *, const float *, const float *, int);
