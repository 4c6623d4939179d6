// Every thread writes what it sees to its row of `out`.
__device__ int number() { return (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x; }

__global__ void shuffles(int *out) {
    const int thread = number();
    int *row = out + 7 * thread;
    row[0] = __shfl_sync(0xffffffffu, thread, 5);
    row[1] = __shfl_up_sync(0xffffffffu, thread, 3);
    row[2] = __shfl_down_sync(0xffffffffu, thread, 3);
    row[3] = (int)__shfl_xor_sync(0xffffffffu, (double)thread, 9);
    row[4] = __shfl_sync(0xffffffffu, thread, 2, 8);
    row[5] = __shfl_up_sync(0xffffffffu, thread, 3, 8);
    row[6] = __shfl_down_sync(0xffffffffu, thread, 3, 8);
}

__global__ void votes(int *out) {
    const int thread = threadIdx.x;
    if (thread >= 40) return;
    int *row = out + 6 * thread;
    row[0] = (int)__ballot_sync(0xffffffffu, thread % 2 == 0);
    row[1] = __any_sync(0xffffffffu, thread == 3 || thread == 39);
    row[2] = __all_sync(0xffffffffu, thread != 3 && thread != 39);
    row[3] = __all_sync(0xffffffffu, thread < 40);
    row[4] = __reduce_add_sync(0xffffffffu, thread);
    row[5] = (int)__match_any_sync(0xffffffffu, thread % 3);
}

__global__ void block_votes(int *out) {
    int *row = out + 3 * number();
    row[0] = __syncthreads_count(number() % 3 == 0);
    row[1] = __syncthreads_and(number() != 77);
    row[2] = __syncthreads_or(number() == 77);
}

__global__ void active(int *out) {
    int *row = out + 2 * threadIdx.x;
    if (threadIdx.x % 2) {
        const unsigned lanes = __activemask();
        row[0] = (int)lanes;
        row[1] = __popc(__ballot_sync(lanes, true));
    } else {
        const unsigned lanes = __activemask();
        row[0] = (int)lanes;
        row[1] = __popc(__ballot_sync(lanes, true));
    }
}

#define EXPECT(condition) \
    if (!(condition)) {   \
        printf("line %d: " #condition "\n", __LINE__); \
        ++*failures;      \
    }

__device__ __noinline__ float squared(float x) { return x * x; }

__global__ void arithmetic(int *failures) {
    EXPECT(sizeof(float4) == 16 && alignof(float4) == 16 && alignof(float2) == 8)
    EXPECT(sizeof(float3) == 12 && alignof(double2) == 16 && sizeof(uchar4) == 4 && alignof(uchar4) == 4)
    const float4 four = make_float4(1, 2, 3, 4);
    EXPECT(four.x + four.w == 5 && make_double2(1, 2).y == 2 && make_int3(1, 2, 3).z == 3)
    const dim3 shape(3, 4);
    EXPECT(shape.x * shape.y * shape.z == 12)
    EXPECT(min(3, 4u) == 3 && max(2.5f, 3.0) == 3 && min(1.0f, __int_as_float(0x7fc00000)) == 1)
    EXPECT(fabsf(rsqrtf(4.0f) - 0.5f) < 1e-6f && rsqrt(16.0) == 0.25)
    EXPECT(__fmaf_rn(2, 3, 4) == 10 && __expf(0) == 1 && __fdividef(1, 4) == 0.25f)
    EXPECT(__popc(0xF0F0u) == 8 && __clz(1) == 31 && __ffs(8) == 4 && __brev(1u) == 0x80000000u)
    EXPECT(__clzll(1) == 63 && __popcll(~0ull) == 64 && __mulhi(1 << 30, 8) == 2)
    EXPECT(__float2int_rn(2.5f) == 2 && __float2int_rz(-2.7f) == -2 && __float2int_rn(1e20f) == 2147483647)
    EXPECT(__float_as_uint(1.0f) == 0x3f800000u && __byte_perm(0x03020100u, 0x07060504u, 0x7531) == 0x07050301u)
    EXPECT(__saturatef(2) == 1 && squared(3) == 9 && __umul24(0x1000001u, 2) == 2)
    unsigned word = 5;
    EXPECT(atomicCAS(&word, 5u, 7u) == 5 && word == 7 && atomicCAS(&word, 5u, 9u) == 7 && word == 7)
    EXPECT(atomicInc(&word, 7u) == 7 && word == 0 && atomicDec(&word, 3u) == 0 && word == 3)
    EXPECT(atomicExch(&word, 12u) == 3 && atomicXor(&word, 5u) == 12 && word == 9 && atomicSub(&word, 1) == 9)
}
