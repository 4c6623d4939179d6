// 7-point stencil on a cube of n^3 cells; the borders keep their values.
constexpr int X = 8, Y = 4, Z = 4;

__device__ __forceinline__ int at(int x, int y, int z, int n) { return (z * n + y) * n + x; }

extern "C" __global__ void stencil(double *out, const double *in, int n) {
    extern __shared__ __align__(16) double tile[];
    auto cell = [&](int x, int y, int z) -> double & { return tile[((z + 1) * (Y + 2) + y + 1) * (X + 2) + x + 1]; };
    const int tx = threadIdx.x, ty = threadIdx.y, tz = threadIdx.z;
    const int x = blockIdx.x * X + tx, y = blockIdx.y * Y + ty, z = blockIdx.z * Z + tz;
    const bool inside = x < n && y < n && z < n;
    if (inside) {
        cell(tx, ty, tz) = in[at(x, y, z, n)];
        if (tx == 0 && x > 0) cell(-1, ty, tz) = in[at(x - 1, y, z, n)];
        if (tx == X - 1 && x < n - 1) cell(X, ty, tz) = in[at(x + 1, y, z, n)];
        if (ty == 0 && y > 0) cell(tx, -1, tz) = in[at(x, y - 1, z, n)];
        if (ty == Y - 1 && y < n - 1) cell(tx, Y, tz) = in[at(x, y + 1, z, n)];
        if (tz == 0 && z > 0) cell(tx, ty, -1) = in[at(x, y, z - 1, n)];
        if (tz == Z - 1 && z < n - 1) cell(tx, ty, Z) = in[at(x, y, z + 1, n)];
    }
    __syncthreads();
    if (!inside) return;
    const bool border = x == 0 || y == 0 || z == 0 || x == n - 1 || y == n - 1 || z == n - 1;
    out[at(x, y, z, n)] = border ? cell(tx, ty, tz)
                                 : cell(tx - 1, ty, tz) + cell(tx + 1, ty, tz) + cell(tx, ty - 1, tz) +
                                       cell(tx, ty + 1, tz) + cell(tx, ty, tz - 1) + cell(tx, ty, tz + 1) -
                                       6 * cell(tx, ty, tz);
}
