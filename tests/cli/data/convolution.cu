/*
 * 2-D convolution with a filter of 5 x 5 weights in constant memory.
 *
 * A block of block_size_x by block_size_y threads computes a tile of the output that is tile_size_x
 * times as wide and tile_size_y times as high. The input has a border of two pixels on every side.
 *
 * The filter is copied to d_filter by the host: cuMemcpyHtoD(d_filter, ...).
 */
#define FILTER_SIZE 5
#define BORDER (FILTER_SIZE - 1)

__constant__ float d_filter[FILTER_SIZE * FILTER_SIZE];

__global__ void convolution_kernel(float *output, float *input, int w, int h)
{
    __shared__ float pixels[block_size_y * tile_size_y + BORDER][block_size_x * tile_size_x + BORDER];
    const int left = blockIdx.x * block_size_x * tile_size_x;
    const int top = blockIdx.y * block_size_y * tile_size_y;
    const int pitch = w + BORDER;

    for (int y = threadIdx.y; y < block_size_y * tile_size_y + BORDER; y += block_size_y) {
        for (int x = threadIdx.x; x < block_size_x * tile_size_x + BORDER; x += block_size_x) {
            if (left + x < pitch && top + y < h + BORDER)
                pixels[y][x] = input[(top + y) * pitch + left + x];
        }
    }
    __syncthreads();

    for (int ty = 0; ty < tile_size_y; ty++) {
        for (int tx = 0; tx < tile_size_x; tx++) {
            const int x = threadIdx.x + tx * block_size_x, y = threadIdx.y + ty * block_size_y;
            float sum = 0.0f;
            for (int i = 0; i < FILTER_SIZE; i++)
                for (int j = 0; j < FILTER_SIZE; j++)
                    sum += pixels[y + i][x + j] * d_filter[i * FILTER_SIZE + j];
            if (left + x < w && top + y < h)
                output[(top + y) * w + left + x] = sum;
        }
    }
}
