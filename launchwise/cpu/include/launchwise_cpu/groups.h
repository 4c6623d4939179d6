// Groups of threads. A lane's rank in a group of lanes is the number of lanes of its mask below it.
#pragma once
#include "warps.h"

// The caller's line, for failures and for barriers that all must reach at one place.
#define LAUNCHWISE_CALLER const char *file = __builtin_FILE(), int line = __builtin_LINE()
#define LAUNCHWISE_AT(function) (launchwise_cpu::Place{file, line, function})

namespace launchwise_cpu {

// A value of any size from another lane, 8 bytes at a time.
template <typename T>
static inline T take_any(Place place, unsigned mask, const T &value, unsigned source) {
    static_assert(std::is_trivially_copyable<T>::value, "values of groups are trivially copyable");
    T taken = value;
    for (size_t at = 0; at < sizeof(T); at += 8) {
        const size_t bytes = sizeof(T) - at < 8 ? sizeof(T) - at : 8;
        uint64_t piece = 0;
        std::memcpy(&piece, reinterpret_cast<const char *>(&value) + at, bytes);
        piece = take(place, mask, piece, source);
        std::memcpy(reinterpret_cast<char *>(&taken) + at, &piece, bytes);
    }
    return taken;
}

static inline unsigned block_threads() { return blockDim.x * blockDim.y * blockDim.z; }

// The lane of a rank in a mask; 32 if there is none.
static inline unsigned lane_of(unsigned mask, unsigned rank) {
    for (unsigned lane = 0; lane < 32; ++lane)
        if (mask >> lane & 1 && rank-- == 0) return lane;
    return 32;
}

// Lanes of one warp.
class Lanes {
  public:
    explicit Lanes(unsigned mask) : mask_(mask) {}

    unsigned long long thread_rank() const { return rank(); }
    unsigned long long size() const { return count(); }
    unsigned long long num_threads() const { return count(); }
    void sync(LAUNCHWISE_CALLER) const { sync_warp(LAUNCHWISE_AT("sync"), mask_); }

    template <typename T>
    T shfl(const T &value, int source, LAUNCHWISE_CALLER) const {
        return from_rank(LAUNCHWISE_AT("shfl"), value, static_cast<unsigned>(source) % count());
    }
    template <typename T>
    T shfl_up(const T &value, unsigned delta, LAUNCHWISE_CALLER) const {
        return from_rank(LAUNCHWISE_AT("shfl_up"), value, delta <= rank() ? rank() - delta : rank());
    }
    template <typename T>
    T shfl_down(const T &value, unsigned delta, LAUNCHWISE_CALLER) const {
        return from_rank(LAUNCHWISE_AT("shfl_down"), value,
                         delta < count() - rank() ? rank() + delta : rank());
    }
    template <typename T>
    T shfl_xor(const T &value, unsigned bits, LAUNCHWISE_CALLER) const {
        const unsigned source = rank() ^ bits;
        return from_rank(LAUNCHWISE_AT("shfl_xor"), value, source < count() ? source : rank());
    }
    int any(int value, LAUNCHWISE_CALLER) const {
        return launchwise_cpu::any(LAUNCHWISE_AT("any"), mask_, value);
    }
    int all(int value, LAUNCHWISE_CALLER) const {
        return launchwise_cpu::all(LAUNCHWISE_AT("all"), mask_, value);
    }
    unsigned ballot(int value, LAUNCHWISE_CALLER) const {
        return ranks(launchwise_cpu::ballot(LAUNCHWISE_AT("ballot"), mask_, value));
    }
    template <typename T>
    unsigned match_any(T value, LAUNCHWISE_CALLER) const {
        return ranks(launchwise_cpu::match_any(LAUNCHWISE_AT("match_any"), mask_, value));
    }
    template <typename T>
    unsigned match_all(T value, int &same, LAUNCHWISE_CALLER) const {
        return ranks(launchwise_cpu::match_all(LAUNCHWISE_AT("match_all"), mask_, value, &same));
    }

    unsigned mask_;

    unsigned rank() const { return static_cast<unsigned>(__popc(mask_ & ((1u << current % 32) - 1))); }
    unsigned count() const { return static_cast<unsigned>(__popc(mask_)); }

    template <typename T>
    T from_rank(Place place, const T &value, unsigned source) const {
        return take_any(place, mask_, value, lane_of(mask_, source));
    }

    // The lanes of the group that take part: others of its mask have ended.
    Lanes taking_part(Place place) const {
        return Lanes(exchange({Kind::SYNC, mask_, place, 0, 0, nullptr, 0, 0}).lanes);
    }

