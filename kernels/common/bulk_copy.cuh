// Copies by the copy engine of an SM (sm_90 and newer): one thread asks for a box of an array, and a
// barrier in shared memory counts the bytes that have come. Older architectures compile this and stop
// at the first use: a constraint of the variant keeps them from it.
#pragma once

namespace common {

// Where an array lies and which boxes of it are copied, made by the driver on the host
// (cuTensorMapEncodeTiled).
struct alignas(64) TensorMap {
    unsigned long long words[16];
};

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
__device__ __forceinline__ unsigned shared_address(const void *at) {
    return static_cast<unsigned>(__cvta_generic_to_shared(at));
}

// A barrier in shared memory that turns over when `arrivals` threads have arrived and every byte that
// is expected has come.
struct BulkBarrier {
    unsigned long long state;

    // Called by one thread, before the block's first barrier.
    __device__ __forceinline__ void begin(int arrivals) {
        asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(&state)),
                     "r"(arrivals));
    }

    __device__ __forceinline__ void arrive() {
        asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(&state))
                     : "memory");
    }

    // Arrives, and adds `bytes` to what must come before the barrier turns over.
    __device__ __forceinline__ void arrive_and_expect(unsigned bytes) {
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(
                         shared_address(&state)),
                     "r"(bytes)
                     : "memory");
    }

    // Waits for the turn-over whose number, counted from 0, has the parity `parity`.
    __device__ __forceinline__ void wait(int parity) {
        asm volatile(
            "{\n"
            ".reg .pred done;\n"
            "again:\n"
            "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
            "@!done bra again;\n"
            "}\n" ::"r"(shared_address(&state)),
            "r"(parity)
            : "memory");
    }
};

// Makes barriers that were begun visible to the copy engine; __syncthreads() follows.
__device__ __forceinline__ void publish_barriers() {
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

// Makes a map that lies in device memory visible to the copies that this thread asks for.
__device__ __forceinline__ void acquire_map(const TensorMap *map) {
    asm volatile("fence.proxy.tensormap::generic.acquire.gpu [%0], 128;" ::"l"(map) : "memory");
}

// Copies the box of `map` that begins at (x, y, z) to `to`, which is aligned to 128 bytes; `barrier`
// counts its bytes.
__device__ __forceinline__ void copy_box(void *to, const TensorMap *map, int x, int y, int z,
                                         BulkBarrier &barrier) {
    asm volatile(
        "cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
        "[%0], [%1, {%2, %3, %4}], [%5];" ::"r"(shared_address(to)),
        "l"(map), "r"(x), "r"(y), "r"(z), "r"(shared_address(&barrier.state))
        : "memory");
}
#else
struct BulkBarrier {
    unsigned long long state;

    __device__ void begin(int) { __trap(); }
    __device__ void arrive() { __trap(); }
    __device__ void arrive_and_expect(unsigned) { __trap(); }
    __device__ void wait(int) { __trap(); }
};

__device__ inline void publish_barriers() { __trap(); }
__device__ inline void acquire_map(const TensorMap *) { __trap(); }
__device__ inline void copy_box(void *, const TensorMap *, int, int, int, BulkBarrier &) {
    __trap();
}
#endif

}  // namespace common
