// Stage 1 with one thread per sub-system, straight from global memory. `place` gives the position of
// row k of a sub-system. Included by the layouts, each in its own namespace.
extern "C" __global__ void KERNEL(reduce)(
    const REAL *a, const REAL *b, const REAL *c, const REAL *d,
    REAL *up_a, REAL *up_b, REAL *up_c, REAL *up_d,
    long long rows, int m, long long subsystems) {
    const long long number = blockIdx.x * static_cast<long long>(blockDim.x) + threadIdx.x;
    if (number >= subsystems) return;
    const System<REAL> system{a, b, c, d};
    const Share share(number, subsystems, rows, m);
    Row<REAL> up, down;
    reduce<REAL>([&](int k) { return system.row(place(number, subsystems, m, k)); },
                 share.count, up, down);
    put_interface(up_a, up_b, up_c, up_d, number, up, down);
}
