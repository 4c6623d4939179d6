// Runs the blocks of a launch one after the other, and the threads of a block in turn.
//
// A thread runs until it waits or ends; then the next one in the launch's order runs. So threads are
// as far apart as barriers allow, and a missing barrier shows. From first to last and from last to
// first, a warp runs until all its lanes wait for the block or have ended: operations of warps do not
// keep the warps of a block in step. In a shuffled order they do.
#include "../cuda_on_cpu.h"
#include "fibers.h"
#include <cstdarg>
#include <cstring>
#include <numeric>
#include <vector>
#include <csetjmp>
#include <csignal>
#include <pthread.h>

dim3 gridDim, blockDim;
uint3 blockIdx, threadIdx;

namespace launchwise_cpu {

static const Request *request;
static jmp_buf way_out;
static pthread_t runner;
static Waits waits;

void fail(const char *format, ...) {
    va_list values;
    va_start(values, format);
    const int length = vsnprintf(request->reason, request->reason_bytes, format, values);
    va_end(values);
    if (length >= 0 && static_cast<unsigned>(length) < request->reason_bytes)
        snprintf(request->reason + length, request->reason_bytes - static_cast<unsigned>(length),
                 " (block %u, %u, %u, thread %u, %u, %u)", blockIdx.x, blockIdx.y, blockIdx.z,
                 threadIdx.x, threadIdx.y, threadIdx.z);
    _longjmp(way_out, 1);
}

}  // namespace launchwise_cpu

#include "guards.h"
#include "updates.h"

