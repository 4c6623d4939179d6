// What nvcc defines, and what g++ reads otherwise.
#define __CUDACC__ 1
#define __NVCC__ 1
#define __CUDACC_VER_MAJOR__ 13
#define __CUDACC_VER_MINOR__ 0
#define __CUDA_ARCH__ 900
#define CUDART_VERSION 13000
#define CUDA_VERSION 13000
#define __align__(n) alignas(n)
#define __builtin_align__(n) alignas(n)
#define __maxnreg__(n) __launch_bounds__(n)
#define __cluster_dims__(...) __launch_bounds__(__VA_ARGS__)
#define __forceinline__
#define __noinline__
