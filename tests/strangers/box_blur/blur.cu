#include "clamp.h"

#ifndef RADIUS
# define RADIUS 3
#endif

__global__ void BlurRows(const float* image, float* temp, int rows, int cols)
{
    __shared__ float line[TILE_H][TILE_W + 2 * RADIUS];
    int col = blockIdx.x * TILE_W + threadIdx.x;
    int row = blockIdx.y * TILE_H + threadIdx.y;
    int safe = clamp(row, 0, rows - 1);

    for (int c = threadIdx.x; c < TILE_W + 2 * RADIUS; c += TILE_W) {
        int from = clamp((int)(blockIdx.x * TILE_W) + c - RADIUS, 0, cols - 1);
        line[threadIdx.y][c] = image[safe * cols + from];
    }
    __syncthreads();

    if (row < rows && col < cols) {
        float sum = 0;
        for (int k = 0; k <= 2 * RADIUS; k++) sum += line[threadIdx.y][threadIdx.x + k];
        temp[row * cols + col] = sum / (2 * RADIUS + 1);
    }
}

__global__ void BlurCols(const float* temp, float* blurred, int rows, int cols)
{
    int col = blockIdx.x * TILE_W + threadIdx.x;
    int row = blockIdx.y * TILE_H + threadIdx.y;
    if (row >= rows || col >= cols) return;

    float sum = 0;
    for (int k = -RADIUS; k <= RADIUS; k++)
        sum += temp[clamp(row + k, 0, rows - 1) * cols + col];
    blurred[row * cols + col] = sum / (2 * RADIUS + 1);
}
