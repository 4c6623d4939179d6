// z = a x + y. Each thread computes ITEMS elements. Neighbouring threads read neighbouring words.
extern "C" __global__ void KERNEL(saxpy)(REAL *z, const REAL *x, const REAL *y, REAL a,
                                         long long n) {
    const long long stride = (long long)gridDim.x * blockDim.x;
    long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    for (int item = 0; item < ITEMS; ++item, i += stride)
        if (i < n) z[i] = a * x[i] + y[i];
}
