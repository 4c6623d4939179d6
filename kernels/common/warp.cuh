// What the lanes of a warp exchange. All 32 lanes call each function.
#pragma once

namespace common {

#ifdef __CUDACC__
constexpr unsigned ALL_LANES = 0xFFFFFFFFu;

// `value` of lane `lane`.
template <typename T>
__device__ __forceinline__ T shuffle(T value, int lane) {
    return __shfl_sync(ALL_LANES, value, lane);
}

// `value` of the lane whose number differs in the bits of `mask`.
template <typename T>
__device__ __forceinline__ T shuffle_xor(T value, int mask) {
    return __shfl_xor_sync(ALL_LANES, value, mask);
}

// Waits for all lanes; what they wrote before is visible to the warp afterwards.
__device__ __forceinline__ void sync_warp() { __syncwarp(); }
#else
// On the CPU each lane stores its value, then each reads the one it needs.
template <typename T>
inline T shuffle(T value, int lane) {
    static T values[1024];
    values[threadIdx.x] = value;
    __syncthreads();
    const T received = values[threadIdx.x / 32 * 32 + lane];
    __syncthreads();
    return received;
}

template <typename T>
inline T shuffle_xor(T value, int mask) {
    return shuffle(value, static_cast<int>(threadIdx.x % 32) ^ mask);
}

inline void sync_warp() { __syncthreads(); }
#endif

}  // namespace common
