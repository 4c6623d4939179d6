// Shared memory of a block. One block runs at a time, so all blocks use the same bytes, which hold
// poison at the start of each.
#pragma once
#include <cstddef>

namespace launchwise_cpu {

// What a block may have at most (227 KiB), and bytes behind it that must not change.
constexpr unsigned MOST_SHARED = 232448, FENCE_BYTES = 256;
LAUNCHWISE_HIDDEN extern unsigned char dynamic_shared[MOST_SHARED + FENCE_BYTES];

// A __shared__ variable that is not extern; called when a thread first comes to its declaration.
LAUNCHWISE_HIDDEN bool add_shared(void *at, size_t bytes);

}  // namespace launchwise_cpu

#define DYNAMIC_SHARED(type, name) \
    type *name = reinterpret_cast<type *>(launchwise_cpu::dynamic_shared)
