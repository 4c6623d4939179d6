struct Rates {
    float keep, take;
};

// A step of diffusion. The halo, the outermost points, is left as it is.
__global__ void diffuse(float *next, const float *now, Rates rates, int width, int height)
{
    const int x = blockIdx.x * block_size_x + threadIdx.x;
    const int y = blockIdx.y * block_size_y + threadIdx.y;
    if (x < 1 || y < 1 || x >= width - 1 || y >= height - 1) return;
    const int at = y * width + x;
    const float beside = now[at - 1] + now[at + 1] + now[at - width] + now[at + width];
    next[at] = rates.keep * now[at] + rates.take * beside;
}
