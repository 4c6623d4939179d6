// The first layer, bias and ReLU while the product is still in registers.
#include "layers.cuh"

extern "C" __global__ void __launch_bounds__(FIRST_THREADS) KERNEL(first)(
    const void *given, const unsigned short *table, const float *w, const float *bias, float *out,
    long long rows) {
    first_layer(INPUT(given, table), w, out, rows,
                [&](float value, int column) { return relu(value + bias[column]); });
}
