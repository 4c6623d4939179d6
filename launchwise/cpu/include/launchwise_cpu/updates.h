// Updates that a GPU loses: two threads both read and then write the same memory, with no atomic and no
// barrier between. Run one after the other both count, so that no result shows it. A part of runtime.cpp.
//
// In builds that are watched, g++ calls __tsan_read4() and the like before each access
// (-fsanitize=thread); they stand here in place of its library for threads of the CPU.
#pragma once

// Where the library lies: the linker's.
extern "C" LAUNCHWISE_HIDDEN const char __ehdr_start;

namespace launchwise_cpu {

// A thread between two barriers of its block and two operations of warps; both are counted over launches.
struct Toucher {
    unsigned block, thread, round, turn;
};

// Who read an address last, and who read and then wrote it last.
struct Touched {
    uintptr_t at;
    Toucher read, changed;
};

static Toucher now = {0, 0, 1, 1};
static unsigned first_round;
bool may_lock;

// By address: later ones take the place of others, so that with much memory some updates are missed.
static Touched touched[1 << 17];

static inline void begin_updates() {
    first_round = ++now.round;
    may_lock = false;
}

static inline bool is_one(const Toucher &one, const Toucher &other) {
    return one.block == other.block && one.thread == other.thread;
}

// Whether a barrier, or for lanes of a warp one of its operations, lies between.
static inline bool is_ordered(const Toucher &one, const Toucher &other) {
    if (one.block != other.block) return false;
    return one.round != other.round || (one.thread / 32 == other.thread / 32 && one.turn != other.turn);
}

// What nobody else can know: it lies on the stack of the thread that runs.
static inline bool is_local(uintptr_t at) {
    char frame;
    return at - reinterpret_cast<uintptr_t>(&frame) < LOCAL_BYTES;
}

static inline bool lies_in(uintptr_t at, const void *first, size_t bytes) {
    return at - reinterpret_cast<uintptr_t>(first) < bytes;
}

// Null of other memory.
static const char *name_of_shared(uintptr_t at) {
    for (const SharedArray &array : shared_arrays())
        if (lies_in(at, array.at, array.bytes)) return array.name;
    return lies_in(at, dynamic_shared, MOST_SHARED) ? "dynamic shared memory" : nullptr;
}

static void on_read(void *pointer) {
    const uintptr_t at = reinterpret_cast<uintptr_t>(pointer);
    if (!request || is_local(at)) return;
    Touched &own = touched[at / 4 % (sizeof(touched) / sizeof(*touched))];
    if (own.at != at) own = {at, {}, {}};
    own.read = now;
}

static void on_write(void *pointer, void *from) {
    const uintptr_t at = reinterpret_cast<uintptr_t>(pointer);
    if (!request || is_local(at)) return;
    Touched &own = touched[at / 4 % (sizeof(touched) / sizeof(*touched))];
    const Toucher before = own.changed;
    if (own.at != at || own.read.round != now.round || !is_one(own.read, now)) return;
    own.changed = now;
    if (before.round < first_round || is_one(before, now) || is_ordered(before, now)) return;
    // An exchange or a comparison may be a lock, which puts all that it guards in order. A source's own
    // path for the CPU is not what a GPU runs.
    if (may_lock || waits == Waits::BY_WARP) return;
    const char *name = name_of_shared(at);
    // Blocks have shared memory of their own, which lies at the same place here.
    if (name && before.block != now.block) return;
    fail("@%zx reads and then writes the same %s as another thread (%u of block %u) does, with no atomic "
         "and no barrier between: a GPU loses one of the two updates",
         static_cast<size_t>(static_cast<const char *>(from) - &__ehdr_start) - 1, name ? name : "memory",
         before.thread, before.block);
}

}  // namespace launchwise_cpu

extern "C" {
LAUNCHWISE_HIDDEN void __tsan_init() {}
LAUNCHWISE_HIDDEN void __tsan_vptr_update(void **, void *) {}
LAUNCHWISE_HIDDEN void __tsan_vptr_read(void **) {}
#define LAUNCHWISE_ACCESS(name, ...)                                                              \
    LAUNCHWISE_HIDDEN void __tsan_##name(void *at __VA_ARGS__)
#define LAUNCHWISE_ACCESSES(bytes)                                                                \
    LAUNCHWISE_ACCESS(read##bytes) { launchwise_cpu::on_read(at); }                               \
    LAUNCHWISE_ACCESS(unaligned_read##bytes) { launchwise_cpu::on_read(at); }                     \
    LAUNCHWISE_ACCESS(write##bytes) { launchwise_cpu::on_write(at, __builtin_return_address(0)); } \
    LAUNCHWISE_ACCESS(unaligned_write##bytes) { launchwise_cpu::on_write(at, __builtin_return_address(0)); }
LAUNCHWISE_ACCESSES(1)
LAUNCHWISE_ACCESSES(2)
LAUNCHWISE_ACCESSES(4)
LAUNCHWISE_ACCESSES(8)
LAUNCHWISE_ACCESSES(16)
LAUNCHWISE_ACCESS(read_range, , unsigned long) { launchwise_cpu::on_read(at); }
LAUNCHWISE_ACCESS(write_range, , unsigned long) { launchwise_cpu::on_write(at, __builtin_return_address(0)); }
}
