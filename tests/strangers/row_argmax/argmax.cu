using index_t = long long;

// A row per warp. Of equal elements the first one wins.
__global__ void argmax_warp(const float *x, index_t *arg, index_t rows, index_t cols)
{
    index_t row = blockIdx.x * (index_t)WARPS_PER_BLOCK + threadIdx.y;
    if (row >= rows)
        return;
    float best = -INFINITY;
    index_t where = 0;
    for (index_t c = threadIdx.x; c < cols; c += 32) {
        float e = x[row * cols + c];
        if (e > best) { best = e; where = c; }
    }
    for (int lane = 16; lane; lane >>= 1) {
        float other = __shfl_down_sync(~0u, best, lane);
        index_t there = __shfl_down_sync(~0u, where, lane);
        if (other > best || (other == best && there < where)) { best = other; where = there; }
    }
    if (threadIdx.x == 0)
        arg[row] = where;
}
