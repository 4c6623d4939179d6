// One block solves a small system. Each thread first reduces a sub-system of m rows to two equations
// (m = 0: none does); what is left is solved in shared memory by parallel cyclic reduction.
#include "separate.cuh"

extern "C" __global__ void KERNEL(finish)(
    const REAL *a, const REAL *b, const REAL *c, const REAL *d, REAL *x, int rows, int m) {
    DYNAMIC_SHARED(REAL, shared);
    const System<REAL> system{a, b, c, d};
    const int number = threadIdx.x, threads = blockDim.x;
    const int subsystems = m ? rows / m : 0, inner = m ? 2 * subsystems : rows;
    InShared now{shared, inner, inner};
    const InShared next{shared + 3 * inner, inner, inner};
    const Share share(number, subsystems, rows, m);
    const auto own = [&](int k) { return system.row(share.first + k); };
    if (number < subsystems) {
        Row<REAL> up, down;
        reduce<REAL>(own, share.count, up, down);
        now.put(2 * number, UnitRow::of(up));
        now.put(2 * number + 1, UnitRow::of(down));
    }
    if (!m)
        for (int i = number; i < rows; i += threads) now.put(i, UnitRow::of(system.row(i)));
    __syncthreads();
    // What couples the ends to rows that are not there is whatever somebody left in memory.
    if (number == 0) now.words[0] = now.words[2 * inner - 1] = 0;
    __syncthreads();
    const InShared done = separate(now, next);
    if (!m)
        for (int i = number; i < rows; i += threads) x[i] = done.get(i).d;
    if (!m) return;
    REAL first = 0, last = 0;
    if (number < subsystems) {
        first = done.get(2 * number).d;
        last = done.get(2 * number + 1).d;
    }
    // From here on shared memory holds what the forward sweeps leave.
    __syncthreads();
    if (number >= subsystems) return;
    const auto kept = [&](int k) -> REAL & {
        return shared[k < m ? k * threads + number : m * threads + k - m];
    };
    substitute<REAL>(
        own, share.count, first, last,
        [&](int k, REAL c_kept, REAL d_kept) {
            kept(k) = c_kept;
            x[share.first + k] = d_kept;
        },
        [&](int k) { return kept(k); },
        [&](int k) { return x[share.first + k]; },
        [&](int k, REAL value) { x[share.first + k] = value; });
}
