#define IDX(k) ((k) < 0 ? (k) + npts : (k) >= npts ? (k) - npts : (k))

__global__ void heat_step(const float *u, float *unew, int npts, float r)
{
    const int k = blockIdx.x * NT + threadIdx.x;
    if (k < npts)
        unew[k] = u[k] + r * (u[IDX(k - 1)] - 2.0f * u[k] + u[IDX(k + 1)]);
}