    // Of ranks 0 to the own one.
    template <typename T, typename Operation>
    T scanned(Place place, T value, Operation &&operation) const {
        for (unsigned apart = 1; apart < count(); apart *= 2) {
            const T below = from_rank(place, value, apart <= rank() ? rank() - apart : rank());
            if (apart <= rank()) value = operation(below, value);
        }
        return value;
    }

  private:
    // Bits of lanes as bits of ranks.
    unsigned ranks(unsigned lanes) const {
        unsigned found = 0, rank = 0;
        for (unsigned lane = 0; lane < 32; ++lane)
            if (mask_ >> lane & 1) found |= (lanes >> lane & 1u) << rank++;
        return found;
    }
};

static inline unsigned mask_of_tile(unsigned size) {
    return (size == 32 ? ~0u : (1u << size) - 1) << (current % 32 & ~(size - 1));
}

}  // namespace launchwise_cpu

namespace cooperative_groups {

class thread_block {
  public:
    static void sync(LAUNCHWISE_CALLER) {
        launchwise_cpu::block_barrier(LAUNCHWISE_AT("sync"), false);
    }
    static unsigned thread_rank() { return launchwise_cpu::current; }
    static unsigned size() { return launchwise_cpu::block_threads(); }
    static unsigned num_threads() { return launchwise_cpu::block_threads(); }
    static dim3 group_index() { return blockIdx; }
    static dim3 thread_index() { return threadIdx; }
    static dim3 group_dim() { return blockDim; }
    static dim3 dim_threads() { return blockDim; }
};

class coalesced_group : public launchwise_cpu::Lanes {
  public:
    using Lanes::Lanes;
    unsigned long long meta_group_rank() const { return meta_rank; }
    unsigned long long meta_group_size() const { return meta_size; }
    unsigned meta_rank = 0, meta_size = 1;
};

// A tile of SIZE neighbours of a block or of a larger tile.
template <unsigned SIZE, typename Parent = void>
class thread_block_tile : public launchwise_cpu::Lanes {
    static_assert(SIZE <= 32, "the CPU device cannot run tiles of more than 32 threads");
    static_assert(SIZE && (SIZE & (SIZE - 1)) == 0, "the size of a tile is a power of 2");

  public:
    explicit thread_block_tile(unsigned parent_size)
        : Lanes(launchwise_cpu::mask_of_tile(SIZE)), parent_size(parent_size) {}
    template <typename Other>
    thread_block_tile(const thread_block_tile<SIZE, Other> &other)
        : Lanes(other.mask_), parent_size(other.parent_size) {}
    static constexpr unsigned long long size() { return SIZE; }
    static constexpr unsigned long long num_threads() { return SIZE; }
    unsigned long long meta_group_rank() const {
        return launchwise_cpu::current % parent_size / SIZE;
    }
    unsigned long long meta_group_size() const { return (parent_size + SIZE - 1) / SIZE; }
    unsigned parent_size;
};

// Any group: the block, or lanes of a warp.
class thread_group {
  public:
    thread_group(const thread_block &) : lanes_(0), block_(true) {}
    thread_group(const launchwise_cpu::Lanes &lanes) : lanes_(lanes), block_(false) {}
    unsigned long long thread_rank() const {
        return block_ ? thread_block::thread_rank() : lanes_.thread_rank();
    }
    unsigned long long size() const { return block_ ? thread_block::size() : lanes_.size(); }
    unsigned long long num_threads() const { return size(); }
    void sync(LAUNCHWISE_CALLER) const { block_ ? thread_block::sync(file, line) : lanes_.sync(file, line); }
    bool is_block() const { return block_; }

