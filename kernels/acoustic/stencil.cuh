// What the acoustic variants share. Every variant is built with these names defined:
//   REAL         float or double
//   INDEX        int, or long long where an array has 2^31 elements or more
//   RADIUS       half the spatial order
//   WEIGHTS      {c0, c1, ..., c_RADIUS}: c0 is the sum over the three axes, h is in `scale`
//   ROW_PADDING  1 when rows are padded to a multiple of 128 bytes
//   KERNEL(name) the kernel's name, unique to this build
#pragma once

// Elements from one row to the next.
template <typename Real, int row_padding, typename Index>
__device__ __forceinline__ Index row_pitch(Index n) {
    if (!row_padding) return n;
    constexpr Index line = 128 / sizeof(Real);
    return (n + line - 1) / line * line;
}

// One leapfrog step at the point `at`: 2 u - u_old + velocity^2 scale (h^2 laplacian of u),
// with scale = (dt / h)^2.
template <int radius, typename Real, typename Index>
__device__ __forceinline__ void step(Real *__restrict__ u_new, const Real *__restrict__ u,
                                     const Real *__restrict__ u_old,
                                     const Real *__restrict__ velocity, Index at, Index row,
                                     Index plane, Real scale, const Real (&weight)[radius + 1]) {
    const Real centre = u[at];
    Real laplacian = weight[0] * centre;
#pragma unroll
    for (int k = 1; k <= radius; ++k) {
        // The six neighbours at distance k share a weight: one multiplication serves them all.
        const Real shell = (u[at - k] + u[at + k]) + (u[at - k * row] + u[at + k * row]) +
                           (u[at - k * plane] + u[at + k * plane]);
        laplacian += weight[k] * shell;
    }
    const Real speed = velocity[at];
    u_new[at] = Real(2) * centre - u_old[at] + speed * speed * scale * laplacian;
}