namespace launchwise_cpu {

enum class State : unsigned char { READY, AT_BARRIER, AT_WARP, ENDED };

struct Warp {
    unsigned live, waiting;  // one bit per lane
};

// By linear number; 32 neighbours are a warp.
static std::vector<uint3> index_of;
static std::vector<Context> contexts;
static std::vector<State> states;
static std::vector<Exchange> exchanges;
static std::vector<Warp> warps;
static std::vector<unsigned> order;
// Where stretches of `order` end: one per warp, or one for the block.
static std::vector<unsigned> ends;

static Context scheduler;
unsigned current;
static unsigned cursor, stretch, threads, live, ready;
static void (*body)();

struct Barrier {
    unsigned arrived, votes;
    Place place;  // of the first that came
};
static Barrier barrier;

// Where the first of those who must wait at one line came: one per warp if warps may wait at
// different lines, else one for the block.
struct Meeting {
    unsigned arrived;
    Place place;
};
static std::vector<Meeting> meetings;
unsigned barrier_threads;
static unsigned barrier_votes;  // of the last barrier that all reached

static inline bool same_line(const Place &one, const Place &other) {
    return one.line == other.line && (one.file == other.file || !std::strcmp(one.file, other.file));
}

static inline void open_barrier() {
    ++now.round;
    barrier_votes = barrier.votes;
    barrier_threads = barrier.arrived;
    for (unsigned i = 0; i < threads; ++i)
        if (states[i] == State::AT_BARRIER) states[i] = State::READY;
    ready += barrier.arrived;
    barrier.arrived = barrier.votes = 0;
    for (Meeting &meeting : meetings) meeting.arrived = 0;
    stretch = cursor = 0;
}

// Gives each lane of `lanes` its result; false if they are not all at the same operation.
static bool exchange_lanes(unsigned warp, unsigned lanes, const Exchange &first) {
    Exchange *all = &exchanges[32 * warp];
    ++now.turn;
    uint64_t votes = 0, folded = 0;
    bool any = false;
    for (unsigned lane = 0; lane < 32; ++lane) {
        if (!(lanes >> lane & 1)) continue;
        const Exchange &each = all[lane];
        if (each.kind != first.kind || each.mask != first.mask || each.fold != first.fold) return false;
        votes |= static_cast<uint64_t>(each.value != 0) << lane;
        if (first.fold) folded = any ? first.fold(folded, each.value) : each.value;
        any = true;
    }
    for (unsigned lane = 0; lane < 32; ++lane) {
        if (!(lanes >> lane & 1)) continue;
        Exchange &each = all[lane];
        each.lanes = lanes;
        if (first.kind == Kind::SHUFFLE) {
            // The value of a lane that does not take part is undefined.
            each.result = lanes >> each.source & 1 ? all[each.source].value : ~uint64_t(0);
        } else if (first.kind == Kind::MATCH) {
            each.result = 0;
            for (unsigned other = 0; other < 32; ++other)
                if (lanes >> other & 1 && all[other].value == each.value)
                    each.result |= uint64_t(1) << other;
        } else {
            each.result = first.fold ? folded : votes;
        }
        states[32 * warp + lane] = State::READY;
        ++ready;
    }
    warps[warp].waiting &= ~lanes;
    return true;
}

// Lanes that an operation waits for, if all of them have come; else 0.
static inline unsigned complete(const Warp &warp, unsigned mask) {
    const unsigned lanes = mask & warp.live;
    return lanes & ~warp.waiting ? 0 : lanes;
}

[[noreturn]] __attribute__((noinline)) static void fail_stuck() {
    const Exchange *lane = nullptr;
    for (unsigned i = 0; i < threads && !lane; ++i)
        if (states[i] == State::AT_WARP) {
            lane = &exchanges[i];
            current = i;
            threadIdx = index_of[i];
        }
    const Place &at = lane->place;
    if (barrier.arrived)
        fail("%s:%d: %s() in divergent code: %u of the %u threads of the block that have not ended wait "
             "there, others in %s() at %s:%d", barrier.place.file, barrier.place.line,
             barrier.place.function, barrier.arrived, live, at.function, at.file, at.line);
    const Warp &warp = warps[current / 32];
    for (unsigned other = 0; other < 32; ++other) {
        const Exchange &its = exchanges[current / 32 * 32 + other];
        if (!(lane->mask & warp.live & warp.waiting & 1u << other)) continue;
        if (its.kind != lane->kind || its.mask != lane->mask || its.fold != lane->fold)
            fail("%s:%d: %s() with mask 0x%08x in divergent code: lane %u of the mask waits in %s() with "
                 "mask 0x%08x at %s:%d", at.file, at.line, at.function, lane->mask, other,
                 its.place.function, its.mask, its.place.file, its.place.line);
    }
    fail("%s:%d: %s() with mask 0x%08x waits for lanes that do not come", at.file, at.line, at.function,
         lane->mask);
}

// No lane of the warp is ready: opens what waits for lanes that have ended; else lanes that ask at one
// place which lanes are active are so together.
static void settle_warp(unsigned warp) {
    const unsigned ready_before = ready;
    for (unsigned lane = 0; lane < 32; ++lane) {
        if (!(warps[warp].waiting >> lane & 1)) continue;
        const Exchange first = exchanges[32 * warp + lane];
        if (first.kind == Kind::ACTIVE) continue;
        const unsigned lanes = complete(warps[warp], first.mask);
        if (lanes) exchange_lanes(warp, lanes, first);
    }
    if (ready != ready_before) return;
    unsigned lanes = 0;
    Exchange first{};
    for (unsigned lane = 0; lane < 32; ++lane) {
        if (!(warps[warp].waiting >> lane & 1)) continue;
        const Exchange &each = exchanges[32 * warp + lane];
        if (each.kind != Kind::ACTIVE) continue;
        if (!lanes) first = each;
        if (same_line(first.place, each.place)) lanes |= 1u << lane;
    }
    if (lanes) exchange_lanes(warp, lanes, first);
}

// No thread is ready: opens what can be opened. False if all have ended.
static bool settle() {
    if (!live) return false;
    if (barrier.arrived == live) {
        open_barrier();
        return true;
    }
    for (unsigned warp = 0; warp < warps.size(); ++warp)
        if (warps[warp].waiting) settle_warp(warp);
    if (!ready) fail_stuck();
    return true;
}

// The next thread that can run between two places of the order; `threads` if there is none.
static inline unsigned pick_between(unsigned first, unsigned last) {
    for (cursor = first; cursor < last;) {
        const unsigned next = order[cursor++];
        if (states[next] == State::READY) return next;
    }
    return threads;
}

// The next thread that can run, if possible one of the stretch of the order that ran last; `threads`
// if all have ended.
static inline unsigned pick() {
    for (;;) {
        const unsigned end = ends[stretch], begin = stretch ? ends[stretch - 1] : 0;
        unsigned next = pick_between(cursor, end);
        if (next == threads) next = pick_between(begin, end);
        if (next != threads) return next;
        if (const unsigned warp = order[begin] / 32; request->order < 2 && warps[warp].waiting) {
            const unsigned ready_before = ready;
            settle_warp(warp);
            if (ready != ready_before) continue;
        }
        if (++stretch < ends.size()) {
            cursor = end;
            continue;
        }
        stretch = cursor = 0;
        if (!ready && !settle()) return threads;
    }
}

static inline void begin(unsigned thread) {
    current = now.thread = thread;
    threadIdx = index_of[thread];
}

static __attribute__((noinline)) void go_on_with_next() {
    const unsigned from = current, next = pick();
    if (next == from) return;
    if (next == threads) {
        change(&contexts[from], &scheduler);
        return;
    }
    begin(next);
    change(&contexts[from], &contexts[next]);
}

// Votes of all threads of the block, once all that have not ended have come.
unsigned block_barrier(Place place, bool vote) {
    Meeting &meeting = meetings[waits == Waits::BY_WARP ? current / 32 : 0];
    if (!barrier.arrived) barrier.place = place;
    if (!meeting.arrived++)
        meeting.place = place;
    else if (!same_line(meeting.place, place))
        fail("%s:%d: %s() in divergent code: other threads of the %s wait in %s() at %s:%d", place.file,
             place.line, place.function, waits == Waits::BY_WARP ? "warp" : "block",
             meeting.place.function, meeting.place.file, meeting.place.line);
    states[current] = State::AT_BARRIER;
    --ready;
    barrier.votes += vote;
    if (++barrier.arrived == live) open_barrier();
    go_on_with_next();
    return barrier_votes;
}

const Exchange &exchange(const Exchange &given) {
    const unsigned warp = current / 32, lane = current % 32;
    Exchange &own = exchanges[current];
    own = given;
    if (given.kind != Kind::ACTIVE && !(given.mask >> lane & 1))
        fail("%s:%d: lane %u calls %s() with mask 0x%08x, which does not name it", given.place.file,
             given.place.line, lane, given.place.function, given.mask);
    warps[warp].waiting |= 1u << lane;
    states[current] = State::AT_WARP;
    --ready;
    if (given.kind != Kind::ACTIVE) {
        const unsigned lanes = complete(warps[warp], given.mask);
        if (lanes) exchange_lanes(warp, lanes, given);
    }
    if (states[current] != State::READY) go_on_with_next();
    return own;
}

// What runs on a thread's stack: the kernel, once per block of the launch.
static void thread_main() {
    for (;;) {
        body();
        states[current] = State::ENDED;
        warps[current / 32].live &= ~(1u << current % 32);
        --ready;
        --live;
        go_on_with_next();
    }
}

static inline void prepare_fibers() {
    contexts.resize(threads);
    exchanges.resize((threads + 31) / 32 * 32);
    warps.resize((threads + 31) / 32);
    states.resize(threads);
    for (unsigned i = 0; i < threads; ++i)
        prepare(&contexts[i], request->stacks + i * STACK_BYTES, bytes_of_stack(i), thread_main);
}

static inline void run_fibers() {
    live = ready = threads;
    barrier = {};
    meetings.assign(waits == Waits::BY_WARP ? warps.size() : 1, Meeting{});
    stretch = cursor = 0;
    for (unsigned i = 0; i < threads; ++i) states[i] = State::READY;
    for (unsigned i = 0; i < warps.size(); ++i) {
        const unsigned lanes = threads - 32 * i;
        warps[i] = {lanes < 32 ? (1u << lanes) - 1 : ~0u, 0};
    }
    begin(pick());
    change(&scheduler, &contexts[current]);
}

// Threads of a block in the order of the launch.
static void number_threads() {
    threads = blockDim.x * blockDim.y * blockDim.z;
    index_of.clear();
    order.clear();
    for (unsigned z = 0; z < blockDim.z; ++z)
        for (unsigned y = 0; y < blockDim.y; ++y)
            for (unsigned x = 0; x < blockDim.x; ++x) index_of.push_back({x, y, z});
    for (unsigned i = 0; i < threads; ++i) order.push_back(i);
    if (request->order == 1) std::reverse(order.begin(), order.end());
    if (request->order > 1) {
        uint64_t random = request->order;
        for (unsigned i = threads; i > 1; --i) {
            random = random * 6364136223846793005u + 1442695040888963407u;
            std::swap(order[i - 1], order[(random >> 33) % i]);
        }
    }
    ends.clear();
    for (unsigned i = 1; i < threads && request->order < 2; ++i)
        if (order[i] / 32 != order[i - 1] / 32) ends.push_back(i);
    ends.push_back(threads);
}

// Runs every block; `whole_block` runs the current one.
template <typename WholeBlock>
static void run_blocks(WholeBlock &&whole_block) {
    const uint64_t blocks = uint64_t(gridDim.x) * gridDim.y * gridDim.z;
    // Steps of a length that has no divisor in common with their number come to each block once.
    uint64_t step = request->order == 1 ? blocks - 1 : 1, at = request->order == 1 ? blocks - 1 : 0;
    if (request->order > 1) {
        at = request->order % blocks;
        step = (blocks * 618 / 1000) | 1;
        while (std::gcd(step, blocks) != 1) ++step;
    }
    raise_fences();
    begin_updates();
    for (uint64_t i = 0; i < blocks; ++i, at = (at + step) % blocks) {
        blockIdx = {static_cast<unsigned>(at % gridDim.x),
                    static_cast<unsigned>(at / gridDim.x % gridDim.y),
                    static_cast<unsigned>(at / gridDim.x / gridDim.y)};
        poison_shared();
        ++now.round;
        now.block = static_cast<unsigned>(at);
        whole_block();
        check_fences();
    }
}

int run_launch(const Request &given, void (*kernel)(), Waits given_waits) {
    request = &given;
    gridDim = dim3(given.grid[0], given.grid[1], given.grid[2]);
    blockDim = dim3(given.block[0], given.block[1], given.block[2]);
    body = kernel;
    waits = given_waits;
    catch_signals();
    const int failed = _setjmp(way_out);
    if (!failed) {
        number_threads();
        if (waits != Waits::NEVER) {
            prepare_fibers();
            run_blocks(run_fibers);
        } else {
            run_blocks([] {
                for (const unsigned thread : order) {
                    begin(thread);
                    body();
                }
            });
        }
    }
    release_signals();
    std::fflush(stdout);
    request = nullptr;
    return failed;
}

}  // namespace launchwise_cpu
