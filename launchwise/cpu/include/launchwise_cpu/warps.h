// Barriers and operations of warps, by CUDA's names. Macros, because a failure names the caller's line.
#pragma once
#include "threads.h"
#include <type_traits>

namespace launchwise_cpu {

template <typename T>
static inline uint64_t to_bits(T value) {
    static_assert(sizeof(T) <= 8 && std::is_trivially_copyable<T>::value, "at most 8 bytes");
    uint64_t bits = 0;
    std::memcpy(&bits, &value, sizeof(T));
    return bits;
}

template <typename T>
static inline T from_bits(uint64_t bits) {
    T value;
    std::memcpy(&value, &bits, sizeof(T));
    return value;
}

static inline void check_width(const Place &place, unsigned width) {
    if (width == 0 || width > 32 || width & (width - 1))
        fail("%s:%d: %s() with width %u, which is no power of 2 up to 32", place.file, place.line,
             place.function, width);
}

template <typename T>
static inline T take(Place place, unsigned mask, T value, unsigned source) {
    return from_bits<T>(
        exchange({Kind::SHUFFLE, mask, place, to_bits(value), source, nullptr, 0, 0}).result);
}

template <typename T>
static inline T shuffle(Place place, unsigned mask, T value, int source, unsigned width = 32) {
    check_width(place, width);
    const unsigned lane = current % 32;
    return take(place, mask, value, (lane & ~(width - 1)) | (static_cast<unsigned>(source) & (width - 1)));
}

template <typename T>
static inline T shuffle_up(Place place, unsigned mask, T value, unsigned delta, unsigned width = 32) {
    check_width(place, width);
    const unsigned lane = current % 32, within = lane & (width - 1);
    return take(place, mask, value, delta <= within ? lane - delta : lane);
}

template <typename T>
static inline T shuffle_down(Place place, unsigned mask, T value, unsigned delta, unsigned width = 32) {
    check_width(place, width);
    const unsigned lane = current % 32, within = lane & (width - 1);
    return take(place, mask, value, delta < width - within ? lane + delta : lane);
}

template <typename T>
static inline T shuffle_xor(Place place, unsigned mask, T value, int bits, unsigned width = 32) {
    check_width(place, width);
    const unsigned lane = current % 32, source = lane ^ static_cast<unsigned>(bits);
    return take(place, mask, value, source > (lane | (width - 1)) ? lane : source);
}

static inline bool block_all(Place place, bool value) {
    const unsigned votes = block_barrier(place, value);
    return votes == barrier_threads;
}

static inline const Exchange &vote(Place place, unsigned mask, bool value) {
    return exchange({Kind::VOTE, mask, place, value, 0, nullptr, 0, 0});
}
static inline unsigned ballot(Place place, unsigned mask, bool value) {
    return static_cast<unsigned>(vote(place, mask, value).result);
}
static inline int any(Place place, unsigned mask, bool value) { return ballot(place, mask, value) != 0; }
static inline int all(Place place, unsigned mask, bool value) {
    const Exchange &own = vote(place, mask, value);
    return own.result == own.lanes;
}
static inline int uniform(Place place, unsigned mask, bool value) {
    const Exchange &own = vote(place, mask, value);
    return own.result == own.lanes || own.result == 0;
}
static inline unsigned active(Place place) {
    return exchange({Kind::ACTIVE, 0, place, 0, 0, nullptr, 0, 0}).lanes;
}
static inline void sync_warp(Place place, unsigned mask = ~0u) {
    exchange({Kind::SYNC, mask, place, 0, 0, nullptr, 0, 0});
}

template <typename T>
static inline unsigned match_any(Place place, unsigned mask, T value) {
    return static_cast<unsigned>(
        exchange({Kind::MATCH, mask, place, to_bits(value), 0, nullptr, 0, 0}).result);
}
template <typename T>
static inline unsigned match_all(Place place, unsigned mask, T value, int *same) {
    const Exchange &own = exchange({Kind::MATCH, mask, place, to_bits(value), 0, nullptr, 0, 0});
    *same = own.result == own.lanes;
    return *same ? own.lanes : 0;
}

struct Sum { template <typename T> static T of(T a, T b) { return a + b; } };
struct Least { template <typename T> static T of(T a, T b) { return b < a ? b : a; } };
struct Largest { template <typename T> static T of(T a, T b) { return a < b ? b : a; } };
struct Conjunction { template <typename T> static T of(T a, T b) { return a & b; } };
struct Disjunction { template <typename T> static T of(T a, T b) { return a | b; } };
struct Parity { template <typename T> static T of(T a, T b) { return a ^ b; } };

template <typename Operation, typename T>
static inline T reduce(Place place, unsigned mask, T value) {
    const Fold fold = [](uint64_t a, uint64_t b) {
        return to_bits(Operation::of(from_bits<T>(a), from_bits<T>(b)));
    };
    return from_bits<T>(exchange({Kind::FOLD, mask, place, to_bits(value), 0, fold, 0, 0}).result);
}

}  // namespace launchwise_cpu

