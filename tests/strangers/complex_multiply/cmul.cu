#include <cuComplex.h>

typedef cuComplex Complex;

static __device__ __host__ inline Complex ComplexScale(Complex a, float s) {
  return make_cuComplex(s * a.x, s * a.y);
}

// Correlation in frequency space: f times the conjugate of g.
static __global__ void ComplexPointwiseMulAndScale(const Complex *f, const Complex *g, Complex *out,
                                                   float scale, int len) {
  const int numThreads = blockDim.x * gridDim.x;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < len; i += numThreads) {
    out[i] = ComplexScale(cuCmulf(f[i], cuConjf(g[i])), scale);
  }
}
