// Products of a block's rows, ROWS of them, with all columns of a layer: a thread keeps a block of
// ROWS_A_THREAD x N elements in registers, slices of DEPTH of both factors pass through shared memory.
// Included in the namespaces of those who use it. ROWS, ROWS_A_THREAD and DEPTH are macros of the build.

struct alignas(16) Four {
    float v[4];
};

constexpr int PITCH = ROWS + 4;
constexpr int DOWN = ROWS / ROWS_A_THREAD;

// Which elements a thread has: fours of neighbours, far apart, so that neighbouring threads read
// neighbouring fours.
template <int COLUMNS, int N>
struct Share {
    static constexpr int ACROSS = COLUMNS / N;
    int down, across;

    __device__ __forceinline__ Share()
        : down(static_cast<int>(threadIdx.x) / ACROSS),
          across(static_cast<int>(threadIdx.x) % ACROSS) {}

    __device__ __forceinline__ bool there() const { return down < DOWN; }
    __device__ __forceinline__ int row(int i) const { return i / 4 * DOWN * 4 + down * 4 + i % 4; }
    __device__ __forceinline__ int column(int j) const {
        return j / 4 * ACROSS * 4 + across * 4 + j % 4;
    }
};

template <int COLUMNS, int N>
__device__ __forceinline__ void clear(float (&sum)[ROWS_A_THREAD][N]) {
    for (int i = 0; i < ROWS_A_THREAD; ++i)
        for (int j = 0; j < N; ++j) sum[i][j] = 0;
}

// Adds the product of a slice: `left` holds its columns one after the other, PITCH apart, `right` its
// rows.
template <int COLUMNS, int N>
__device__ __forceinline__ void add_slice(
    const float *left, const float *right, int depth, Share<COLUMNS, N> share,
    float (&sum)[ROWS_A_THREAD][N]) {
#pragma unroll
    for (int k = 0; k < depth; ++k) {
        Four a[ROWS_A_THREAD / 4], b[N / 4];
        for (int i = 0; i < ROWS_A_THREAD / 4; ++i)
            a[i] = *reinterpret_cast<const Four *>(left + k * PITCH + share.row(4 * i));
        for (int j = 0; j < N / 4; ++j)
            b[j] = *reinterpret_cast<const Four *>(right + k * COLUMNS + share.column(4 * j));
        for (int i = 0; i < ROWS_A_THREAD; ++i)
            for (int j = 0; j < N; ++j) sum[i][j] += a[i / 4].v[i % 4] * b[j / 4].v[j % 4];
    }
}

// sum = rows of `at(row, k)` times `w` (depth x columns). `slices`: 2 DEPTH (PITCH + COLUMNS) words.
template <int COLUMNS, int N, int THREADS, typename At>
__device__ __forceinline__ void product(
    At at, const float *w, int depth, int columns, float *slices, Share<COLUMNS, N> share,
    float (&sum)[ROWS_A_THREAD][N]) {
    constexpr int LEFT = DEPTH * PITCH, SLICE = LEFT + DEPTH * COLUMNS;
    Carried<float, ROWS * DEPTH, THREADS> left;
    Carried<float, DEPTH * COLUMNS, THREADS> right;
    const auto take = [&](int begin) {
        left.take([&](int i) {
            const int k = begin + i % DEPTH;
            return k < depth ? at(i / DEPTH, k) : 0;
        });
        right.take([&](int i) {
            const int k = begin + i / COLUMNS, column = i % COLUMNS;
            return k < depth && column < columns ? w[k * columns + column] : 0;
        });
    };
    const auto leave = [&](float *slice) {
        left.leave([&](int i, float v) { slice[i % DEPTH * PITCH + i / DEPTH] = v; });
        right.leave([&](int i, float v) { slice[LEFT + i] = v; });
    };
    clear<COLUMNS>(sum);
    each_slice(slices, SLICE, depth, DEPTH, take, leave, [&](const float *slice) {
        if (share.there()) add_slice(slice, slice + LEFT, DEPTH, share, sum);
    });
}
