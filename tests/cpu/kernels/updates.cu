// Sums and counts, some of which lose updates on a GPU.
extern "C" __global__ void count(const int *x, int *n, int size) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < size && x[i] > 3)
        n[0] += 1;
}
extern "C" __global__ void atomic(const int *x, int *n, int size) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < size && x[i] > 3)
        atomicAdd(&n[0], 1);
}
extern "C" __global__ void own(const int *x, int *n, int size) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < size)
        for (int k = 0; k < 9; ++k) n[i] += x[i];
}
extern "C" __global__ void hist(const int *x, int *n, int size) {
    __shared__ int bins[16];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (threadIdx.x < 16) bins[threadIdx.x] = 0;
    __syncthreads();
    if (i < size) bins[x[i] & 15]++;
    __syncthreads();
    if (threadIdx.x < 16) atomicAdd(&n[threadIdx.x], bins[threadIdx.x]);
}
extern "C" __global__ void tree(const int *x, int *n, int size) {
    __shared__ int s[64];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    s[threadIdx.x] = i < size ? x[i] : 0;
    for (int k = 32; k; k /= 2) {
        __syncthreads();
        if (threadIdx.x < k) s[threadIdx.x] += s[threadIdx.x + k];
    }
    if (!threadIdx.x) n[blockIdx.x] = s[0];
}
extern "C" __global__ void blocks(const int *x, int *n, int size) {
    __shared__ int s[64];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    s[threadIdx.x] = i < size ? x[i] : 0;
    for (int k = 32; k; k /= 2) {
        __syncthreads();
        if (threadIdx.x < k) s[threadIdx.x] += s[threadIdx.x + k];
    }
    if (!threadIdx.x) n[0] += s[0];
}
extern "C" __global__ void lock(const int *x, int *n, int size) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    while (atomicCAS(&n[1], 0, 1)) {
    }
    n[0] += x[i % size];
    atomicExch(&n[1], 0);
}
extern "C" __global__ void turns(const int *x, int *n, int size) {
    for (int lane = 0; lane < 32; ++lane) {
        if (threadIdx.x == lane) n[0] += x[lane];
        __syncwarp();
    }
}
extern "C" __global__ void barriers(const int *x, int *n, int size) {
    for (int t = 0; t < 64; ++t) {
        if (threadIdx.x == t) n[0] += x[t];
        __syncthreads();
    }
}
