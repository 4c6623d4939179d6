// Kernels that reach a GPU's rates: a copy, reads from L2, multiply-adds, products of matrices.

extern "C" __global__ void copy_words(uint4 *__restrict__ to, const uint4 *__restrict__ from,
                                      long long words) {
    // Four loads in flight a thread before the first store: latency hides behind them.
    const long long word = (long long)blockIdx.x * 4 * blockDim.x + threadIdx.x;
    if (word + 3 * blockDim.x < words) {
        const uint4 a = from[word], b = from[word + blockDim.x];
        const uint4 c = from[word + 2 * blockDim.x], d = from[word + 3 * blockDim.x];
        to[word] = a;
        to[word + blockDim.x] = b;
        to[word + 2 * blockDim.x] = c;
        to[word + 3 * blockDim.x] = d;
    }
}

// All threads side by side walk through a power of two of words again and again, past L1.
#define IN_FLIGHT 4
extern "C" __global__ void read_words(uint4 *__restrict__ to, const uint4 *__restrict__ from,
                                      unsigned words, unsigned reads) {
    const unsigned threads = gridDim.x * blockDim.x;
    unsigned word = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned seen = 0;
    for (unsigned read = 0; read < reads; read += IN_FLIGHT) {
        uint4 got[IN_FLIGHT];
#pragma unroll
        for (int number = 0; number < IN_FLIGHT; ++number, word += threads)
            got[number] = __ldcg(from + (word & (words - 1)));
#pragma unroll
        for (int number = 0; number < IN_FLIGHT; ++number)
            seen |= got[number].x | got[number].y | got[number].z | got[number].w;
    }
    // No word has that bit, but the compiler cannot know, and so has to read.
    if (seen >> 31)
        to[0] = make_uint4(seen, 0, 0, 0);
}

// Chains of dependent multiply-adds, enough of them side by side to hide their latency.
#define CHAINS 8
#define STEPS 1024
template <typename Real> __device__ void multiply_add(Real *__restrict__ to, Real factor) {
    Real values[CHAINS];
    for (int chain = 0; chain < CHAINS; ++chain)
        values[chain] = threadIdx.x + chain;
    for (int step = 0; step < STEPS; ++step)
#pragma unroll
        for (int chain = 0; chain < CHAINS; ++chain)
            values[chain] = values[chain] * factor + factor;
    Real sum = 0;
    for (int chain = 0; chain < CHAINS; ++chain)
        sum += values[chain];
    // Never true, but the compiler cannot know, and so has to compute.
    if (sum == Real(-1))
        to[0] = sum;
}

extern "C" __global__ void multiply_add_float32(float *to, float factor) {
    multiply_add(to, factor);
}

extern "C" __global__ void multiply_add_float64(double *to, double factor) {
    multiply_add(to, factor);
}

enum Type { TF32, FLOAT16, BFLOAT16 };

// A register of numbers from 1 to 2, different in every thread: tensor cores that multiply zeros
// draw less power and keep a higher clock than real data leaves them.
template <Type type> __device__ unsigned operand(unsigned seed) {
    const unsigned noise = (threadIdx.x + 32 * seed + 1) * 0x9e3779b1u;
    if (type == TF32)
        return 0x3f800000u | (noise & 0x007fe000u);
    if (type == FLOAT16)
        return 0x3c003c00u | (noise & 0x03ff03ffu);
    return 0x3f803f80u | (noise & 0x007f007fu);
}

// A warp adds 16x8 dot products of 8 (tf32) or 16 numbers to its sums. Where the architecture has
// no such instruction this does nothing, and the host never asks.
#define MMA(KIND)                                                                                \
    asm("mma.sync.aligned." KIND " {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"        \
        : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])                             \
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]))
#define HALF_MMA(A, B)                                                                           \
    asm("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32"                                       \
        " {%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};"                                          \
        : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])                             \
        : "r"(a[A]), "r"(a[A + 1]), "r"(b[B]))
template <Type type>
__device__ void multiply(float (&sums)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
#if __CUDA_ARCH__ >= 800
    if (type == TF32)
        MMA("m16n8k8.row.col.f32.tf32.tf32.f32");
    else if (type == FLOAT16)
        MMA("m16n8k16.row.col.f32.f16.f16.f32");
    else
        MMA("m16n8k16.row.col.f32.bf16.bf16.f32");
#elif __CUDA_ARCH__ >= 750
    // Turing multiplies 8 at a time.
    if (type == FLOAT16) {
        HALF_MMA(0, 0);
        HALF_MMA(2, 1);
    }
#endif
}

template <Type type> __device__ void multiply_matrices(float *to) {
    unsigned a[4], b[2];
    for (int number = 0; number < 4; ++number)
        a[number] = operand<type>(number);
    for (int number = 0; number < 2; ++number)
        b[number] = operand<type>(4 + number);
    float sums[CHAINS][4] = {};
    for (int step = 0; step < STEPS; ++step)
#pragma unroll
        for (int chain = 0; chain < CHAINS; ++chain)
            multiply<type>(sums[chain], a, b);
    float sum = 0;
    for (int chain = 0; chain < CHAINS; ++chain)
        for (int number = 0; number < 4; ++number)
            sum += sums[chain][number];
    if (sum == -1.0f)
        to[0] = sum;
}

extern "C" __global__ void multiply_matrices_tf32(float *to) { multiply_matrices<TF32>(to); }
extern "C" __global__ void multiply_matrices_float16(float *to) { multiply_matrices<FLOAT16>(to); }
extern "C" __global__ void multiply_matrices_bfloat16(float *to) {
    multiply_matrices<BFLOAT16>(to);
}
