// Author: Jürgen
#include "cuda_runtime.h"
#include <cassert>
#include <chrono>
#include <cooperative_groups.h>
#include <cstdio>
#include <iostream>
#include <mma.h>
#include <vector>
#ifdef _WIN32
#include <windows.h>
#endif
#include "sizes.h"
#include "deep/once.cuh"

#define CHECK(call) do { cudaError_t status = (call); if (status) return 1; } while (0)
#ifndef BLOCK
#define BLOCK 128
#endif
#if BLOCK > 64
#define WIDE 1
#endif
#define STEPS (UNROLL * 2)

namespace cg = cooperative_groups;
using namespace nvcuda;

struct Params { float a; int n; };
__constant__ float weights[4];
static __constant__ float hidden[4];
__device__ int counter;

namespace {
__device__ float twice(float x) { return 2 * x; }
}

/* Called `copy`, as std::copy is. */
static __global__ void __launch_bounds__(BLOCK) copy(float *out, const float *in, int n)
{
    namespace groups = cooperative_groups;
    auto block = groups::this_thread_block();
    const int i = blockIdx.x * BLOCK + threadIdx.x;
    float sum = 0;
#pragma unroll UNROLL
    for (int k = 0; k < 16; ++k) sum += in[(i + k) % n];
#pragma unroll(UNROLL / 2) // half
    for (int k = 0; k < 16; ++k) sum += in[(i + 2 * k) % n];
    _Pragma("unroll STEPS")
    for (int k = 0; k < 16; ++k) sum += in[(i + 3 * k) % n];
    block.sync();
    assert(n > 0);
#ifdef WIDE
    __shared__ float wide[256];
    wide[threadIdx.x] = sum;
    __syncthreads();
    sum = wide[BLOCK - 1 - threadIdx.x];
#endif
    if (i < n) out[i] = twice(sum) * weights[0] + hidden[1] + OFFSET + once();
    if (i == 0) atomicAdd(&counter, 1);
}

int main(int argc, char **argv)
{
    std::vector<float> values(1 << 10);
    std::copy(values.begin(), values.end(), values.begin());
    auto began = std::chrono::steady_clock::now();
    float *device;
    CHECK(cudaMalloc(&device, values.size() * sizeof(float)));
    copy<<<4, BLOCK>>>(device, device, 1 << 10);
    std::cout << (std::chrono::steady_clock::now() - began).count() << argc << argv[0];
    return 0;
}
