// Fast Walsh-Hadamard transform; n must be a multiple of 256 * SEGMENTS.
__global__ void fwht256(int* __restrict__ data) {
  __shared__ int s_data[SEGMENTS][256];
  int* const s = s_data[threadIdx.y];
  int* const d = data + (blockIdx.x * SEGMENTS + threadIdx.y) * 256;
  const int t = threadIdx.x;

  s[t] = d[t];
  s[t + 128] = d[t + 128];

  for (int h = 1; h < 256; h <<= 1) {
    __syncthreads();
    const int i = (t / h) * 2 * h + t % h;
    const int a = s[i], b = s[i + h];
    s[i] = a + b;
    s[i + h] = a - b;
  }

  __syncthreads(); // done
  d[t] = s[t];
  d[t + 128] = s[t + 128];
}
