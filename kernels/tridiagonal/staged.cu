// One thread a sub-system, its rows in shared memory.
#include "tile.cuh"

extern "C" __global__ void KERNEL(reduce)(
    const REAL *a, const REAL *b, const REAL *c, const REAL *d,
    REAL *up_a, REAL *up_b, REAL *up_c, REAL *up_d,
    long long rows, int m, long long subsystems) {
    DYNAMIC_SHARED(REAL, shared);
    const Tile tile(rows, m, subsystems);
    fetch(tile, a, b, c, d, shared);
    const long long number = blockIdx.x * static_cast<long long>(blockDim.x) + threadIdx.x;
    if (number >= subsystems) return;
    const Own own(tile, shared);
    Row<REAL> up, down;
    reduce<REAL>(own, Share(number, subsystems, rows, m).count, up, down);
    put_interface(up_a, up_b, up_c, up_d, number, up, down);
}

extern "C" __global__ void KERNEL(substitute)(
    const REAL *a, const REAL *b, const REAL *c, const REAL *d,
    const REAL *interface_x, REAL *x,
    long long rows, int m, long long subsystems) {
    DYNAMIC_SHARED(REAL, shared);
    const Tile tile(rows, m, subsystems);
    fetch(tile, a, b, c, d, shared);
    const long long number = blockIdx.x * static_cast<long long>(blockDim.x) + threadIdx.x;
    REAL *kept_c = shared + 2 * tile.words, *kept_d = shared + 3 * tile.words;
    if (number < subsystems) {
        const Own own(tile, shared);
        // What a row leaves takes the place of its own c and d.
        substitute<REAL>(
            own, Share(number, subsystems, rows, m).count,
            interface_x[2 * number], interface_x[2 * number + 1],
            [&](int k, REAL c_kept, REAL d_kept) {
                kept_c[own.at(k)] = c_kept;
                kept_d[own.at(k)] = d_kept;
            },
            [&](int k) { return kept_c[own.at(k)]; },
            [&](int k) { return kept_d[own.at(k)]; },
            [&](int k, REAL value) { kept_d[own.at(k)] = value; });
    }
    __syncthreads();
    put_back(tile, kept_d, x);
}
