// Every point becomes the mean of itself and its four neighbours; outside the image is zero.
__global__ void smooth(float *output, const float *input, int width, int height)
{
    const int x = blockIdx.x * block_size_x + threadIdx.x;
    const int first = (blockIdx.y * block_size_y + threadIdx.y) * tile_size_y;
    for (int y = first; y < first + tile_size_y; ++y) {
        if (x < width && y < height) {
            const float *point = input + (size_t)y * width + x;
            const float left = x > 0 ? point[-1] : 0.0f;
            const float right = x + 1 < width ? point[1] : 0.0f;
            const float above = y > 0 ? point[-width] : 0.0f;
            const float below = y + 1 < height ? point[width] : 0.0f;
            output[(size_t)y * width + x] = 0.2f * (*point + left + right + above + below);
        }
    }
}
