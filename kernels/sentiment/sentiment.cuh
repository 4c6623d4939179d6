// What all variants share: the widths of the network, and where the embedding of a token comes from.
#pragma once

#include "common/dynamic_shared.cuh"

constexpr int EMBEDDING = 300, FIRST = 150, SECOND = 64, THIRD = 32, CLASSES = 2;

// Columns of the first layer as blocks see them: those that are not there have weights of 0.
constexpr int FIRST_PADDED = 160;

#ifdef __CUDACC__
#include <cuda_fp16.h>

__device__ __forceinline__ float from_half(unsigned short bits) {
    return __half2float(__ushort_as_half(bits));
}
#else
inline float from_half(unsigned short bits) {
    const int exponent = bits >> 10 & 31, fraction = bits & 1023;
    const float size = exponent ? std::ldexp(1.0f + fraction / 1024.0f, exponent - 15)
                                : std::ldexp(fraction / 1024.0f, -14);
    return bits >> 15 ? -size : size;
}
#endif

// Four neighbours of an embedding, on their way.
struct alignas(16) FourFloats {
    float v[4];

    __device__ __forceinline__ void give(float (&x)[4]) const {
        for (int j = 0; j < 4; ++j) x[j] = v[j];
    }
};

struct alignas(8) FourHalves {
    unsigned short v[4];

    __device__ __forceinline__ void give(float (&x)[4]) const {
        for (int j = 0; j < 4; ++j) x[j] = from_half(v[j]);
    }
};

// Words of reviews; the table of embeddings holds float16.
struct Tokens {
    // Ten bits behind the point are all that a float16 has: tf32 holds it as it is.
    static constexpr bool TEN_BITS = true;
    using Four = FourHalves;
    using Place = int;
    const unsigned short *words, *table;

    __device__ __forceinline__ Tokens(const void *given, const unsigned short *table_)
        : words(static_cast<const unsigned short *>(given)), table(table_) {}

    __device__ __forceinline__ float at(long long row, int k) const {
        return from_half(table[place(row) + k]);
    }

    // Where the embedding of a row begins, and four of its elements from there; k % 4 == 0.
    __device__ __forceinline__ Place place(long long row) const { return words[row] * EMBEDDING; }
    __device__ __forceinline__ Four four(Place place, int k) const {
        return *reinterpret_cast<const Four *>(table + place + k);
    }

    // What will soon be asked for, but is not in the caches.
    __device__ __forceinline__ const void *begin_of(long long row) const { return words + row; }
    __device__ __forceinline__ const void *soon(Place, int) const { return nullptr; }
};

// Embeddings that somebody looked up before.
struct Embedded {
    static constexpr bool TEN_BITS = false;
    // Elements from what is fetched to what is asked for meanwhile.
    static constexpr int SOON = 64;
    using Four = FourFloats;
    using Place = long long;
    const float *x;

    __device__ __forceinline__ Embedded(const void *given, const unsigned short *)
        : x(static_cast<const float *>(given)) {}

    __device__ __forceinline__ float at(long long row, int k) const {
        return x[row * EMBEDDING + k];
    }

    __device__ __forceinline__ Place place(long long row) const { return row * EMBEDDING; }
    __device__ __forceinline__ Four four(Place place, int k) const {
        return *reinterpret_cast<const Four *>(x + place + k);
    }

    __device__ __forceinline__ const void *begin_of(long long row) const { return x + place(row); }
    __device__ __forceinline__ const void *soon(Place place, int k) const {
        return k % 32 == 0 && k + SOON < EMBEDDING ? x + place + k + SOON : nullptr;
    }
};

__device__ __forceinline__ float relu(float value) { return value > 0 ? value : 0; }

// The two layers on a whole review, from `pooled` (64 words): a warp's lanes have a hidden unit each,
// which pass through `hidden` (32 words). All threads of the block must come here.
__device__ __forceinline__ void classify(
    const float *pooled, float *hidden, const float *w3, const float *b3, const float *w4,
    const float *b4, float *logits, int lane, bool there) {
    if (there) {
        float sum = b3[lane];
#pragma unroll
        for (int k = 0; k < SECOND; ++k) sum += pooled[k] * w3[k * THIRD + lane];
        hidden[lane] = relu(sum);
    }
    __syncthreads();
    if (there && lane < CLASSES) {
        float sum = b4[lane];
#pragma unroll
        for (int k = 0; k < THIRD; ++k) sum += hidden[k] * w4[k * CLASSES + lane];
        logits[lane] = sum;
    }
}
