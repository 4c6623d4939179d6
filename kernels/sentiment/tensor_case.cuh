// Both layers and the sum over tokens in one launch, by tensor cores: as fused_case. Included in the
// namespaces of those who use it, behind a struct Kind: ELEMENTS of a word, `word(low, high)` makes one
// (high counts where there are two), `add(sum, a, b)` adds the product of two operands.
// ROWS, DEPTH (words of a slice) and WARPS_ACROSS are macros of the build.
#include "pooling.cuh"

constexpr int WARPS_DOWN = ROWS / 32;
constexpr int THREADS = WARPS_DOWN * WARPS_ACROSS * 32;
constexpr int ELEMENTS = Kind::ELEMENTS;
constexpr int SLICE_PITCH = DEPTH + 4;
constexpr int HIDDEN_WORDS = FIRST_PADDED / ELEMENTS, HIDDEN_PITCH = HIDDEN_WORDS + 4;

// Where a thread stands: its warp has 32 rows and a share of the columns.
struct Place {
    int down, across, g, t;

    __device__ __forceinline__ Place() {
        const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
        down = warp / WARPS_ACROSS;
        across = warp % WARPS_ACROSS;
        g = lane / 4;
        t = lane % 4;
    }
};

// Adds the products of DEPTH words: `left` row after row, `right` word after word.
template <int COLUMNS, int TILES>
__device__ __forceinline__ void add_slice(
    const unsigned *left, int left_pitch, const unsigned *right, Place place,
    float (&sum)[2][TILES][4]) {
    constexpr int PITCH = COLUMNS + 8;
#pragma unroll
    for (int k = 0; k < DEPTH; k += 8) {
        unsigned a[2][4];
#pragma unroll
        for (int m = 0; m < 2; ++m) {
            const unsigned *own =
                left + (place.down * 32 + m * 16 + place.g) * left_pitch + k + place.t;
            a[m][0] = own[0];
            a[m][1] = own[8 * left_pitch];
            a[m][2] = own[4];
            a[m][3] = own[8 * left_pitch + 4];
        }
#pragma unroll
        for (int n = 0; n < TILES; ++n) {
            const unsigned *own =
                right + (k + place.t) * PITCH + (place.across * TILES + n) * 8 + place.g;
            const unsigned b[2] = {own[0], own[4 * PITCH]};
#pragma unroll
            for (int m = 0; m < 2; ++m) Kind::add(sum[m][n], a[m], b);
        }
    }
}

// Hands every element of the thread's part to `visit(row, column, value, next)`, two neighbours of a
// row at a time.
template <int TILES, typename Visit>
__device__ __forceinline__ void each_pair(
    const float (&sum)[2][TILES][4], Place place, Visit visit) {
#pragma unroll
    for (int m = 0; m < 2; ++m)
#pragma unroll
        for (int n = 0; n < TILES; ++n)
#pragma unroll
            for (int half = 0; half < 2; ++half) {
                const int row = place.down * 32 + m * 16 + half * 8 + place.g;
                const int column = (place.across * TILES + n) * 8 + place.t * 2;
                visit(row, column, sum[m][n][2 * half], sum[m][n][2 * half + 1]);
            }
}

template <int TILES>
__device__ __forceinline__ void clear(float (&sum)[2][TILES][4]) {
#pragma unroll
    for (int m = 0; m < 2; ++m)
#pragma unroll
        for (int n = 0; n < TILES; ++n)
#pragma unroll
            for (int i = 0; i < 4; ++i) sum[m][n][i] = 0;
}

// Word `word` of a column of the weights; 0 where there is none.
template <int COLUMNS>
__device__ __forceinline__ unsigned weight(
    const float *w, int depth, int columns, int word, int column) {
    const int k = word * ELEMENTS;
    const auto at = [&](int k) {
        return k < depth && column < columns ? w[k * columns + column] : 0;
    };
    return Kind::word(at(k), ELEMENTS == 2 ? at(k + 1) : 0);
}

template <int WORDS>
struct Carried {
    static constexpr int MOST = (WORDS + THREADS - 1) / THREADS;
    unsigned v[MOST];

    template <typename From>
    __device__ __forceinline__ void take(From from) {
        for (int n = 0; n < MOST; ++n) {
            const int i = n * THREADS + static_cast<int>(threadIdx.x);
            if (i < WORDS) v[n] = from(i);
        }
    }

