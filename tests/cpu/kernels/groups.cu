// Cooperative groups, as everyday kernels use them.
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>
namespace cg = cooperative_groups;

__global__ void softmax(float *out, const float *in, int n) {
    namespace groups = cooperative_groups;
    groups::thread_block block = groups::this_thread_block();
    auto warp = groups::tiled_partition<32>(block);
    __shared__ float shared[32];
    const float *row = in + blockIdx.x * n;
    float largest = -INFINITY, sum = 0;
    for (int i = block.thread_rank(); i < n; i += block.size()) largest = fmaxf(largest, row[i]);
    largest = cg::reduce(warp, largest, cg::greater<float>());
    if (warp.thread_rank() == 0) shared[warp.meta_group_rank()] = largest;
    block.sync();  // 1
    for (unsigned w = 0; w < warp.meta_group_size(); ++w) largest = fmaxf(largest, shared[w]);
    block.sync();  // 2
    for (int i = block.thread_rank(); i < n; i += block.size()) sum += expf(row[i] - largest);
    sum = cg::reduce(warp, sum, cg::plus<float>());
    if (warp.thread_rank() == 0) shared[warp.meta_group_rank()] = sum;
    cg::sync(block);  // 3
    sum = 0;
    for (unsigned w = 0; w < warp.meta_group_size(); ++w) sum += shared[w];
    for (int i = block.thread_rank(); i < n; i += block.size())
        out[blockIdx.x * n + i] = expf(row[i] - largest) / sum;
}

struct Triple { int a, b, c; };

__global__ void tiles(int *out, int columns) {
    cg::thread_block block = cg::this_thread_block();
    const unsigned thread = block.thread_rank();
    int *own = out + thread * columns;
    cg::thread_block_tile<8> tile = cg::tiled_partition<8>(block);
    own[0] = tile.shfl(int(thread), 3);
    own[1] = tile.shfl_up(int(thread), 1);
    own[2] = tile.shfl_down(int(thread), 2);
    own[3] = tile.shfl_xor(int(thread), 5);
    own[4] = tile.ballot(thread % 3 == 0);
    own[5] = tile.any(thread == 9) + 2 * tile.all(thread < 24);
    own[6] = tile.meta_group_rank() * 100 + tile.meta_group_size();
    own[7] = tile.shfl(Triple{int(thread), 2, int(thread) + 1}, 1).c;
    own[8] = cg::reduce(tile, int(thread), cg::less<int>());
    own[9] = cg::reduce(tile, 1 << tile.thread_rank(), cg::bit_or<int>());
    own[10] = cg::inclusive_scan(tile, 2);
    own[11] = cg::exclusive_scan(tile, int(tile.thread_rank()), cg::plus<int>());
    own[12] = cg::reduce(tile, int(thread), [](int a, int b) { return a > b ? a : b; });
    auto pair = cg::tiled_partition<2>(tile);
    own[13] = pair.num_threads() * 100 + pair.meta_group_size() * 10 + pair.thread_rank();
    own[14] = -1;
    if (thread % 3 == 1) {
        cg::coalesced_group active = cg::coalesced_threads();
        own[14] = active.shfl(int(thread), 1) * 10000 + active.size() * 100 + active.thread_rank();
    }
    cg::thread_group any_group = cg::tiled_partition(block, 4);
    any_group.sync();
    own[15] = any_group.size() * 10 + any_group.thread_rank();
    own[16] = cg::labeled_partition(tile, thread % 4).size();
    own[17] = block.group_index().x + block.thread_index().x + block.dim_threads().x;
}

// Each lane reads what its neighbour wrote.
__global__ void neighbours(int *out) {
    extern __shared__ int values[];
    auto warp = cg::tiled_partition<32>(cg::this_thread_block());
    values[threadIdx.x] = threadIdx.x;
    warp.sync();
    out[threadIdx.x] = values[threadIdx.x / 32 * 32 + (warp.thread_rank() + 1) % 32] +
                       values[threadIdx.x / 32 * 32 + (warp.thread_rank() + 31) % 32];
}
