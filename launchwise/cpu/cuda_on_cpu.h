// Enough of CUDA C++ to run a kernel's own source on the CPU, one thread after the other.
//
// With BARRIERS the threads of a block are fibers: each runs until it comes to a barrier or to its
// end, and none goes on before all have come there.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstring>
#include <tuple>
#include <utility>
#include <vector>
#ifdef BARRIERS
#include <memory>
#include <setjmp.h>
#include <ucontext.h>
#endif

#define __global__
#define __device__
#define __forceinline__ inline
#define __launch_bounds__(...)
using std::max;
using std::min;

struct Dim3 {
    unsigned x, y, z;
};
static Dim3 gridDim, blockDim, blockIdx, threadIdx;

static inline int __float_as_int(float value) {
    int bits;
    std::memcpy(&bits, &value, 4);
    return bits;
}
static inline long long __double_as_longlong(double value) {
    long long bits;
    std::memcpy(&bits, &value, 8);
    return bits;
}
static inline double __dadd_rn(double a, double b) { return a + b; }
static inline double __dmul_rn(double a, double b) { return a * b; }
template <typename T, typename U>
static inline T atomicAdd(T *at, U by) {
    T old = *at;
    *at += by;
    return old;
}
template <typename T>
static inline T atomicMax(T *at, T by) {
    T old = *at;
    *at = max(old, by);
    return old;
}
// Threads run one by one, from the last of a block to the first, so lane 0 comes last and a warp's
// maximum can be handed on from lane to lane. That is all that the kernels use shuffles for.
template <typename T>
static inline T __shfl_xor_sync(unsigned, T value, int) {
    static T running = 0;
    if (threadIdx.x == blockDim.x - 1) running = 0;
    return running = max(running, value);
}

template <typename... Parameters, size_t... Index>
static void call(void (*kernel)(Parameters...), void **arguments, std::index_sequence<Index...>) {
    kernel(*static_cast<std::remove_reference_t<Parameters> *>(arguments[Index])...);
}

static std::vector<double> shared_memory;
#define DYNAMIC_SHARED(type, name) type *name = reinterpret_cast<type *>(shared_memory.data())

#ifdef BARRIERS
// Fibers change by setjmp: swapcontext asks the kernel for the signal mask every time.
struct Fiber {
    jmp_buf at;
    ucontext_t first;
    std::vector<char> stack;
    bool begun = false, ended = false;
};
static std::vector<std::unique_ptr<Fiber>> fibers;
static jmp_buf scheduler;
static unsigned current;
static void (*body)();

static __attribute__((noinline)) void pause_fiber() {
    if (!_setjmp(fibers[current]->at)) _longjmp(scheduler, 1);
}

static void __syncthreads() { pause_fiber(); }

// A fiber serves one block after the other.
static void enter() {
    for (;;) {
        body();
        fibers[current]->ended = true;
        pause_fiber();
    }
}

static __attribute__((noinline)) void go_on(Fiber &fiber) {
    if (_setjmp(scheduler)) return;
    if (fiber.begun) _longjmp(fiber.at, 1);
    fiber.begun = true;
    fiber.stack.resize(1 << 16);
    getcontext(&fiber.first);
    fiber.first.uc_stack.ss_sp = fiber.stack.data();
    fiber.first.uc_stack.ss_size = fiber.stack.size();
    fiber.first.uc_link = nullptr;
    makecontext(&fiber.first, enter, 0);
    setcontext(&fiber.first);
}

// Every thread of a block up to its next barrier, until all have come to their end.
template <typename Body>
static void run_block(Body &&thread) {
    static Body *now;
    now = &thread;
    body = [] { (*now)(); };
    while (fibers.size() < blockDim.x) fibers.push_back(std::make_unique<Fiber>());
    for (auto &fiber : fibers) fiber->ended = false;
    for (bool going = true; going;) {
        going = false;
        for (unsigned x = blockDim.x; x-- > 0;) {
            if (fibers[x]->ended) continue;
            going = true;
            current = threadIdx.x = x;
            go_on(*fibers[x]);
        }
    }
}
#else
template <typename Body>
static void run_block(Body &&thread) {
    for (unsigned x = blockDim.x; x-- > 0;) {
        threadIdx.x = x;
        thread();
    }
}
#endif

template <typename... Parameters>
static void run(void (*kernel)(Parameters...), void **arguments, const unsigned *shape) {
    gridDim = {shape[0], shape[1], shape[2]};
    blockDim = {shape[3], shape[4], shape[5]};
    for (blockIdx.z = 0; blockIdx.z < gridDim.z; ++blockIdx.z)
        for (blockIdx.y = 0; blockIdx.y < gridDim.y; ++blockIdx.y)
            for (blockIdx.x = 0; blockIdx.x < gridDim.x; ++blockIdx.x) {
                // What a block left in shared memory is nothing that the next may rely on.
                shared_memory.assign(shape[6] / sizeof(double) + 1, std::nan(""));
                for (threadIdx.z = 0; threadIdx.z < blockDim.z; ++threadIdx.z)
                    for (threadIdx.y = 0; threadIdx.y < blockDim.y; ++threadIdx.y)
                        run_block([&] {
                            call(kernel, arguments, std::index_sequence_for<Parameters...>{});
                        });
            }
}
