// Histogram of an 8 bit image.
//   d_image    : pixel values
//   num_pixels : how many
//   d_hist     : 256 counters, set to zero by the caller
__global__ void histogramKernel(const unsigned char* d_image, int num_pixels, unsigned int* d_hist)
{
  int idx = threadIdx.x + blockDim.x * blockIdx.x;
  if (idx < num_pixels)
  {
    atomicAdd(&d_hist[d_image[idx]], 1u);
  }
}

// Brightness of 8 and of 16 bit images; both names are the same.
__global__ void brightnessKernel(const unsigned char* d_image, int num_pixels, unsigned int* d_sum)
{
  for (int i = threadIdx.x; i < num_pixels; i += blockDim.x) atomicAdd(d_sum, d_image[i]);
}

__global__ void brightnessKernel(const unsigned short* d_image, int num_pixels, unsigned int* d_sum)
{
  for (int i = threadIdx.x; i < num_pixels; i += blockDim.x) atomicAdd(d_sum, d_image[i]);
}
