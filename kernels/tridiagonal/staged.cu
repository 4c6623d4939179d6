// One thread a sub-system, its rows in shared memory.
#include "tile.cuh"

extern "C" __global__ void KERNEL(reduce)(
    const REAL *a, const REAL *b, const REAL *c, const REAL *d,
    REAL *up_a, REAL *up_b, REAL *up_c, REAL *up_d,
    long long rows, int m, long long subsystems) {
    DYNAMIC_SHARED(REAL, shared);
    const Tile tile(blockIdx.x, rows, m, subsystems);
    fetch(tile, a, b, c, d, shared);
    const Own own(tile, shared, rows, subsystems);
    if (!own.count) return;
    Row<REAL> up, down;
    reduce<REAL>(own, own.count, up, down);
    put_interface(up_a, up_b, up_c, up_d, own.number, up, down);
}

extern "C" __global__ void KERNEL(substitute)(
    const REAL *a, const REAL *b, const REAL *c, const REAL *d,
    const REAL *interface_x, REAL *x,
    long long rows, int m, long long subsystems) {
    DYNAMIC_SHARED(REAL, shared);
    const Tile tile(from_the_end(), rows, m, subsystems);
    fetch(tile, a, b, c, d, shared);
    const Own own(tile, shared, rows, subsystems);
    if (own.count) own.solve(interface_x[2 * own.number], interface_x[2 * own.number + 1]);
    __syncthreads();
    put_back(tile, shared, x);
}
