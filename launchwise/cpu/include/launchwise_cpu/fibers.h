// Fibers: stacks of their own for the threads of a block, between which one thread of the CPU changes.
#pragma once
#include <cstddef>
#include <sys/mman.h>
#if !defined(__x86_64__) || defined(LAUNCHWISE_UCONTEXT)
#include <ucontext.h>
#endif

namespace launchwise_cpu {

constexpr unsigned MOST_THREADS = 1024;
// Stacks begin at different places of their pages, or they would share few lines of the caches.
constexpr size_t LOCAL_BYTES = 252 << 10, GUARD_BYTES = 4 << 10, SHIFT_BYTES = 512, SHIFTS = 128;
constexpr size_t STACK_BYTES = GUARD_BYTES + LOCAL_BYTES + SHIFTS * SHIFT_BYTES;

static inline size_t bytes_of_stack(unsigned thread) {
    return STACK_BYTES - thread % SHIFTS * SHIFT_BYTES;
}

// Stacks of the largest block, each with a page below it that nothing may touch. Null if refused.
char *make_stacks() {
    void *stacks = mmap(nullptr, MOST_THREADS * STACK_BYTES, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (stacks == MAP_FAILED) return nullptr;
    char *first = static_cast<char *>(stacks);
    for (unsigned i = 0; i < MOST_THREADS; ++i)
        if (mprotect(first + i * STACK_BYTES, GUARD_BYTES, PROT_NONE)) return nullptr;
    return first;
}

#if defined(__x86_64__) && !defined(LAUNCHWISE_UCONTEXT)
// A stack pointer; the registers that a function must keep lie on the stack.
using Context = void *;

// Saves where it is in `from` and goes on at `to`. swapcontext does the same with a system call.
__attribute__((naked, noinline, noipa)) static void change(Context *from, Context *to) {
    asm("pushq %rbp\n\tpushq %rbx\n\tpushq %r12\n\tpushq %r13\n\tpushq %r14\n\tpushq %r15\n\t"
        "movq %rsp, (%rdi)\n\tmovq (%rsi), %rsp\n\t"
        "popq %r15\n\tpopq %r14\n\tpopq %r13\n\tpopq %r12\n\tpopq %rbx\n\tpopq %rbp\n\tret");
}

// A context that begins with a call of `begin`, which never returns.
static inline void prepare(Context *context, char *stack, size_t bytes, void (*begin)()) {
    void **top = reinterpret_cast<void **>(stack + bytes);
    top[-1] = nullptr;
    top[-2] = reinterpret_cast<void *>(begin);
    for (int saved = 3; saved <= 8; ++saved) top[-saved] = nullptr;
    *context = top - 8;
}
#else
using Context = ucontext_t;

static inline void change(Context *from, Context *to) { swapcontext(from, to); }

static inline void prepare(Context *context, char *stack, size_t bytes, void (*begin)()) {
    getcontext(context);
    context->uc_stack.ss_sp = stack + GUARD_BYTES;
    context->uc_stack.ss_size = bytes - GUARD_BYTES;
    context->uc_link = nullptr;
    makecontext(context, begin, 0);
}
#endif

}  // namespace launchwise_cpu
