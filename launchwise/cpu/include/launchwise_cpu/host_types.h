// Types of the CUDA runtime that declarations beside kernels name. Functions that call the runtime are
// host code, which source.py leaves out.
#pragma once
#include <cstddef>

enum cudaError { cudaSuccess = 0, cudaErrorInvalidValue = 1, cudaErrorMemoryAllocation = 2 };
using cudaError_t = cudaError;
enum cudaMemcpyKind {
    cudaMemcpyHostToHost,
    cudaMemcpyHostToDevice,
    cudaMemcpyDeviceToHost,
    cudaMemcpyDeviceToDevice,
    cudaMemcpyDefault
};
using cudaStream_t = struct CUstream_st *;
using cudaEvent_t = struct CUevent_st *;
using cudaGraph_t = struct CUgraph_st *;
using cudaGraphExec_t = struct CUgraphExec_st *;
struct cudaDeviceProp {
    char name[256];
    size_t totalGlobalMem, sharedMemPerBlock, totalConstMem;
    int major, minor, regsPerBlock, warpSize, maxThreadsPerBlock, multiProcessorCount, l2CacheSize;
    int maxThreadsDim[3], maxGridSize[3];
};
