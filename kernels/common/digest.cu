// Digests of memory that a kernel must leave alone, to tell whether it did: inputs, and the guard
// zones around arrays. One digest per region, which begins as 0.
#include "common/warp.cuh"

// A region of device memory.
struct Region {
    const unsigned char *bytes;
    unsigned long long count;
};

// The finalizer of MurmurHash3 (Appleby 2011): every bit of the word changes half of all.
static __device__ __forceinline__ unsigned long long mixed(unsigned long long word) {
    word = (word ^ (word >> 33)) * 0xFF51AFD7ED558CCDull;
    word = (word ^ (word >> 33)) * 0xC4CEB9FE1A85EC53ull;
    return word ^ (word >> 33);
}

// Adds, for every word of 8 bytes of region blockIdx.y, a hash of the word and its place: a sum does
// not depend on the order of threads. A region that begins inside a word is read byte by byte.
extern "C" __global__ void KERNEL(digest_regions)(const Region *regions,
                                                  unsigned long long *digests) {
    const Region region = regions[blockIdx.y];
    const unsigned long long words = (unsigned long long)region.bytes % 8 ? 0 : region.count / 8;
    const unsigned long long *whole = (const unsigned long long *)region.bytes;
    const unsigned long long step = gridDim.x * (unsigned long long)blockDim.x;
    const unsigned long long first = blockIdx.x * (unsigned long long)blockDim.x + threadIdx.x;
    unsigned long long sum = 0;
    for (unsigned long long i = first; i < words; i += step) {
        sum += mixed(whole[i] ^ mixed(i + 1));
    }
    for (unsigned long long i = 8 * words + first; i < region.count; i += step) {
        sum += mixed(region.bytes[i] ^ mixed(i + 1));
    }
    for (int distance = 16; distance; distance /= 2) {
        sum += common::shuffle_xor(sum, distance);
    }
    if (threadIdx.x % 32 == 0) atomicAdd(&digests[blockIdx.y], sum);
}
