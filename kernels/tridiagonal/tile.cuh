// Rows of all sub-systems of a block in shared memory: the block copies them together, coalesced. Sub-
// systems are an odd number of words apart there, so that the threads of a warp never meet in a
// bank. Included by the layouts that use it, each in its own namespace.

// The tile of block number `block`: four arrays of `words` words each.
struct Tile {
    long long block, base;
    int m, stride, rows, words;

    __device__ __forceinline__ Tile(
        long long block_, long long all_rows, int m_, long long subsystems)
        : block(block_),
          base(block_ * static_cast<long long>(blockDim.x) * m_),
          m(m_),
          stride(m_ | 1) {
        const long long full = static_cast<long long>(blockDim.x) * m;
        const bool last = (block + 1) * static_cast<long long>(blockDim.x) >= subsystems;
        rows = static_cast<int>(last ? all_rows - base : full);
        // One more sub-system: what is left over stands behind the last.
        words = (static_cast<int>(blockDim.x) + 1) * stride;
    }

    // Hands every row of this thread and its place in shared memory to `visit`. The next row is a
    // block's width further: its place follows from the last one without a division.
    template <typename Visit>
    __device__ __forceinline__ void each_row(Visit visit) const {
        const int width = blockDim.x, number = threadIdx.x;
        const int over = width % m, step = width / m * stride + over;
        int k = number % m, place = number / m * stride + k;
        for (int row = number; row < rows; row += width) {
            visit(row, place);
            k += over;
            place += step;
            if (k >= m) {
                k -= m;
                place += stride - m;
            }
        }
    }
};

// Stage 3 takes the blocks from the last to the first: what stage 1 read last is still in the L2.
__device__ __forceinline__ long long from_the_end() { return gridDim.x - 1LL - blockIdx.x; }

__device__ __forceinline__ void fetch(
    const Tile &tile, const REAL *a, const REAL *b, const REAL *c, const REAL *d, REAL *shared) {
    tile.each_row([&](int row, int to) {
        const long long from = tile.base + row;
        copy_async(shared + to, a + from);
        copy_async(shared + tile.words + to, b + from);
        copy_async(shared + 2 * tile.words + to, c + from);
        copy_async(shared + 3 * tile.words + to, d + from);
    });
    copies_arrived();
    __syncthreads();
}

// The thread's own sub-system: row k of it, and how many it has (none beyond the last sub-system). The
// last one runs on into the next slot.
struct Own {
    REAL *shared;
    int words, start, m, stride, count;
    long long number;

    __device__ __forceinline__ Own(
        const Tile &tile, REAL *shared_, long long rows, long long subsystems)
        : shared(shared_),
          words(tile.words),
          start(static_cast<int>(threadIdx.x) * tile.stride),
          m(tile.m),
          stride(tile.stride),
          number(tile.block * static_cast<long long>(blockDim.x) + threadIdx.x) {
        count = number < subsystems ? Share(number, subsystems, rows, m).count : 0;
    }

    __device__ __forceinline__ int at(int k) const { return start + (k < m ? k : k + stride - m); }

    __device__ __forceinline__ Row<REAL> operator()(int k) const {
        const REAL *one = shared + at(k);
        return {one[0], one[words], one[2 * words], one[3 * words]};
    }

    // Stage 3; what a row leaves takes the place of its own c and d, the solution that of d.
    __device__ __forceinline__ void solve(REAL x_first, REAL x_last) const {
        REAL *kept_c = shared + 2 * words, *kept_d = shared + 3 * words;
        substitute<REAL>(
            *this, count, x_first, x_last,
            [&](int k, REAL c_kept, REAL d_kept) {
                kept_c[at(k)] = c_kept;
                kept_d[at(k)] = d_kept;
            },
            [&](int k) { return kept_c[at(k)]; },
            [&](int k) { return kept_d[at(k)]; },
            [&](int k, REAL value) { kept_d[at(k)] = value; });
    }
};

// Takes the solution, which lies where d did, back to global memory.
__device__ __forceinline__ void put_back(const Tile &tile, const REAL *shared, REAL *x) {
    const REAL *from = shared + 3 * tile.words;
    tile.each_row([&](int row, int place) { store_last(x + tile.base + row, from[place]); });
}
