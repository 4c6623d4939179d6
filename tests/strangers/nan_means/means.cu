// Four readings per station. Invalid ones have valid == 0.
__global__ void nanmean(const float *reading, const signed char *valid, const float *bias,
                        const int *rank, float *mean, int stations) {
    int k = blockIdx.x * blockDim.x + threadIdx.x;
    if (k >= stations) return;
    int s = rank[k];
    float sum = 0, n = 0;
    for (int j = 0; j < 4; j++) {
        if (valid[4 * s + j]) {
            sum += reading[4 * s + j];
            n += 1;
        }
    }
    mean[k] = sum / n + bias[s];
}
