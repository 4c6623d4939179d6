#include <stdint.h>

__global__ void k_threshold(const uint16_t *src, uint8_t *dst, int w, int h, uint16_t thresh) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x;
  const int y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= w || y >= h) return;
  dst[y * w + x] = src[y * w + x] > thresh ? 255 : 0;
}
