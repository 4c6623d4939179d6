// Each step shifts a row by one place to the left. Its first barrier keeps a value until the left
// neighbour has read it; only threads that run before their left neighbours show that it is missing.
__global__ void shift(int *values, int steps) {
    __shared__ int row[128];
    const int own = threadIdx.x, right = min(own + 1, blockDim.x - 1);
    row[own] = values[own];
    __syncthreads();
    for (int step = 0; step < steps; ++step) {
        const int next = row[right];
        __syncthreads();  // read
        row[own] = next;
        __syncthreads();  // written
    }
    values[own] = row[own];
}
