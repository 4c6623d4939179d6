#include <cuda_runtime.h>

#ifndef TILE
#define TILE 32
#endif
#define ROWS 8

__global__ void __launch_bounds__(TILE *ROWS)
    transpose(float *out, const float *__restrict__ in, int width, int height) {
    __shared__ float tile[TILE][TILE + 1];  // padding: no bank conflicts
    int x = blockIdx.x * TILE + threadIdx.x, y = blockIdx.y * TILE + threadIdx.y;
#pragma unroll
    for (int row = 0; row < TILE; row += ROWS)
        if (x < width && y + row < height) tile[threadIdx.y + row][threadIdx.x] = in[(y + row) * width + x];
    __syncthreads();
    x = blockIdx.y * TILE + threadIdx.x;
    y = blockIdx.x * TILE + threadIdx.y;
    for (int row = 0; row < TILE; row += ROWS)
        if (x < height && y + row < width) out[(y + row) * height + x] = tile[threadIdx.x][threadIdx.y + row];
}
