// What the host passes on, and how a launch ends with a reason.
#pragma once
#include <cstddef>

namespace launchwise_cpu {

// A launch, as the host passes it on.
struct Request {
    unsigned grid[3], block[3], shared_bytes;
    // 0: from the first thread and block to the last; 1: from the last to the first; else the seed of a
    // shuffled order.
    unsigned order;
    unsigned char poison;  // of shared memory that the block has not written
    char *stacks;
    char *reason;  // why the launch failed
    unsigned reason_bytes;
};

// Where a kernel calls something.
struct Place {
    const char *file;
    int line;
    const char *function;
};

// Ends the launch, from whichever thread calls it.
[[noreturn]] LAUNCHWISE_HIDDEN __attribute__((format(printf, 1, 2))) void fail(const char *format, ...);

}  // namespace launchwise_cpu

static inline void __trap() { launchwise_cpu::fail("__trap() is called"); }
