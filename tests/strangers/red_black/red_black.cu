#define AT(i, j) ((j) * nx + (i))

__device__ static void relax(double *phi, const double *rhs, int nx, int ny, int colour)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int j = blockIdx.y * blockDim.y + threadIdx.y;
    if (i == 0 || j == 0 || i >= nx - 1 || j >= ny - 1) return;
    if (((i + j) & 1) != colour) return;
    phi[AT(i, j)] = 0.25 * (phi[AT(i - 1, j)] + phi[AT(i + 1, j)] + phi[AT(i, j - 1)]
                            + phi[AT(i, j + 1)] - rhs[AT(i, j)]);
}

__global__ void relax_red(double *phi, const double *rhs, int nx, int ny) { relax(phi, rhs, nx, ny, 0); }

__global__ void relax_black(double *phi, const double *rhs, int nx, int ny) { relax(phi, rhs, nx, ny, 1); }
