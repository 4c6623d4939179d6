// column.cu with a fault for each of seven numbers of points; every other number is right. The tests
// put it in column.cu's place, on a GPU and (where a fault ends a process as noted) on the CPU.
#include "stencil.cuh"

__global__ void column(REAL *output, const REAL *grid, const REAL *source, const REAL *weight,
                       int n, int pitch)
{
    const long long inner = n - 2 * RADIUS;
    const long long own = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    const int x = own % inner, y = own / inner % inner;
    const long long first = own / inner / inner * tz;
    for (long long z = first; z < first + tz && z < inner; ++z)
        output[(z * inner + y) * inner + x] =
            updated<RADIUS>(grid, source, weight, x, y, z, n, pitch);
    if (own != 0) return;
    switch (tz) {
        case 2:  // an address that nobody owns; CPU: SIGSEGV
            output[-(1ll << 40)] = 0;
            break;
        case 3:  // never ends: nobody ever writes this number
            while (*(volatile REAL *)output != REAL(1e30)) {
            }
            break;
        case 4:  // not a number
            output[0] = (REAL)nan("");
            break;
        case 5:  // right, but an input is written, too
            const_cast<REAL *>(grid)[0] += 1;
            break;
        case 6:  // one point is wrong
            output[0] += 1;
            break;
        case 7:  // gives up; CPU: SIGILL
#ifdef __CUDACC__
            __trap();
#else
            __builtin_trap();
#endif
            break;
        case 8:  // a failed assertion; CPU: SIGABRT
#ifdef __CUDACC__
            assert(tz != 8);
#else
            __builtin_abort();
#endif
            break;
    }
}
