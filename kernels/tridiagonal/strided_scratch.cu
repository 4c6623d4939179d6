// As strided, but the forward sweep of stage 3 keeps its coefficients in a scratch array in global
// memory instead of shared memory: shared memory no longer limits m.
__device__ __forceinline__ long long place(long long number, long long, int m, int k) {
    return number * m + k;
}

#include "reduce_by_thread.cuh"

// Word of the scratch array for row k of sub-system `number`. Row k of all sub-systems is contiguous:
// neighbouring threads access neighbouring words. The rows that the last sub-system has beyond m follow
// at the end, so the array has one word per row of the system.
__device__ __forceinline__ long long scratch_at(long long number, long long subsystems, int m, int k) {
    return k < m ? k * subsystems + number : m * subsystems + (k - m);
}

extern "C" __global__ void KERNEL(substitute)(
    const REAL *a, const REAL *b, const REAL *c, const REAL *d,
    const REAL *interface_x, REAL *x, REAL *scratch,
    long long rows, int m, long long subsystems) {
    const long long number = blockIdx.x * static_cast<long long>(blockDim.x) + threadIdx.x;
    if (number >= subsystems) return;
    const System<REAL> system{a, b, c, d};
    const Share share(number, subsystems, rows, m);
    const auto at = [&](int k) { return place(number, subsystems, m, k); };
    const auto kept = [&](int k) -> REAL & { return scratch[scratch_at(number, subsystems, m, k)]; };
    substitute<REAL>(
        [&](int k) { return system.row(at(k)); },
        share.count, interface_x[2 * number], interface_x[2 * number + 1],
        [&](int k, REAL c_kept, REAL d_kept) {
            kept(k) = c_kept;
            x[at(k)] = d_kept;
        },
        [&](int k) { return kept(k); },
        [&](int k) { return x[at(k)]; },
        [&](int k, REAL value) { x[at(k)] = value; });
}
