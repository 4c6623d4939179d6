// What a caller may ask of a system and its solution, in float64. `step` tells the order of a batch:
// 1 where systems of n rows lie one behind the other, else the number of systems, which are
// interleaved (row i of system k at i * step + k). a of a first row and c of a last one do not count.
#include "common/largest.cuh"

// Where a word stands within its system.
struct Place {
    bool first, last;

    __device__ __forceinline__ Place(long long at, long long n, long long step) {
        const long long row = step == 1 ? at % n : at / step;
        first = row == 0;
        last = row == n - 1;
    }
};

// found: rows with |b| < |a| + |c| or b = 0 (NaN included), the first of them, and ends of systems that
// lie one behind the other and are coupled. Begins as 0, the largest number, 0.
extern "C" __global__ void KERNEL(dominance)(
    const REAL *a, const REAL *b, const REAL *c, long long rows, long long n, long long step,
    unsigned long long *found) {
    const long long width = gridDim.x * static_cast<long long>(blockDim.x);
    unsigned long long weak = 0, coupled = 0, first_weak = ~0ull;
    for (long long at = blockIdx.x * static_cast<long long>(blockDim.x) + threadIdx.x; at < rows; at += width) {
        const Place place(at, n, step);
        const double left = place.first ? 0.0 : fabs(static_cast<double>(a[at]));
        const double right = place.last ? 0.0 : fabs(static_cast<double>(c[at]));
        const double size = fabs(static_cast<double>(b[at]));
        if (!(size >= left + right) || size == 0.0) {
            ++weak;
            if (static_cast<unsigned long long>(at) < first_weak) first_weak = at;
        }
        if (step == 1 && rows > n)
            coupled += (place.first && !(a[at] == REAL(0))) + (place.last && !(c[at] == REAL(0)));
    }
    if (weak) {
        atomicAdd(found, weak);
        atomicMin(found + 1, first_weak);
    }
    if (coupled) atomicAdd(found + 2, coupled);
}

// Rows whose residuals are computed: one piece of 64 neighbours out of `every` such pieces, another one
// for each seed.
struct Sample {
    long long every;
    unsigned int seed;

    __device__ __forceinline__ long long at(long long number) const {
        const long long piece = number / 64;
        unsigned int drawn = static_cast<unsigned int>(piece) * 2654435761u + seed * 2246822519u;
        drawn = (drawn ^ drawn >> 15) * 3266489917u;
        return (piece * every + (drawn >> 8) % static_cast<unsigned int>(every)) * 64 + number % 64;
    }
};

// found, doubles that begin as 0: the largest |d - A x|, sum of a row's |a|, |b| and |c|, |x| and |d|;
// behind them stands the seed of the sample.
extern "C" __global__ void KERNEL(residual)(
    const REAL *a, const REAL *b, const REAL *c, const REAL *d, const REAL *x,
    long long rows, long long n, long long step, long long sampled, int every,
    unsigned long long *found) {
    const long long width = gridDim.x * static_cast<long long>(blockDim.x);
    const Sample sample{every, static_cast<unsigned int>(found[4])};
    double rest = 0, norm = 0, solution = 0, right = 0;
    for (long long i = blockIdx.x * static_cast<long long>(blockDim.x) + threadIdx.x; i < sampled; i += width) {
        const long long at = sample.at(i);
        if (at >= rows) continue;
        const Place place(at, n, step);
        const double own = x[at], below = place.first ? 0.0 : a[at], above = place.last ? 0.0 : c[at];
        double difference = static_cast<double>(d[at]) - static_cast<double>(b[at]) * own;
        if (!place.first) difference -= below * static_cast<double>(x[at - step]);
        if (!place.last) difference -= above * static_cast<double>(x[at + step]);
        rest = common::larger(rest, fabs(difference));
        norm = common::larger(norm, fabs(below) + fabs(static_cast<double>(b[at])) + fabs(above));
        solution = common::larger(solution, fabs(own));
        right = common::larger(right, fabs(static_cast<double>(d[at])));
    }
    common::raise_to_largest(rest, found);
    common::raise_to_largest(norm, found + 1);
    common::raise_to_largest(solution, found + 2);
    common::raise_to_largest(right, found + 3);
}
