// One thread a sub-system, its rows in shared memory: a block copies the rows of all its sub-systems
// together, coalesced, and writes the solution back the same way. Sub-systems are an odd number of
// words apart there, so that the threads of a warp never meet in a bank.

// The tile of one block: four arrays of `words` words each.
struct Tile {
    long long base;
    int m, stride, rows, words;

    __device__ __forceinline__ Tile(long long all_rows, int m_, long long subsystems)
        : base(blockIdx.x * static_cast<long long>(blockDim.x) * m_),
          m(m_),
          stride(m_ | 1) {
        const long long full = static_cast<long long>(blockDim.x) * m;
        const bool last = (blockIdx.x + 1) * static_cast<long long>(blockDim.x) >= subsystems;
        rows = static_cast<int>(last ? all_rows - base : full);
        // One more sub-system: what is left over stands behind the last.
        words = (static_cast<int>(blockDim.x) + 1) * stride;
    }

    __device__ __forceinline__ int place(int row) const { return row / m * stride + row % m; }
};

__device__ __forceinline__ void fetch(
    const Tile &tile, const REAL *a, const REAL *b, const REAL *c, const REAL *d, REAL *shared) {
    for (int row = threadIdx.x; row < tile.rows; row += blockDim.x) {
        const int to = tile.place(row);
        const long long from = tile.base + row;
        copy_async(shared + to, a + from);
        copy_async(shared + tile.words + to, b + from);
        copy_async(shared + 2 * tile.words + to, c + from);
        copy_async(shared + 3 * tile.words + to, d + from);
    }
    copies_arrived();
    __syncthreads();
}

// Row k of the thread's own sub-system; the last one runs on into the next slot.
struct Own {
    const REAL *shared;
    int words, start, m, stride;

    __device__ __forceinline__ Own(const Tile &tile, const REAL *shared_)
        : shared(shared_),
          words(tile.words),
          start(static_cast<int>(threadIdx.x) * tile.stride),
          m(tile.m),
          stride(tile.stride) {}

    __device__ __forceinline__ int at(int k) const { return start + (k < m ? k : k + stride - m); }

    __device__ __forceinline__ Row<REAL> operator()(int k) const {
        const REAL *one = shared + at(k);
        return {one[0], one[words], one[2 * words], one[3 * words]};
    }
};

extern "C" __global__ void KERNEL(reduce)(
    const REAL *a, const REAL *b, const REAL *c, const REAL *d,
    REAL *up_a, REAL *up_b, REAL *up_c, REAL *up_d,
    long long rows, int m, long long subsystems) {
    DYNAMIC_SHARED(REAL, shared);
    const Tile tile(rows, m, subsystems);
    fetch(tile, a, b, c, d, shared);
    const long long number = blockIdx.x * static_cast<long long>(blockDim.x) + threadIdx.x;
    if (number >= subsystems) return;
    const Own own(tile, shared);
    Row<REAL> up, down;
    reduce<REAL>(own, Share(number, subsystems, rows, m).count, up, down);
    put_interface(up_a, up_b, up_c, up_d, number, up, down);
}

extern "C" __global__ void KERNEL(substitute)(
    const REAL *a, const REAL *b, const REAL *c, const REAL *d,
    const REAL *interface_x, REAL *x,
    long long rows, int m, long long subsystems) {
    DYNAMIC_SHARED(REAL, shared);
    const Tile tile(rows, m, subsystems);
    fetch(tile, a, b, c, d, shared);
    const long long number = blockIdx.x * static_cast<long long>(blockDim.x) + threadIdx.x;
    REAL *kept_c = shared + 2 * tile.words, *kept_d = shared + 3 * tile.words;
    if (number < subsystems) {
        const Own own(tile, shared);
        // What a row leaves takes the place of its own c and d.
        substitute<REAL>(
            own, Share(number, subsystems, rows, m).count,
            interface_x[2 * number], interface_x[2 * number + 1],
            [&](int k, REAL c_kept, REAL d_kept) {
                kept_c[own.at(k)] = c_kept;
                kept_d[own.at(k)] = d_kept;
            },
            [&](int k) { return kept_c[own.at(k)]; },
            [&](int k) { return kept_d[own.at(k)]; },
            [&](int k, REAL value) { kept_d[own.at(k)] = value; });
    }
    __syncthreads();
    for (int row = threadIdx.x; row < tile.rows; row += blockDim.x)
        x[tile.base + row] = kept_d[tile.place(row)];
}
