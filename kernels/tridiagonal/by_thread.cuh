// Both stages with one thread a sub-system, straight from global memory. `place` says where row k of
// a sub-system lies; included by the layouts, each in its own namespace.
#include "reduce_by_thread.cuh"

// Words of shared memory: m a thread, in the order of the threads, then the rows left over.
__device__ __forceinline__ int kept_at(int k, int m) {
    return k < m ? k * static_cast<int>(blockDim.x) + static_cast<int>(threadIdx.x)
                 : m * static_cast<int>(blockDim.x) + k - m;
}

extern "C" __global__ void KERNEL(substitute)(
    const REAL *a, const REAL *b, const REAL *c, const REAL *d,
    const REAL *interface_x, REAL *x,
    long long rows, int m, long long subsystems) {
    DYNAMIC_SHARED(REAL, kept);
    const long long number = blockIdx.x * static_cast<long long>(blockDim.x) + threadIdx.x;
    if (number >= subsystems) return;
    const System<REAL> system{a, b, c, d};
    const Share share(number, subsystems, rows, m);
    const auto at = [&](int k) { return place(number, subsystems, m, k); };
    substitute<REAL>(
        [&](int k) { return system.row(at(k)); },
        share.count, interface_x[2 * number], interface_x[2 * number + 1],
        [&](int k, REAL c_kept, REAL d_kept) {
            kept[kept_at(k, m)] = c_kept;
            x[at(k)] = d_kept;
        },
        [&](int k) { return kept[kept_at(k, m)]; },
        [&](int k) { return x[at(k)]; },
        [&](int k, REAL value) { x[at(k)] = value; });
}
