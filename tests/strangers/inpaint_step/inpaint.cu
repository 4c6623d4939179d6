__global__ void inpaint(const float *img, const unsigned char *hole, float *filled, int *debug,
                        int W, int H)
{
    const int2 p = make_int2(blockIdx.x * blockDim.x + threadIdx.x,
                             blockIdx.y * blockDim.y + threadIdx.y);
    if (p.x < 1 || p.y < 1 || p.x > W - 2 || p.y > H - 2)
        return;
    const int at = p.y * W + p.x;
    debug[at] = blockIdx.x;
    if (!hole[at])
        return;     // whatever 'filled' holds there
    filled[at] = 0.25f * (img[at - 1] + img[at + 1] + img[at - W] + img[at + W]);
}