#define LAUNCHWISE_PLACE(function) launchwise_cpu::Place{__FILE__, __LINE__, function}
#define __syncthreads() \
    static_cast<void>(launchwise_cpu::block_barrier(LAUNCHWISE_PLACE("__syncthreads"), false))
#define __syncthreads_count(vote) \
    static_cast<int>(launchwise_cpu::block_barrier(LAUNCHWISE_PLACE("__syncthreads_count"), vote))
#define __syncthreads_or(vote) \
    static_cast<int>(launchwise_cpu::block_barrier(LAUNCHWISE_PLACE("__syncthreads_or"), vote) != 0)
#define __syncthreads_and(vote) \
    static_cast<int>(launchwise_cpu::block_all(LAUNCHWISE_PLACE("__syncthreads_and"), vote))
#define __syncwarp(...) \
    launchwise_cpu::sync_warp(LAUNCHWISE_PLACE("__syncwarp") __VA_OPT__(,) __VA_ARGS__)
#define __activemask() launchwise_cpu::active(LAUNCHWISE_PLACE("__activemask"))
#define __shfl_sync(...) launchwise_cpu::shuffle(LAUNCHWISE_PLACE("__shfl_sync"), __VA_ARGS__)
#define __shfl_up_sync(...) launchwise_cpu::shuffle_up(LAUNCHWISE_PLACE("__shfl_up_sync"), __VA_ARGS__)
#define __shfl_down_sync(...) \
    launchwise_cpu::shuffle_down(LAUNCHWISE_PLACE("__shfl_down_sync"), __VA_ARGS__)
#define __shfl_xor_sync(...) launchwise_cpu::shuffle_xor(LAUNCHWISE_PLACE("__shfl_xor_sync"), __VA_ARGS__)
#define __ballot_sync(...) launchwise_cpu::ballot(LAUNCHWISE_PLACE("__ballot_sync"), __VA_ARGS__)
#define __any_sync(...) launchwise_cpu::any(LAUNCHWISE_PLACE("__any_sync"), __VA_ARGS__)
#define __all_sync(...) launchwise_cpu::all(LAUNCHWISE_PLACE("__all_sync"), __VA_ARGS__)
#define __uni_sync(...) launchwise_cpu::uniform(LAUNCHWISE_PLACE("__uni_sync"), __VA_ARGS__)
#define __match_any_sync(...) launchwise_cpu::match_any(LAUNCHWISE_PLACE("__match_any_sync"), __VA_ARGS__)
#define __match_all_sync(...) launchwise_cpu::match_all(LAUNCHWISE_PLACE("__match_all_sync"), __VA_ARGS__)
#define LAUNCHWISE_REDUCE(operation, function, ...) \
    launchwise_cpu::reduce<launchwise_cpu::operation>(LAUNCHWISE_PLACE(function), __VA_ARGS__)
#define __reduce_add_sync(...) LAUNCHWISE_REDUCE(Sum, "__reduce_add_sync", __VA_ARGS__)
#define __reduce_min_sync(...) LAUNCHWISE_REDUCE(Least, "__reduce_min_sync", __VA_ARGS__)
#define __reduce_max_sync(...) LAUNCHWISE_REDUCE(Largest, "__reduce_max_sync", __VA_ARGS__)
#define __reduce_and_sync(...) LAUNCHWISE_REDUCE(Conjunction, "__reduce_and_sync", __VA_ARGS__)
#define __reduce_or_sync(...) LAUNCHWISE_REDUCE(Disjunction, "__reduce_or_sync", __VA_ARGS__)
#define __reduce_xor_sync(...) LAUNCHWISE_REDUCE(Parity, "__reduce_xor_sync", __VA_ARGS__)
