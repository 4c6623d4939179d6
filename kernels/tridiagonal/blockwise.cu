// One thread a sub-system in shared memory, and then the whole block reduces what they leave to two
// equations: one cut goes as far as two, for the price of one, and hardly leaves an interface system.
// Stage 3 does stage 1 once more rather than keep what lay between.
#include "separate.cuh"
#include "tile.cuh"

// The two equations of every sub-system of a block, those between the first and the last of them
// separated: each gives its unknown by the first and the last one.
struct Joined {
    Row<REAL> first, last;
    InShared between;

    __device__ __forceinline__ Row<REAL> up() const {
        if (!between.rows) return first;
        const UnitRow next = between.get(0);
        return {first.a, first.b - first.c * next.a, -first.c * next.c, first.d - first.c * next.d};
    }

    __device__ __forceinline__ Row<REAL> down() const {
        if (!between.rows) return last;
        const UnitRow next = between.get(between.rows - 1);
        return {-last.a * next.a, last.b - last.a * next.c, last.c, last.d - last.a * next.d};
    }

    // Unknown `i` of them, the block's first and last one being known.
    __device__ __forceinline__ REAL unknown(int i, REAL x_first, REAL x_last) const {
        if (i == 0) return x_first;
        if (i > between.rows) return x_last;
        const UnitRow row = between.get(i - 1);
        return row.d - row.a * x_first - row.c * x_last;
    }
};

// Reduces all sub-systems of the block. `scratch`: 12 words a thread, and eight.
__device__ __forceinline__ Joined join(const Own &own, int subsystems, REAL *scratch) {
    REAL *ends = scratch + 12 * blockDim.x;
    const int between = 2 * subsystems - 2, number = threadIdx.x;
    const InShared now{scratch, between, 2 * static_cast<int>(blockDim.x)};
    const InShared next{scratch + 6 * blockDim.x, between, now.apart};
    if (own.count) {
        Row<REAL> up, down;
        reduce<REAL>(own, own.count, up, down);
        Row<REAL> *outer = reinterpret_cast<Row<REAL> *>(ends);
        if (number == 0)
            outer[0] = up;
        else
            now.put(2 * number - 1, UnitRow::of(up));
        if (number == subsystems - 1)
            outer[1] = down;
        else
            now.put(2 * number, UnitRow::of(down));
    }
    __syncthreads();
    const InShared done = separate(now, next);
    const Row<REAL> *outer = reinterpret_cast<const Row<REAL> *>(ends);
    return {outer[0], outer[1], done};
}

// Sub-systems of the tile's block.
__device__ __forceinline__ int own_subsystems(const Tile &tile, long long subsystems) {
    const long long left = subsystems - tile.block * static_cast<long long>(blockDim.x);
    return static_cast<int>(left < blockDim.x ? left : blockDim.x);
}

extern "C" __global__ void KERNEL(reduce)(
    const REAL *a, const REAL *b, const REAL *c, const REAL *d,
    REAL *up_a, REAL *up_b, REAL *up_c, REAL *up_d,
    long long rows, int m, long long subsystems) {
    DYNAMIC_SHARED(REAL, shared);
    const Tile tile(blockIdx.x, rows, m, subsystems);
    fetch(tile, a, b, c, d, shared);
    const Own own(tile, shared, rows, subsystems);
    const Joined joined = join(own, own_subsystems(tile, subsystems), shared + 4 * tile.words);
    if (threadIdx.x == 0)
        put_interface(up_a, up_b, up_c, up_d, tile.block, joined.up(), joined.down());
}

extern "C" __global__ void KERNEL(substitute)(
    const REAL *a, const REAL *b, const REAL *c, const REAL *d,
    const REAL *interface_x, REAL *x,
    long long rows, int m, long long subsystems) {
    DYNAMIC_SHARED(REAL, shared);
    const Tile tile(from_the_end(), rows, m, subsystems);
    fetch(tile, a, b, c, d, shared);
    const Own own(tile, shared, rows, subsystems);
    const Joined joined = join(own, own_subsystems(tile, subsystems), shared + 4 * tile.words);
    if (own.count) {
        const REAL x_first = interface_x[2 * tile.block], x_last = interface_x[2 * tile.block + 1];
        const int i = 2 * static_cast<int>(threadIdx.x);
        own.solve(joined.unknown(i, x_first, x_last), joined.unknown(i + 1, x_first, x_last));
    }
    __syncthreads();
    put_back(tile, shared, x);
}
