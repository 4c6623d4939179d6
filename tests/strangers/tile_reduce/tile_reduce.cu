#include <cooperative_groups.h>

namespace cg = cooperative_groups;

__device__ unsigned long long add_up(cg::thread_block_tile<TILE> const& tile, unsigned long long x) {
  for (int offset = tile.size() / 2; offset > 0; offset /= 2) {
    x += tile.shfl_down(x, offset);
  }
  return x;
}

__global__ void tileReduce(int const* in, unsigned long long* out, int total) {
  auto block = cg::this_thread_block();
  auto tile = cg::tiled_partition<TILE>(block);

  unsigned long long mine = 0;
  for (int i = blockIdx.x * blockDim.x + block.thread_rank(); i < total; i += gridDim.x * blockDim.x)
    mine += in[i];

  unsigned long long sum = add_up(tile, mine);
  if (tile.thread_rank() == 0) atomicAdd(out, sum);
}
