__global__ void adam_step(float* __restrict__ param, const float* __restrict__ grad,
                          float* __restrict__ m, float* __restrict__ v,
                          float lr, float beta1, float beta2, float eps, int t,
                          size_t num_params)
{
    size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= num_params) return;

    const float g  = grad[i];
    const float mi = beta1 * m[i] + (1.0f - beta1) * g;
    const float vi = beta2 * v[i] + (1.0f - beta2) * g * g;
    m[i] = mi;
    v[i] = vi;

    // bias correction
    const float m_hat = mi / (1.0f - powf(beta1, (float)t));
    const float v_hat = vi / (1.0f - powf(beta2, (float)t));
    param[i] -= lr * m_hat / (sqrtf(v_hat) + eps);
}
