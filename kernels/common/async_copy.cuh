// Copies from global to shared memory that the thread does not wait for. Before sm_80, and on the CPU,
// they are plain copies: the same results, without the overlap.
#pragma once

namespace common {

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
// Copies `bytes` (4, 8 or 16) from `from` to `to`; both are aligned to as many.
template <int bytes>
__device__ __forceinline__ void copy_async(void *to, const void *from) {
    static_assert(bytes == 4 || bytes == 8 || bytes == 16, "4, 8 or 16 bytes");
    const unsigned target = static_cast<unsigned>(__cvta_generic_to_shared(to));
    // Copies of 16 bytes pass L1 by; smaller ones cannot.
    if (bytes == 16)
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(target), "l"(from));
    else
        asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(target), "l"(from),
                     "n"(bytes));
}

// Ends a group of this thread's copies.
__device__ __forceinline__ void commit_copies() { asm volatile("cp.async.commit_group;"); }

// Waits until at most `pending` of this thread's latest groups are on their way.
template <int pending>
__device__ __forceinline__ void wait_for_copies() {
    asm volatile("cp.async.wait_group %0;" ::"n"(pending) : "memory");
}
#else
template <int bytes>
__device__ __forceinline__ void copy_async(void *to, const void *from) {
    for (int i = 0; i < bytes / 4; ++i)
        static_cast<int *>(to)[i] = static_cast<const int *>(from)[i];
}

__device__ __forceinline__ void commit_copies() {}

template <int pending>
__device__ __forceinline__ void wait_for_copies() {}
#endif

}  // namespace common
