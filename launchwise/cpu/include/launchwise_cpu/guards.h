// What ends a launch that touches memory it must not: signals, and a fence behind shared memory.
// A part of runtime.cpp, which defines request, runner and fail() before.
#pragma once
#include <csignal>
#include <cstring>
#include <pthread.h>
#include <vector>

namespace launchwise_cpu {

static const int SIGNALS[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL};
static struct sigaction before[4];
static stack_t stack_before;
static char signal_stack[32 << 10];

static void on_signal(int number, siginfo_t *info, void *) {
    if (!pthread_equal(pthread_self(), runner)) {
        // Not the kernel: whoever handled it before does so when it is raised again.
        for (int i = 0; i < 4; ++i)
            if (SIGNALS[i] == number) sigaction(number, &before[i], nullptr);
        return;
    }
    if (number == SIGFPE) fail("divides an integer by zero");
    if (number == SIGILL) fail("executes an illegal instruction");
    const char *at = static_cast<const char *>(info->si_addr);
    const char *first = request->stacks;
    if (first && at >= first && at < first + MOST_THREADS * STACK_BYTES)
        fail("a thread needs more than %zu KiB of local memory", LOCAL_BYTES >> 10);
    // %p would write a null pointer as (nil).
    const auto address = reinterpret_cast<unsigned long long>(info->si_addr);
    fail("accesses memory at 0x%llx, where no buffer lies", address);
}

static inline void catch_signals() {
    runner = pthread_self();
    stack_t own = {};
    own.ss_sp = signal_stack;
    own.ss_size = sizeof(signal_stack);
    sigaltstack(&own, &stack_before);
    struct sigaction action = {};
    action.sa_sigaction = on_signal;
    // The handler never returns: its signal must not stay blocked.
    action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
    for (int i = 0; i < 4; ++i) sigaction(SIGNALS[i], &action, &before[i]);
}

static inline void release_signals() {
    for (int i = 0; i < 4; ++i) sigaction(SIGNALS[i], &before[i], nullptr);
    sigaltstack(&stack_before, nullptr);
}

alignas(128) unsigned char dynamic_shared[MOST_SHARED + FENCE_BYTES];

struct SharedArray {
    const char *name;
    unsigned char *at;
    size_t bytes;
};

// A function, because declarations outside of functions call add_shared while the library is loaded.
static std::vector<SharedArray> &shared_arrays() {
    static std::vector<SharedArray> arrays;
    return arrays;
}

// Where poison is NaN, fences hold another NaN of each floating-point type, and large integers;
// else large numbers: a maximum of NaN and a number is the number.
static unsigned char fence[FENCE_BYTES + 1];

static const unsigned char *fence_at(const unsigned char *at) {
    return fence + reinterpret_cast<uintptr_t>(at) % 2;
}

static void raise_fence(const SharedArray &array) {
    for (unsigned char *at : {array.at - FENCE_BYTES, array.at + array.bytes})
        std::memcpy(at, fence_at(at), FENCE_BYTES);
}

bool add_shared(const char *name, void *at, size_t bytes) {
    shared_arrays().push_back({name, static_cast<unsigned char *>(at), bytes});
    std::memset(at, request ? request->poison : 0xFF, bytes);
    if (request) raise_fence(shared_arrays().back());
    return true;
}

static void poison_shared() {
    std::memset(dynamic_shared, request->poison, request->shared_bytes);
    for (const SharedArray &array : shared_arrays()) std::memset(array.at, request->poison, array.bytes);
}

static void raise_fences() {
    for (unsigned i = 0; i <= FENCE_BYTES; ++i)
        fence[i] = i % 2 ? request->poison & 0x7F : request->poison ^ 1;
    unsigned char *end = dynamic_shared + request->shared_bytes;
    std::memcpy(end, fence_at(end), FENCE_BYTES);
    for (const SharedArray &array : shared_arrays()) raise_fence(array);
}

static void check_fences() {
    const unsigned char *end = dynamic_shared + request->shared_bytes;
    if (std::memcmp(end, fence_at(end), FENCE_BYTES))
        fail("writes beyond the %u bytes of dynamic shared memory of its launch",
             request->shared_bytes);
    for (const SharedArray &array : shared_arrays())
        for (const unsigned char *at : {array.at - FENCE_BYTES, array.at + array.bytes})
            if (std::memcmp(at, fence_at(at), FENCE_BYTES))
                fail("writes beyond the %s of the shared array %s", at < array.at ? "start" : "end",
                     array.name);
}

}  // namespace launchwise_cpu
