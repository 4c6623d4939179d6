// A batch whose systems are interleaved: row i of system k at i * batch + k. Neighbouring threads have
// neighbouring systems, so that a warp reads whole lines. What a system holds outside of itself (a of
// its first row, c of its last one) is never used.
#include "tridiagonal.cuh"

// Rows first..first+count-1 of one system.
struct Part {
    long long first, system, batch;
    int count;

    // Part `number` of `parts` per system; the last one takes what is left over.
    __device__ __forceinline__ Part(long long number, long long parts, long long n, long long batch_, int m)
        : first(number / batch_ * m),
          system(number % batch_),
          batch(batch_),
          count(number / batch_ == parts - 1 ? static_cast<int>(n - first) : m) {}

    __device__ __forceinline__ long long at(int k) const { return (first + k) * batch + system; }
};

__device__ __forceinline__ long long thread_number() {
    return blockIdx.x * static_cast<long long>(blockDim.x) + threadIdx.x;
}

// Stage 1: two rows of the interface system per part, interleaved like the system.
extern "C" __global__ void KERNEL(reduce_interleaved)(
    const REAL *a, const REAL *b, const REAL *c, const REAL *d,
    REAL *up_a, REAL *up_b, REAL *up_c, REAL *up_d,
    long long n, long long batch, int m) {
    const long long parts = n / m, number = thread_number();
    if (number >= parts * batch) return;
    const System<REAL> system{a, b, c, d};
    const Part part(number, parts, n, batch, m);
    Row<REAL> up, down;
    reduce<REAL>([&](int k) { return system.row(part.at(k)); }, part.count, up, down);
    const long long first = 2 * (number / batch) * batch + part.system, last = first + batch;
    up_a[first] = up.a;
    up_b[first] = up.b;
    up_c[first] = up.c;
    up_d[first] = up.d;
    up_a[last] = down.a;
    up_b[last] = down.b;
    up_c[last] = down.c;
    up_d[last] = down.d;
}

// Stage 3. `kept_c` has a word per row; x may be d.
extern "C" __global__ void KERNEL(substitute_interleaved)(
    const REAL *a, const REAL *b, const REAL *c, const REAL *d,
    const REAL *interface_x, REAL *x, REAL *kept_c,
    long long n, long long batch, int m) {
    const long long parts = n / m, number = thread_number();
    if (number >= parts * batch) return;
    const System<REAL> system{a, b, c, d};
    const Part part(number, parts, n, batch, m);
    const long long first = 2 * (number / batch) * batch + part.system;
    substitute<REAL>(
        [&](int k) { return system.row(part.at(k)); },
        part.count, interface_x[first], interface_x[first + batch],
        [&](int k, REAL c_kept, REAL d_kept) {
            kept_c[part.at(k)] = c_kept;
            x[part.at(k)] = d_kept;
        },
        [&](int k) { return kept_c[part.at(k)]; },
        [&](int k) { return x[part.at(k)]; },
        [&](int k, REAL value) { x[part.at(k)] = value; });
}

// The Thomas algorithm with one thread per system. Rows are loaded a few ahead of the arithmetic,
// before the stores that the compiler may not move a load across.
extern "C" __global__ void KERNEL(thomas_interleaved)(
    const REAL *a, const REAL *b, const REAL *c, const REAL *d, REAL *x, REAL *kept_c,
    long long n, long long batch) {
    constexpr int AHEAD = 4;
    const long long number = thread_number();
    if (number >= batch) return;
    const System<REAL> system{a, b, c, d};
    REAL c_before = 0, d_before = 0;
    for (long long from = 0; from < n; from += AHEAD) {
        Row<REAL> rows[AHEAD];
#pragma unroll
        for (int k = 0; k < AHEAD; ++k)
            if (from + k < n) rows[k] = system.row((from + k) * batch + number);
#pragma unroll
        for (int k = 0; k < AHEAD; ++k)
            if (from + k < n) {
                const REAL left = from + k ? rows[k].a : REAL(0);
                const REAL inverse = REAL(1) / (rows[k].b - left * c_before);
                c_before = rows[k].c * inverse;
                d_before = (rows[k].d - left * d_before) * inverse;
                kept_c[(from + k) * batch + number] = c_before;
                x[(from + k) * batch + number] = d_before;
            }
    }
    REAL right = d_before;
    for (long long i = n - 2; i >= 0; --i) {
        const long long at = i * batch + number;
        right = x[at] - kept_c[at] * right;
        x[at] = right;
    }
}
