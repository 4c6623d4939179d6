#include <cuda_runtime.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "errors.cuh"

#ifndef BLOCK_SIZE
#define BLOCK_SIZE 256
#endif

// Normalize N vectors of four floats in place.
__global__ void normalize(float4 *v, int N)
{
    int tid = blockIdx.x * BLOCK_SIZE + threadIdx.x;
    if (tid < N) {
        float4 p = v[tid];
        float inv = 1.0f / sqrtf(p.x * p.x + p.y * p.y + p.z * p.z + p.w * p.w);
        v[tid] = make_float4(p.x * inv, p.y * inv, p.z * inv, p.w * inv);
    }
}

int main(int argc, char **argv)
{
    int N = argc > 1 ? atoi(argv[1]) : 1 << 20;
    size_t bytes = N * sizeof(float4);
    float4 *h = (float4 *)malloc(bytes), *d = NULL;
    for (int i = 0; i < N; i++) h[i] = make_float4(i % 7 + 1, i % 5, i % 3, 1);

    CHECK(cudaMalloc(&d, bytes));
    CHECK(cudaMemcpy(d, h, bytes, cudaMemcpyHostToDevice));
    normalize<<<(N + BLOCK_SIZE - 1) / BLOCK_SIZE, BLOCK_SIZE>>>(d, N);
    CHECK(cudaGetLastError());
    CHECK(cudaMemcpy(h, d, bytes, cudaMemcpyDeviceToHost));
    printf("first vector: %f %f %f %f\n", h[0].x, h[0].y, h[0].z, h[0].w);
    cudaFree(d);
    free(h);
    return 0;
}
