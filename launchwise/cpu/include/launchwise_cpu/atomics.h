// Atomic operations: one thread runs at a time, so each is a plain read and write.
#pragma once
#include <ctime>

#define LAUNCHWISE_UNWATCHED __attribute__((no_sanitize("thread")))

namespace launchwise_cpu {

// Whether a kernel does what may take a lock.
LAUNCHWISE_HIDDEN extern bool may_lock;

template <typename T, typename New>
LAUNCHWISE_UNWATCHED static inline T replaced(T *at, New value) {
    const T old = *at;
    *at = static_cast<T>(value);
    return old;
}

}  // namespace launchwise_cpu

#define LAUNCHWISE_ATOMIC(name, expression)                                             \
    template <typename T, typename U>                                                   \
    LAUNCHWISE_UNWATCHED static inline T name(T *at, U given) {                                           \
        const T old = *at, value = static_cast<T>(given);                               \
        return launchwise_cpu::replaced(at, expression);                                \
    }                                                                                   \
    template <typename T, typename U>                                                   \
    static inline T name##_block(T *at, U given) { return name(at, given); }            \
    template <typename T, typename U>                                                   \
    static inline T name##_system(T *at, U given) { return name(at, given); }
LAUNCHWISE_ATOMIC(atomicAdd, old + value)
LAUNCHWISE_ATOMIC(atomicSub, old - value)
LAUNCHWISE_ATOMIC(atomicExch, (static_cast<void>(old), launchwise_cpu::may_lock = true, value))
LAUNCHWISE_ATOMIC(atomicMin, value < old ? value : old)
LAUNCHWISE_ATOMIC(atomicMax, old < value ? value : old)
LAUNCHWISE_ATOMIC(atomicInc, old >= value ? 0 : old + 1)
LAUNCHWISE_ATOMIC(atomicDec, old == 0 || old > value ? value : old - 1)
LAUNCHWISE_ATOMIC(atomicAnd, old & value)
LAUNCHWISE_ATOMIC(atomicOr, old | value)
LAUNCHWISE_ATOMIC(atomicXor, old ^ value)
#undef LAUNCHWISE_ATOMIC

template <typename T, typename Compare, typename New>
LAUNCHWISE_UNWATCHED static inline T atomicCAS(T *at, Compare compare, New value) {
    launchwise_cpu::may_lock = true;
    return launchwise_cpu::replaced(at, *at == static_cast<T>(compare) ? static_cast<T>(value) : *at);
}
template <typename T, typename Compare, typename New>
static inline T atomicCAS_block(T *at, Compare compare, New value) {
    return atomicCAS(at, compare, value);
}
template <typename T, typename Compare, typename New>
static inline T atomicCAS_system(T *at, Compare compare, New value) {
    return atomicCAS(at, compare, value);
}

static inline void __threadfence() {}
static inline void __threadfence_block() {}
static inline void __threadfence_system() {}
static inline void __nanosleep(unsigned) {}

// clock() is the C library's.
static inline long long clock64() {
#if defined(__x86_64__)
    return static_cast<long long>(__builtin_ia32_rdtsc());
#else
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000ll + now.tv_nsec;
#endif
}
