// Bias and ReLU while the product is still in registers: each layer's output is written once.
#include "elementwise.cuh"
#include "fused_first.cuh"

extern "C" __global__ void __launch_bounds__(SECOND_THREADS) KERNEL(second)(
    const float *h, const float *w, const float *bias, float *out, long long rows) {
    second_layer(h, w, out, rows,
                 [&](float value, int column) { return relu(value + bias[column]); });
}