  private:
    launchwise_cpu::Lanes lanes_;
    bool block_;
};

static inline thread_block this_thread_block() { return {}; }
static inline coalesced_group coalesced_threads(LAUNCHWISE_CALLER) {
    return coalesced_group(launchwise_cpu::active(LAUNCHWISE_AT("coalesced_threads")));
}

template <unsigned SIZE>
static inline thread_block_tile<SIZE, thread_block> tiled_partition(const thread_block &) {
    return thread_block_tile<SIZE, thread_block>(launchwise_cpu::block_threads());
}
template <unsigned SIZE, unsigned LARGER, typename Parent>
static inline thread_block_tile<SIZE, thread_block_tile<LARGER, Parent>> tiled_partition(
    const thread_block_tile<LARGER, Parent> &) {
    static_assert(SIZE <= LARGER, "a tile is no larger than what it is part of");
    return thread_block_tile<SIZE, thread_block_tile<LARGER, Parent>>(LARGER);
}
static inline thread_group tiled_partition(const thread_block &, unsigned size) {
    launchwise_cpu::check_width(launchwise_cpu::Place{"cooperative_groups.h", 1, "tiled_partition"}, size);
    return launchwise_cpu::Lanes(launchwise_cpu::mask_of_tile(size));
}
static inline thread_group tiled_partition(const thread_group &, unsigned size) {
    return tiled_partition(thread_block(), size);
}
// Neighbours in rank of lanes that are active together.
static inline coalesced_group tiled_partition(const coalesced_group &group, unsigned size) {
    unsigned mask = 0;
    const unsigned first = group.rank() / size * size;
    for (unsigned rank = first; rank < first + size && rank < group.count(); ++rank)
        mask |= 1u << launchwise_cpu::lane_of(group.mask_, rank);
    coalesced_group tile(mask);
    tile.meta_rank = group.rank() / size;
    tile.meta_size = (group.count() + size - 1) / size;
    return tile;
}

// Lanes of one label.
template <typename Label>
static inline coalesced_group labeled_partition(
    const launchwise_cpu::Lanes &group, Label label, LAUNCHWISE_CALLER) {
    const launchwise_cpu::Place place = LAUNCHWISE_AT("labeled_partition");
    const unsigned own = launchwise_cpu::match_any(place, group.mask_, label);
    coalesced_group part(own);
    // Parts are numbered by their first lanes.
    const unsigned firsts = launchwise_cpu::ballot(place, group.mask_, part.rank() == 0);
    part.meta_rank = static_cast<unsigned>(__popc(firsts & ((1u << (__ffs(static_cast<int>(own)) - 1)) - 1)));
    part.meta_size = static_cast<unsigned>(__popc(firsts));
    return part;
}
static inline coalesced_group binary_partition(
    const launchwise_cpu::Lanes &group, bool label, LAUNCHWISE_CALLER) {
    return labeled_partition(group, static_cast<int>(label), file, line);
}

template <typename Group>
static inline void sync(const Group &group, LAUNCHWISE_CALLER) { group.sync(file, line); }
template <typename Group>
static inline auto thread_rank(const Group &group) { return group.thread_rank(); }
template <typename Group>
static inline auto group_size(const Group &group) { return group.size(); }

// A void type takes any arguments.
#define LAUNCHWISE_OPERATION(name, expression)                                        \
    template <typename T = void>                                                      \
    struct name {                                                                     \
        T operator()(const T &a, const T &b) const { return expression; }             \
    };                                                                                \
    template <>                                                                       \
    struct name<void> {                                                               \
        template <typename T>                                                         \
        T operator()(const T &a, const T &b) const { return expression; }             \
    };
LAUNCHWISE_OPERATION(plus, a + b)
LAUNCHWISE_OPERATION(less, b < a ? b : a)
LAUNCHWISE_OPERATION(greater, a < b ? b : a)
LAUNCHWISE_OPERATION(bit_and, a & b)
LAUNCHWISE_OPERATION(bit_or, a | b)
LAUNCHWISE_OPERATION(bit_xor, a ^ b)
#undef LAUNCHWISE_OPERATION

template <typename Group, typename T, typename Operation>
static inline T reduce(const Group &group, const T &value, Operation &&operation, LAUNCHWISE_CALLER) {
    const launchwise_cpu::Place place = LAUNCHWISE_AT("reduce");
    const launchwise_cpu::Lanes lanes = group.taking_part(place);
    return lanes.from_rank(place, lanes.scanned(place, value, operation), lanes.count() - 1);
}
template <typename Group, typename T, typename Operation>
static inline T inclusive_scan(
    const Group &group, const T &value, Operation &&operation, LAUNCHWISE_CALLER) {
    const launchwise_cpu::Place place = LAUNCHWISE_AT("inclusive_scan");
    return group.taking_part(place).scanned(place, value, operation);
}
template <typename Group, typename T>
static inline T inclusive_scan(const Group &group, const T &value, LAUNCHWISE_CALLER) {
    return inclusive_scan(group, value, plus<T>(), file, line);
}
template <typename Group, typename T, typename Operation>
static inline T exclusive_scan(
    const Group &group, const T &value, Operation &&operation, LAUNCHWISE_CALLER) {
    const launchwise_cpu::Place place = LAUNCHWISE_AT("exclusive_scan");
    const launchwise_cpu::Lanes lanes = group.taking_part(place);
    const T own = lanes.scanned(place, value, operation);
    const T below = lanes.from_rank(place, own, lanes.rank() ? lanes.rank() - 1 : 0);
    return lanes.rank() ? below : T{};
}
template <typename Group, typename T>
static inline T exclusive_scan(const Group &group, const T &value, LAUNCHWISE_CALLER) {
    return exclusive_scan(group, value, plus<T>(), file, line);
}

}  // namespace cooperative_groups

#undef LAUNCHWISE_CALLER
#undef LAUNCHWISE_AT
