#pragma once

// Source plus weight times the mean of the neighbours of one point of the interior.
template <int radius, typename Real>
__device__ Real updated(const Real *grid, const Real *source, const Real *weight, int x, int y,
                        int z, int n, int pitch)
{
    const int inner = n - 2 * radius;
    const long long row = pitch, plane = row * n;
    const Real *point = grid + (z + radius) * plane + (y + radius) * row + x + radius;
    Real sum = 0;
    for (int step = 1; step <= radius; ++step)
        sum += point[-step] + point[step] + point[-step * row] + point[step * row]
               + point[-step * plane] + point[step * plane];
    const long long own = ((long long)z * inner + y) * inner + x;
    return source[own] + weight[own] * (sum / (6 * radius));
}