    template <typename To>
    __device__ __forceinline__ void leave(To to) const {
        for (int n = 0; n < MOST; ++n) {
            const int i = n * THREADS + static_cast<int>(threadIdx.x);
            if (i < WORDS) to(i, v[n]);
        }
    }
};

extern "C" __global__ void __launch_bounds__(THREADS) KERNEL(cases)(
    const void *given, const unsigned short *table, const float *w1, const float *b1,
    const float *w2, const float *b2, const int *lengths, float *partial, long long rows,
    int tokens) {
    DYNAMIC_SHARED(unsigned, shared);
    constexpr int RIGHT = FIRST_PADDED + 8, LEFT_WORDS = ROWS * SLICE_PITCH;
    constexpr int SLICE = LEFT_WORDS + DEPTH * RIGHT;
    unsigned *hidden = shared, *slices = shared + ROWS * HIDDEN_PITCH;
    const long long base = blockIdx.x * static_cast<long long>(ROWS);
    const INPUT input(given, table);
    const Place place;
    {
        constexpr int TILES = FIRST_PADDED / WARPS_ACROSS / 8;
        constexpr int WORDS = (EMBEDDING + ELEMENTS - 1) / ELEMENTS;
        Carried<ROWS * DEPTH> left;
        Carried<DEPTH * FIRST_PADDED> right;
        const auto take = [&](int begin) {
            left.take([&](int i) {
                const long long row = base + i / DEPTH;
                const int k = (begin + i % DEPTH) * ELEMENTS;
                const bool there = row < rows && k < EMBEDDING;
                const float low = there ? input.at(row, k) : 0;
                const float high = ELEMENTS == 2 && there ? input.at(row, k + 1) : 0;
                return Kind::word(low, high);
            });
            right.take([&](int i) {
                return weight<FIRST_PADDED>(
                    w1, EMBEDDING, FIRST, begin + i / FIRST_PADDED, i % FIRST_PADDED);
            });
        };
        const auto leave = [&](unsigned *slice) {
            left.leave([&](int i, unsigned v) { slice[i / DEPTH * SLICE_PITCH + i % DEPTH] = v; });
            right.leave([&](int i, unsigned v) {
                slice[LEFT_WORDS + i / FIRST_PADDED * RIGHT + i % FIRST_PADDED] = v;
            });
        };
        float sum[2][TILES][4];
        clear(sum);
        take(0);
        leave(slices);
        __syncthreads();
        for (int begin = 0, now = 0; begin < WORDS; begin += DEPTH, now ^= 1) {
            const bool more = begin + DEPTH < WORDS;
            if (more) take(begin + DEPTH);
            const unsigned *slice = slices + now * SLICE;
            add_slice<FIRST_PADDED>(slice, SLICE_PITCH, slice + LEFT_WORDS, place, sum);
            if (more) leave(slices + (now ^ 1) * SLICE);
            __syncthreads();
        }
        each_pair(sum, place, [&](int row, int column, float value, float next) {
            const float one = column < FIRST ? relu(value + b1[column]) : 0;
            const float two = column + 1 < FIRST ? relu(next + b1[column + 1]) : 0;
            unsigned *own = hidden + row * HIDDEN_PITCH + column / ELEMENTS;
            own[0] = Kind::word(one, two);
            if (ELEMENTS == 1) own[1] = Kind::word(two, 0);
        });
    }
    constexpr int TILES = SECOND / WARPS_ACROSS / 8;
    float sum[2][TILES][4];
    clear(sum);
    for (int begin = 0; begin < HIDDEN_WORDS; begin += DEPTH) {
        __syncthreads();
        for (int i = threadIdx.x; i < DEPTH * SECOND; i += THREADS)
            slices[i / SECOND * (SECOND + 8) + i % SECOND] =
                weight<SECOND>(w2, FIRST, SECOND, begin + i / SECOND, i % SECOND);
        __syncthreads();
        add_slice<SECOND>(hidden + begin, HIDDEN_PITCH, slices, place, sum);
    }
    __syncthreads();
    float *tokens_out = reinterpret_cast<float *>(hidden);
    each_pair(sum, place, [&](int row, int column, float value, float next) {
        tokens_out[row * SECOND + column] = relu(value + b2[column]);
        tokens_out[row * SECOND + column + 1] = relu(next + b2[column + 1]);
    });
    __syncthreads();
    pool_rows<THREADS>(
        tokens_out, tokens_out + ROWS * SECOND, lengths, partial, rows, tokens);
}
