// Numbers of 16 bits and complex numbers, as everyday kernels use them.
#include <cuComplex.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>

template <typename T>
__global__ void arithmetic(T *out, const T *a, const T *b, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    const T x = __ldg(a + i), y = b[i];
    out[i] = x + y;
    out[n + i] = x - y;
    out[2 * n + i] = __hmul(x, y);
    out[3 * n + i] = x / y;
    out[4 * n + i] = __hfma(x, y, x);
    out[5 * n + i] = hsqrt(__habs(x));
    out[6 * n + i] = __hmax(x, -y);
}

__global__ void convert(__half *half_out, __nv_bfloat16 *bfloat16_out, float *back, const float *in, int n) {
    const int i = threadIdx.x;
    if (i >= n) return;
    half_out[i] = in[i];
    bfloat16_out[i] = __float2bfloat16(in[i]);
    back[i] = __half2float(half_out[i]);
    back[n + i] = bfloat16_out[i];
}

__global__ void scale(half2 *values, half factor, __nv_bfloat16 other, int n) {
    const int i = threadIdx.x;
    if (i < n) values[i] = __hmul2(values[i], __half2half2(factor * __float2half(float(other))));
}

// Sum over the block: shuffles, shared memory and an atomic operation on half.
__global__ void total(half *out, const half *in) {
    __shared__ half sums[2];
    half value = in[threadIdx.x];
    for (int apart = 16; apart; apart /= 2) value += __shfl_down_sync(0xffffffffu, value, apart);
    if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = value;
    __syncthreads();
    if (threadIdx.x < 2) atomicAdd(out, sums[threadIdx.x]);
    half2 pair = __halves2half2(value, value);
    pair = __shfl_sync(0xffffffffu, pair, 0);
    if (threadIdx.x == 0) atomicAdd(reinterpret_cast<half2 *>(out + 2), pair);
}

__global__ void multiply(cuFloatComplex *out, const cuFloatComplex *a, cuFloatComplex b, int n) {
    const int i = threadIdx.x;
    if (i < n) out[i] = cuCaddf(cuCmulf(a[i], b), cuCdivf(cuConjf(a[i]), make_cuFloatComplex(cuCabsf(b), 0)));
}

#define EXPECT(condition) \
    if (!(condition)) { \
        ++*failures; \
        printf("line %d: %s\n", __LINE__, #condition); \
    }

__global__ void functions(int *failures) {
    EXPECT(sizeof(half) == 2 && sizeof(half2) == 4 && alignof(half2) == 4 && sizeof(nv_bfloat162) == 4)
    half h = 1.5f;
    float f = h;
    double d = h;
    EXPECT(f == 1.5f && d == 1.5 && (int)h == 1 && half(3) == __int2half_rn(3) && bool(h))
    h += half(2);
    h *= __float2half(2.0f);
    EXPECT(__half2float(h) == 7 && -h < h && h++ == half(7) && h == half(8) && !(h != half(8)))
    EXPECT(__hgt(h, half(7)) && __hle(h, h) && __hne(h, half(1)) && !__heq(h, CUDART_NAN_FP16))
    EXPECT(__hisnan(CUDART_NAN_FP16) && __hisinf(half(70000.0f)) == 1 && __hisinf(half(65519.0f)) == 0)
    EXPECT(__half_as_ushort(__float2half(65504.0f)) == 0x7BFF && __half_as_ushort(half(5.9604645e-8f)) == 1)
    EXPECT(__half2int_rn(half(2.5f)) == 2 && __half2int_rz(half(-2.7f)) == -2 && __half2uint_rd(half(3.9f)) == 3)
    EXPECT(__half_as_ushort(__float2half_rz(2049.0f)) + 1 == __half_as_ushort(__float2half_ru(2049.0f)))
    EXPECT(float(hexp(half(0))) == 1 && float(hrcp(half(4))) == 0.25f && float(hlog2(half(8))) == 3)
    EXPECT(float(hrsqrt(half(16))) == 0.25f && float(hfloor(half(-1.5f))) == -2 && float(hcos(half(0))) == 1)
    const half2 pair = __floats2half2_rn(1, -2);
    const half2 sum = pair + __float2half2_rn(3.0f);
    EXPECT(__low2float(sum) == 4 && __high2float(sum) == 1 && __hbgt2(sum, pair) && __hadd2(pair, pair) == pair * half2(2, 2))
    EXPECT(float(__hfma2(pair, pair, pair).y) == 2 && __half22float2(h2sqrt(half2(4, 9))).y == 3)
    EXPECT(__low2half(__lowhigh2highlow(pair)) == half(-2) && __hmax2(pair, -pair) == __habs2(pair))
    EXPECT(__hgt2_mask(sum, half2(2, 2)) == 0xFFFFu && float(__hsub2(pair, pair).x) == 0)
    nv_bfloat16 b = 3.0f;
    EXPECT(__bfloat162float(b * b) == 9 && float(__nv_bfloat16(1.00390625f)) == 1 && float(b / b) == 1)
    EXPECT(__bfloat1622float2(__floats2bfloat162_rn(1, 2)).y == 2 && __bfloat16_as_ushort(b) == 0x4040)
    EXPECT(float(__hadd(b, b)) == 6 && float(hsqrt(__float2bfloat16(4.0f))) == 2 && __hlt(-b, b))
    volatile half shared_by_lanes;
    shared_by_lanes = half(5);
    h = shared_by_lanes;
    EXPECT(h == half(5) && half(__half_raw{0x3C00}) == half(1))
    const cuDoubleComplex z = make_cuDoubleComplex(3, -4);
    EXPECT(cuCabs(z) == 5 && cuCreal(cuCmul(z, cuConj(z))) == 25 && cuCimag(cuCsub(z, z)) == 0)
    EXPECT(cuCreal(cuCdiv(z, z)) == 1 && make_cuComplex(1, 2).y == 2 && cuCfma(z, z, z).x == -4)
}

struct Pair { int a, b; };
__global__ void sum(
    float *out, const float *in, int w, long long h, float scale, bool on, Pair pair) {
    *out = *in + w + h + scale + on + pair.a + pair.b;
}
