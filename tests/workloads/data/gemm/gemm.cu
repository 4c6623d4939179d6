enum Mode { fast, slow };
struct Plus { };
template <typename T, typename U> struct Pair { };
template <int BM, int BN, typename T, bool SAFE = true>
__global__ void gemm(T *c, const T *a, const T *b, int n) { /* gemm2(x) */ }
__global__ void plain(float *c) { c[0] = UNROLL; }
