// The partition method (Austin, Berndt, Moulton 2004) on one sub-system, whatever its layout.
#pragma once

#include "common/dynamic_shared.cuh"

// Copies that a thread does not wait for until all are on their way (cp.async from sm_80 on).
#ifdef __CUDACC__
#include <cuda_pipeline_primitives.h>

template <typename Real>
__device__ __forceinline__ void copy_async(Real *to, const Real *from) {
    __pipeline_memcpy_async(to, from, sizeof(Real));
}

__device__ __forceinline__ void copies_arrived() {
    __pipeline_commit();
    __pipeline_wait_prior(0);
}

// Stores what nobody reads soon: it need not push anything out of the L2.
template <typename Real>
__device__ __forceinline__ void store_last(Real *to, Real value) {
    __stcs(to, value);
}
#else
template <typename Real>
inline void copy_async(Real *to, const Real *from) {
    *to = *from;
}

inline void copies_arrived() {}

template <typename Real>
inline void store_last(Real *to, Real value) {
    *to = value;
}
#endif

// a x_{i-1} + b x_i + c x_{i+1} = d
template <typename Real>
struct Row {
    Real a, b, c, d;
};

// The four arrays of a system.
template <typename Real>
struct System {
    const Real *a, *b, *c, *d;

    __device__ __forceinline__ Row<Real> row(long long at) const {
        return {a[at], b[at], c[at], d[at]};
    }
};

// Which rows a sub-system has: m each, and what is left over goes to the last.
struct Share {
    long long first;
    int count;

    __device__ __forceinline__ Share(long long number, long long subsystems, long long rows, int m)
        : first(number * m),
          count(number == subsystems - 1 ? static_cast<int>(rows - first) : m) {}
};

// Stage 1: two equations between x_first, x_last and their neighbours outside, in one pass.
// `row(k)` gives row k of the sub-system.
template <typename Real, typename RowOf>
__device__ __forceinline__ void reduce(RowOf row, int count, Row<Real> &up, Row<Real> &down) {
    up = row(0);
    down = row(1);
    for (int k = 2; k < count; ++k) {
        const Row<Real> next = row(k);
        const Real inverse = Real(1) / down.b;
        const Real t = up.c * inverse;
        up.b -= t * down.a;
        up.d -= t * down.d;
        up.c = -t * down.c;
        const Real w = next.a * inverse;
        down.a = -w * down.a;
        down.d = next.d - w * down.d;
        down.b = next.b - w * down.c;
        down.c = next.c;
    }
}

// Stage 3: what lies between x_first and x_last, which are known. `keep(k, c, d)` stores a row of
// the forward sweep, `kept_c(k)` and `kept_d(k)` give it back, `put(k, x)` takes the solution.
template <typename Real, typename RowOf, typename Keep, typename KeptC, typename KeptD, typename Put>
__device__ __forceinline__ void substitute(
    RowOf row, int count, Real x_first, Real x_last, Keep keep, KeptC kept_c, KeptD kept_d, Put put) {
    Real c = 0, d = x_first;
    for (int k = 1; k < count - 1; ++k) {
        const Row<Real> next = row(k);
        const Real inverse = Real(1) / (next.b - next.a * c);
        c = next.c * inverse;
        d = (next.d - next.a * d) * inverse;
        keep(k, c, d);
    }
    Real x = x_last;
    put(count - 1, x);
    for (int k = count - 2; k > 0; --k) {
        x = kept_d(k) - kept_c(k) * x;
        put(k, x);
    }
    put(0, x_first);
}

// Writes the two equations of sub-system `number` as rows of the interface system.
template <typename Real>
__device__ __forceinline__ void put_interface(
    Real *a, Real *b, Real *c, Real *d, long long number, Row<Real> up, Row<Real> down) {
    const long long at = 2 * number;
    a[at] = up.a;
    b[at] = up.b;
    c[at] = up.c;
    d[at] = up.d;
    a[at + 1] = down.a;
    b[at + 1] = down.b;
    c[at + 1] = down.c;
    d[at + 1] = down.d;
}
