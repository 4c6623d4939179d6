#include <functional>
#ifdef TUNED
#define LIMIT 4
#else
#undef BLOCK
#endif
struct Key { int k; };
namespace std {
template <> struct hash<Key> { size_t operator()(const Key &key) const { return key.k; } };
}
extern "C" void called(float *x) { x[0] = 1; }
extern "C" __global__ void other(float *out) { out[0] = 1; }
extern "C" __global__ void __launch_bounds__(BLOCK) copy(float *out, const float *in, int n)
{
    __shared__ float tile[BLOCK];
    tile[threadIdx.x] = in[n - 1];
    out[threadIdx.x] = tile[BLOCK - 1 - threadIdx.x] + BAD;
}
