// What threads of a block do together. runtime.cpp defines it.
#pragma once
#include "failures.h"
#include <cstdint>

namespace launchwise_cpu {

// Whether threads wait for each other. BY_WARP: warps may wait for the block at different lines, as the
// hardware counts them; CUDA C++ does not allow that in one barrier.
enum class Waits : unsigned char { NEVER, BY_BLOCK, BY_WARP };

enum class Kind : unsigned char { SYNC, SHUFFLE, VOTE, MATCH, FOLD, ACTIVE };

using Fold = uint64_t (*)(uint64_t, uint64_t);

// What a lane brings to an operation of its warp, and takes from it.
struct Exchange {
    Kind kind;
    unsigned mask;
    Place place;
    uint64_t value;  // bits
    unsigned source;  // lane whose value it takes
    Fold fold;
    uint64_t result;
    unsigned lanes;  // that took part
};

// Linear number of the thread that runs: x + blockDim.x * (y + blockDim.y * z).
LAUNCHWISE_HIDDEN extern unsigned current;

// Waits for all threads of the block that have not ended; how many of them voted.
LAUNCHWISE_HIDDEN unsigned block_barrier(Place place, bool vote);

// How many threads came to the barrier that the thread left last.
LAUNCHWISE_HIDDEN extern unsigned barrier_threads;

// Waits for the lanes of the mask that have not ended, and gives back what the operation did.
LAUNCHWISE_HIDDEN const Exchange &exchange(const Exchange &given);

// Runs all blocks of a launch: `kernel()` once per thread. 1 if it failed.
LAUNCHWISE_HIDDEN int run_launch(const Request &given, void (*kernel)(), Waits waits);

LAUNCHWISE_HIDDEN char *make_stacks();

}  // namespace launchwise_cpu
