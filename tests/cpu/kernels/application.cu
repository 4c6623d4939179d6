// A whole program in one file: kernels, functions that launch them, and a main.
#include "algorithm"
#include "cmath"
#include "cuda_runtime.h"
#include "device_launch_parameters.h"
#include "vector"
#include <chrono>
#include <cstdio>
#include <iostream>
#include <string>
#include <cublas_v2.h>
#include <curand.h>
#include <thrust/device_vector.h>

#define CUDA_CHECK(call)                                                                   \
    do {                                                                                   \
        cudaError_t error = (call);                                                        \
        if (error != cudaSuccess) {                                                        \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(error)); \
            exit(EXIT_FAILURE);                                                            \
        }                                                                                  \
    } while (0)

static inline void check(cudaError_t code, const char *file, int line) {
    if (code != cudaSuccess) std::cerr << file << line << cudaGetErrorString(code) << '\n';
}

class Timer {
  public:
    Timer() { CUDA_CHECK(cudaEventCreate(&start_)); }
    ~Timer() { cudaEventDestroy(start_); }
    void begin(cudaStream_t stream = 0) { cudaEventRecord(start_, stream); }

  private:
    cudaEvent_t start_{nullptr};
    cublasHandle_t handle_;
};

struct Weights {
    float left, right;
    Weights(float l, float r) : left{l}, right(r) {}
    void upload() { cudaMemcpyToSymbol(0, this, sizeof(*this)); }
    // Nothing names these two; the loop needs them.
    const float *begin() const { return &left; }
    const float *end() const { return &right + 1; }
    explicit operator float() const {
        float sum = 0;
        for (float each : *this) sum += each;
        return sum;
    }
    __host__ __device__ float of(float a, float b) const { return left * a + right * b; }
};

// A plain function of the host that device code uses as a constant.
constexpr int twice(int n) { return 2 * n; }

__device__ float blend(const float *in, int i, Weights weights) {
    return weights.of(in[i], in[i + 1]);
}

template <int STEP, typename T>
__global__ void smooth(T *out, const T *in, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = blend(in, i, Weights(0.5f, 0.25f)) * twice(STEP);
}
template __global__ void smooth<3, float>(float *, const float *, int);

template <typename T>
void run(T *out, const T *in, int n) {
    smooth<1, T><<<(n + 255) / 256, 256>>>(out, in, n);
    CUDA_CHECK(cudaGetLastError());
}
template void run<float>(float *, const float *, int);

namespace inner {
struct Doubled {
    __device__ static float apply(float a) { return 2 * a; }
};
template <typename Operation>
__global__ void map(float *values) { values[threadIdx.x] = Operation::apply(values[threadIdx.x]); }
void map_all(float *values) { map<Doubled><<<1, 32>>>(values); }
}  // namespace inner

static std::vector<float> reference(const std::vector<float> &in) {
    std::vector<float> out(in.size());
    for (size_t i = 0; i + 1 < in.size(); ++i) out[i] = 0.5f * in[i] + 0.25f * in[i + 1];
    return out;
}

__global__ void copy(float *out, const float *in, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = in[i];
}
// A wrapper by the name of its kernel.
void copy(int n, float *out, const float *in) { copy<<<n, 1>>>(out, in, n); }

// Host code that cannot be linked here, some of it by names that a kernel has for its own variables.
extern "C" double seconds();
void report(int n);
static double start = seconds();
namespace tools {
void print(int n);
}
struct Clock {
    double elapsed();
    double since;
};
void report(int n) { tools::print(n + seconds()); }
void tools::print(int n) { printf("%f", n * seconds()); }
double Clock::elapsed() { return since = seconds(); }
double x(int n) { return n * seconds(); }
void limit(double s) { s += seconds(); }
template <typename T> T rest(T a) { return a * seconds(); }

namespace outer {
namespace {
template <typename T>
__global__ void shift(T *out, const T *in, int limit)
{
    const int x = blockIdx.x * blockDim.x + threadIdx.x;
    int first = 0, rest;
    rest = limit - x;
    const long long start = clock64(), ticks = clock();
    if (rest < 1 || clock64() < start) return;
    __nanosleep(ticks & 1);
    __stcs(out + x, __ldcg(in + x) + __ldcs(in + x));
    __stcg(out + x, __ldca(out + x) + std::max<T>(first, 1));
}
}  // namespace
}  // namespace outer

// Types of headers that this file does not include.
template <typename T> __global__ void clear(T *out) { out[threadIdx.x] = T{}; }

static cudaStream_t stream = [] {
    cudaStream_t made;
    cudaStreamCreate(&made);
    return made;
}();

int main(int argc, char **argv) {
    const int n = argc > 1 ? std::stoi(argv[1]) : 1024;
    thrust::device_vector<float> values(n);
    curandGenerator_t generator;
    Timer timer;
    timer.begin(stream);
    float *in, *out;
    CUDA_CHECK(cudaMalloc(&in, n * sizeof(float)));
    const auto begin = std::chrono::steady_clock::now();
    run(out, in, n);
    report(n + Clock().elapsed() + x(n) + rest(n) + start);
    limit(n);
    smooth<1, float><<<dim3(n / 256), dim3(256), 0, stream>>>(out, in, n);
    const char *braces = "}{";
    std::cout << braces << reference({1, 2, 3}).size() << (begin < std::chrono::steady_clock::now());
    return 0;
}
