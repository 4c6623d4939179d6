__global__ void bitonicStep(unsigned int *keys, unsigned int j, unsigned int k, unsigned int n)
{
    unsigned int i   = threadIdx.x + blockDim.x * blockIdx.x;
    unsigned int ixj = i ^ j;

    /* The thread with the lower index does the work of both. */
    if (ixj > i && i < n) {
        unsigned int a = keys[i], b = keys[ixj];
        if ((i & k) == 0 ? a > b : a < b) {
            keys[i]   = b;
            keys[ixj] = a;
        }
    }
}
