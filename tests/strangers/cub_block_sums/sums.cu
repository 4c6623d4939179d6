#include <cub/cub.cuh>

template <int THREADS, int ITEMS>
__global__ void BlockSumKernel(const int *d_in, int *d_sums, int num_items)
{
    using BlockReduce = cub::BlockReduce<int, THREADS>;
    __shared__ typename BlockReduce::TempStorage temp_storage;

    int items[ITEMS];
    const int offset = blockIdx.x * THREADS * ITEMS;
    cub::LoadDirectStriped<THREADS>(threadIdx.x, d_in + offset, items, num_items - offset, 0);

    const int sum = BlockReduce(temp_storage).Sum(items);
    if (threadIdx.x == 0)
        d_sums[blockIdx.x] = sum;
}
