// Kernels whose every step waits for the one before: time grows by a step's latency, no less.
// Unrolled so far that a jump back to the loop's begin weighs little beside the steps between.

extern "C" __global__ void nothing() {}

// Each address holds the next. Where a run ended is where the next begins: it meets lines that no
// run has met before, as long as there are such.
#define CHASE(NAME, LOAD)                                                                        \
    extern "C" __global__ void NAME(unsigned long long *place, long long steps) {                \
        unsigned long long at = *place;                                                          \
        _Pragma("unroll 32") for (long long step = 0; step < steps; ++step)                      \
            asm volatile(LOAD " %0, [%0];" : "+l"(at));                                          \
        *place = at;                                                                             \
    }
CHASE(chase_l1, "ld.global.u64")
// Past L1, whatever fits there.
CHASE(chase_l2, "ld.global.cg.u64")

#define RING 32
extern "C" __global__ void chase_shared(unsigned *to, long long steps) {
    __shared__ unsigned ring[RING];
    const unsigned first = (unsigned)__cvta_generic_to_shared(ring);
    for (int number = 0; number < RING; ++number)
        ring[number] = first + (number + 1) % RING * sizeof(unsigned);
    unsigned at = first;
#pragma unroll 32
    for (long long step = 0; step < steps; ++step)
        asm volatile("ld.shared.u32 %0, [%0];" : "+r"(at) : : "memory");
    *to = at;
}

template <typename Real> __device__ void multiply_add(Real *to, Real factor, long long steps) {
    Real value = factor;
#pragma unroll 128
    for (long long step = 0; step < steps; ++step)
        value = value * factor + factor;
    *to = value;
}

// The divisor is what waits: nothing of a division can begin before it is there.
template <typename Real> __device__ void divide(Real *to, Real factor, long long steps) {
    Real value = factor * factor;
#pragma unroll 8
    for (long long step = 0; step < steps; ++step)
        value = factor / value;
    *to = value;
}

#define CHAIN(NAME, STEP, REAL)                                                                  \
    extern "C" __global__ void NAME(REAL *to, REAL factor, long long steps) {                    \
        STEP(to, factor, steps);                                                                 \
    }
CHAIN(chain_float32, multiply_add, float)
CHAIN(chain_float64, multiply_add, double)
CHAIN(divide_float32, divide, float)
CHAIN(divide_float64, divide, double)

extern "C" __global__ void wait_for_block(long long steps) {
#pragma unroll 32
    for (long long step = 0; step < steps; ++step)
        __syncthreads();
}
