#include <cuda_runtime.h>
#ifndef BLOCK
#define BLOCK 32
#endif
#define RUN(side) tile_sum<side, true><<<1, BLOCK>>>(out, in, n)

template <int SIDE, bool TWICE>
__global__ void tile_sum(float *out, const float *in, int n)
{
    __shared__ float tile[SIDE * BLOCK];
    tile[threadIdx.x] = in[n - 1];
    out[threadIdx.x] = tile[SIDE - 1 - threadIdx.x] * (TWICE ? 2 : 1);
}

struct Runner {
    int device;
    explicit Runner(int n) : device{n} { cudaGetDevice(&device); }
    template <int SIDE> int run(float *out, const float *in, int n)
    {
        // A brace in a comment {
#define LIMIT \
    4
        if (n > LIMIT) {
#pragma unroll
            for (int i = 0; i < 2; ++i) tile_sum<SIDE, false><<<1, BLOCK>>>(out, in, n);
        }
        return cudaGetLastError() != cudaSuccess ? "{"[0] : 0;
    }
};
static void by_macro(float *out, const float *in, int n) { RUN(1000); }
static int by_address()
{
    int blocks = 0;
#ifdef COUNT
    cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, tile_sum<2000, true>, BLOCK, 0);
#endif
    auto kernel = tile_sum<2001, true>;
    return blocks + (kernel != nullptr);
}
int main() {
    Runner runner(0);
    by_macro(nullptr, nullptr, 1);
    return runner.run<3000>(nullptr, nullptr, LIMIT) + by_address();
}
__device__ int after = @@;
