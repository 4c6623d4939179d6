// What the lanes of a warp tell each other. All lanes must come here. Included once, as a header.
#pragma once

#ifdef __CUDACC__
constexpr unsigned ALL_LANES = 0xFFFFFFFFu;

// What lane `lane` has.
template <typename T>
__device__ __forceinline__ T from_lane(T value, int lane) {
    return __shfl_sync(ALL_LANES, value, lane);
}

// The sum over lanes whose numbers differ by FIRST, 2 FIRST, ..., 16: in one order, every time.
template <int FIRST_APART>
__device__ __forceinline__ float sum_of_lanes(float value) {
#pragma unroll
    for (int apart = FIRST_APART; apart < 32; apart *= 2)
        value += __shfl_xor_sync(ALL_LANES, value, apart);
    return value;
}

__device__ __forceinline__ void wait_for_warp() { __syncwarp(); }

// One more has arrived at a counter: how many had before. Whoever sees this sees what the warp wrote
// before. A fence would do as well, but it empties the SM's cache, in which embeddings and weights lie.
__device__ __forceinline__ int arrive(int *at) {
    int before = 0;
    wait_for_warp();
    if (threadIdx.x % 32 == 0)
        asm volatile("atom.add.release.gpu.global.s32 %0, [%1], 1;"
                     : "=r"(before) : "l"(at) : "memory");
    return from_lane(before, 0);
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
// All lanes hand in what they have; then each takes what it needs.
template <typename T>
inline T from_lane(T value, int lane) {
    static T handed[1024];
    handed[threadIdx.x] = value;
    __syncthreads();
    const T found = handed[threadIdx.x / 32 * 32 + lane];
    __syncthreads();
    return found;
}

template <int FIRST_APART>
inline float sum_of_lanes(float value) {
    for (int apart = FIRST_APART; apart < 32; apart *= 2)
        value += from_lane(value, static_cast<int>(threadIdx.x % 32) ^ apart);
    return value;
}

inline void wait_for_warp() { __syncthreads(); }
inline int arrive(int *at) {
    wait_for_warp();
    return from_lane(threadIdx.x % 32 == 0 ? (*at)++ : 0, 0);
}

inline void see_arrived() {}
inline float published(const float *at) { return *at; }
inline void expect(const void *) {}
#endif
