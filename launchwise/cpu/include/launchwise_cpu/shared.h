// Shared memory of a block. One block runs at a time, so all blocks use the same bytes, which hold
// poison at the start of each.
#pragma once
#include <cstddef>

namespace launchwise_cpu {

// What a block may have at most (227 KiB), and bytes beside it that must not change: one `float` of
// each thread.
constexpr unsigned MOST_SHARED = 232448, FENCE_BYTES = 4096;
LAUNCHWISE_HIDDEN extern unsigned char dynamic_shared[MOST_SHARED + FENCE_BYTES];

// A __shared__ variable that is not extern.
template <typename Array> struct Fenced {
    unsigned char before[FENCE_BYTES];
    Array array;
    unsigned char after[FENCE_BYTES];
};

// Called when a thread first comes to the declaration of a fenced variable.
LAUNCHWISE_HIDDEN bool add_shared(const char *name, void *at, size_t bytes);

}  // namespace launchwise_cpu

#define DYNAMIC_SHARED(type, name) \
    type *name = reinterpret_cast<type *>(launchwise_cpu::dynamic_shared)
