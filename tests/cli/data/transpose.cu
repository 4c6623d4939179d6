// Transpose of a matrix of height rows by width columns: tiles go through shared memory, so that
// reads and writes are both coalesced. Each thread moves tile_size_x times tile_size_y elements.

#define TILE_W (block_size_x * tile_size_x)
#define TILE_H (block_size_y * tile_size_y)

extern "C" __global__ void __launch_bounds__(block_size_x * block_size_y)
transpose(float *__restrict__ out, const float *__restrict__ in, const int width, const int height)
{
#if use_padding == 1
    __shared__ float tile[TILE_H][TILE_W + 1];
#else
    __shared__ float tile[TILE_H][TILE_W];
#endif
    int left = blockIdx.x * TILE_W;
    int top = blockIdx.y * TILE_H;

    for (int y = threadIdx.y; y < TILE_H; y += block_size_y)
        for (int x = threadIdx.x; x < TILE_W; x += block_size_x)
            if (left + x < width && top + y < height)
                tile[y][x] = in[(size_t)(top + y) * width + left + x];
    __syncthreads();

    // Neighbouring threads write neighbouring elements of a column of the tile.
    int thread = threadIdx.y * block_size_x + threadIdx.x;
    for (int i = thread; i < TILE_W * TILE_H; i += block_size_x * block_size_y) {
        int x = i / TILE_H, y = i % TILE_H;
        if (left + x < width && top + y < height)
            out[(size_t)(left + x) * height + top + y] = tile[y][x];
    }
}
