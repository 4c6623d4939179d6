// What all variants share: the widths of the network, and where the embedding of a token comes from.
#pragma once

#ifndef DYNAMIC_SHARED
#define DYNAMIC_SHARED(type, name)                                    \
    extern __shared__ __align__(16) unsigned char name##_bytes[];     \
    type *name = reinterpret_cast<type *>(name##_bytes)
#endif

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

// Words of reviews; the table of embeddings holds float16.
struct Tokens {
    const unsigned short *words, *table;

    __device__ __forceinline__ Tokens(const void *given, const unsigned short *table_)
        : words(static_cast<const unsigned short *>(given)), table(table_) {}

    __device__ __forceinline__ float at(long long row, int k) const {
        return from_half(table[static_cast<long long>(words[row]) * EMBEDDING + k]);
    }
};

// Embeddings that somebody looked up before.
struct Embedded {
    const float *x;

    __device__ __forceinline__ Embedded(const void *given, const unsigned short *)
        : x(static_cast<const float *>(given)) {}

    __device__ __forceinline__ float at(long long row, int k) const {
        return x[row * EMBEDDING + k];
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
        for (int k = 0; k < SECOND; ++k) sum += pooled[k] * w3[k * THIRD + lane];
        hidden[lane] = relu(sum);
    }
    __syncthreads();
    if (there && lane < CLASSES) {
        float sum = b4[lane];
        for (int k = 0; k < THIRD; ++k) sum += hidden[k] * w4[k * CLASSES + lane];
        logits[lane] = sum;
    }
}
