// What the warps of a grid tell each other, and sums over a warp's lanes. Included once, as a header.
#pragma once
#include "common/warp.cuh"

// The sum over lanes whose numbers differ by FIRST_APART, 2 FIRST_APART, ..., 16: in one order, every
// time. All lanes call it.
template <int FIRST_APART>
__device__ __forceinline__ float sum_of_lanes(float value) {
#pragma unroll
    for (int apart = FIRST_APART; apart < 32; apart *= 2)
        value += common::shuffle_xor(value, apart);
    return value;
}

#ifdef __CUDACC__
// One more has arrived at a counter: how many had before. Whoever sees this sees what the warp wrote
// before. A fence would do as well, but it empties the SM's cache, in which embeddings and weights lie.
__device__ __forceinline__ int arrive(int *at) {
    int before = 0;
    common::sync_warp();
    if (threadIdx.x % 32 == 0)
        asm volatile("atom.add.release.gpu.global.s32 %0, [%1], 1;"
                     : "=r"(before) : "l"(at) : "memory");
    return common::shuffle(before, 0);
}

// From here on, what others had written before they arrived is there.
__device__ __forceinline__ void see_arrived() { __threadfence(); }
// What another SM wrote: not what this one remembers.
__device__ __forceinline__ float published(const float *at) { return __ldcg(at); }

// Memory that will soon be read.
__device__ __forceinline__ void expect(const void *at) {
    asm volatile("prefetch.global.L2 [%0];" ::"l"(at));
}
#else
inline int arrive(int *at) {
    common::sync_warp();
    return common::shuffle(threadIdx.x % 32 == 0 ? (*at)++ : 0, 0);
}

inline void see_arrived() {}
inline float published(const float *at) { return *at; }
inline void expect(const void *) {}
#endif
