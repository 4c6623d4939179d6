// 2-D convolution with a 5x5 filter; each thread computes a tile of pixels.
#include <cuda_runtime.h>

#define FILTER 5

__global__ void convolution_kernel(float *output, const float *image, const float *filter, int w, int h) {
    const int x0 = blockIdx.x * block_size_x * tile_size_x + threadIdx.x;
    const int y0 = blockIdx.y * block_size_y * tile_size_y + threadIdx.y;
    for (int j = 0; j < tile_size_y; ++j)
        for (int i = 0; i < tile_size_x; ++i) {
            const int x = x0 + i * block_size_x, y = y0 + j * block_size_y;
            if (x >= w || y >= h) continue;
            float sum = 0;
            for (int r = 0; r < FILTER; ++r)
                for (int c = 0; c < FILTER; ++c)
                    sum += image[(y + r) * (w + FILTER - 1) + x + c] * filter[r * FILTER + c];
            output[y * w + x] = sum;
        }
}
