// Sums over the tokens of a case. Tokens are worked on ROWS at a time, and such a part may be of several
// cases; each (part, case) has 64 sums of its own, so that they are added up in the same order every
// time. Included in the namespaces of those who use it.

// Cases that ROWS tokens may touch.
__device__ __forceinline__ int most_cases(int tokens) { return ROWS / tokens + 2; }

// Where the sums of the n-th case that a part touches begin.
__device__ __forceinline__ long long place_of_sums(long long part, int n, int tokens) {
    return (part * most_cases(tokens) + n) * SECOND;
}

__device__ __forceinline__ long long first_part(int number, int tokens) {
    return static_cast<long long>(number) * tokens / ROWS;
}

__device__ __forceinline__ long long last_part(int number, int tokens) {
    return (static_cast<long long>(number + 1) * tokens - 1) / ROWS;
}

// The sum of a column over all parts of a case. `get(place)` reads a sum.
template <typename Get>
__device__ __forceinline__ float sum_of_parts(int number, int tokens, int column, Get get) {
    const long long first = first_part(number, tokens), last = last_part(number, tokens);
    // The case may be a later one of the first part; all others begin within it.
    const int n = static_cast<int>(number - first * ROWS / tokens);
    float sum = get(place_of_sums(first, n, tokens) + column);
#pragma unroll 8
    for (long long part = first + 1; part <= last; ++part)
        sum += get(place_of_sums(part, 0, tokens) + column);
    return sum;
}
