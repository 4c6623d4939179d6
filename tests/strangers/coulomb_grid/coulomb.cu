// Direct Coulomb sum over one slice. SOFT keeps a charge on a grid point finite.
#define SOFT 0.25f

__global__ void coulomb(float *V, const float *atom_x, const float *atom_y, const float *atom_q,
                        int natoms, int gridsize)
{
    const int ix = blockIdx.x * blockDim.x + threadIdx.x;
    const int iy = blockIdx.y * blockDim.y + threadIdx.y;
    float sum = 0.f;

#pragma unroll UNROLL
    for (int a = 0; a < natoms; ++a) {
        const float dx = ix - atom_x[a];
        const float dy = iy - atom_y[a];
#if FAST
        sum += atom_q[a] * rsqrtf(dx * dx + dy * dy + SOFT);
#else
        sum += atom_q[a] / sqrtf(dx * dx + dy * dy + SOFT);
#endif
    }
    if (ix < gridsize && iy < gridsize) V[iy * gridsize + ix] = sum;
}
