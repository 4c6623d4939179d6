// Both layers and the sum over tokens in one launch, by tensor cores. A warp has ROWS tokens and waits
// for no other: it fetches their embeddings as the cores want them, keeps all columns of the first
// layer in registers, and those are, as they lie, the left factor of the second one. That takes the
// freedom to add products up in any order: which element of the sum a lane holds is ours to say, as
// long as the weights, laid out once by `arrange`, agree.
// Included in the namespaces of those who use it, behind a struct Kind:
//   ELEMENTS   elements of an operand's word
//   PIECES     pieces that a factor is the sum of: 1, or 2, the second small
//   KEPT       words that four weights are kept in
//   SCALE      what weights are multiplied by, so that small pieces keep their bits
//   keep(w, v), right(v, piece, n), left(x, piece, n), multiply(sum, a, b): four weights to words and
//              the n-th word of a piece from those, or from four embeddings; a product of operands.
// ROWS, WARPS, RESIDENT and LAST_ANSWERS are macros of the build.
#include "pooled_warps.cuh"

constexpr int THREADS = WARPS * 32;
constexpr int TALL = ROWS / 16;
// Tiles whose products are added in turn: no product waits for the one before.
constexpr int GROUP = 4;
// Of four elements that a lane has of 16 along the sum.
constexpr int WORDS = 4 / Kind::ELEMENTS;
constexpr int FIRST_TILES = (FIRST + 7) / 8, SECOND_TILES = SECOND / 8;
constexpr int FIRST_STEPS = (EMBEDDING + 15) / 16, SECOND_STEPS = (FIRST + 15) / 16;

// A lane's share of 16 x 8 weights.
struct alignas(4 * Kind::KEPT) Right {
    unsigned v[Kind::KEPT];
};
constexpr int FIRST_RIGHTS = FIRST_STEPS * FIRST_TILES * 32;
constexpr int RIGHTS = FIRST_RIGHTS + SECOND_STEPS * SECOND_TILES * 32;

// Weights as the lanes want them: step after step of 16 along the sum, tile after tile of 8 columns.
extern "C" __global__ void KERNEL(arrange)(const float *w1, const float *w2, Right *out) {
    const int at = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
    if (at >= RIGHTS) return;
    const bool second = at >= FIRST_RIGHTS;
    const int i = second ? at - FIRST_RIGHTS : at;
    const int tiles = second ? SECOND_TILES : FIRST_TILES;
    const int depth = second ? FIRST : EMBEDDING, columns = second ? SECOND : FIRST;
    const int step = i / 32 / tiles, column = i / 32 % tiles * 8 + i % 32 / 4, t = i % 4;
    float w[4];
    for (int j = 0; j < 4; ++j) {
        const int k = step * 16 + (second ? j / 2 * 8 + t * 2 + j % 2 : t * 4 + j);
        const bool there = k < depth && column < columns;
        w[j] = there ? (second ? w2 : w1)[k * columns + column] * Kind::SCALE : 0;
    }
    Kind::keep(w, out[at].v);
}

// A lane's share of 16 x 16 of a left factor, as operands: along the sum, eight words each.
struct Left {
    unsigned a[WORDS / 2][4];

    __device__ __forceinline__ void take(const float (&x)[2][4], int piece) {
#pragma unroll
        for (int n = 0; n < WORDS; ++n)
#pragma unroll
            for (int half = 0; half < 2; ++half)
                a[n / 2][n % 2 * 2 + half] = Kind::left(x[half], piece, n);
    }
};

// Adds the products of one piece of each factor, GROUP tiles from `begin` on.
template <int HIGH, int TILES>
__device__ __forceinline__ void add_pieces(
    const Left (&left)[HIGH], const Right (&rights)[GROUP], int piece, int begin,
    float (*sum)[TILES][4]) {
#pragma unroll
    for (int n = 0; n < WORDS; n += 2)
#pragma unroll
        for (int j = 0; j < GROUP; ++j)
#pragma unroll
            for (int m = 0; m < HIGH; ++m) {
                if (begin + j >= TILES) continue;
                const unsigned b[2] = {
                    Kind::right(rights[j].v, piece, n), Kind::right(rights[j].v, piece, n + 1)};
                Kind::multiply(sum[m][begin + j], left[m].a[n / 2], b);
            }
}

// Adds the products of 16 elements along the sum. `x`: four of each of the lane's rows, tiles of 16 rows.
// TEN_BITS: they have but ten bits behind the point, their second piece is nothing.
template <bool TEN_BITS, int HIGH, int TILES>
__device__ __forceinline__ void add_step(
    const float (&x)[HIGH][2][4], const Right *right, float (*sum)[TILES][4]) {
    Left large[HIGH], small[HIGH];
#pragma unroll
    for (int m = 0; m < HIGH; ++m) {
        large[m].take(x[m], 0);
        if (Kind::PIECES == 2 && !TEN_BITS) small[m].take(x[m], 1);
    }
#pragma unroll
    for (int begin = 0; begin < TILES; begin += GROUP) {
        Right own[GROUP];
#pragma unroll
        for (int j = 0; j < GROUP; ++j)
            if (begin + j < TILES) own[j] = right[(begin + j) * 32];
        // The small ones first. What two small ones give is left out.
        if (Kind::PIECES == 2 && !TEN_BITS) add_pieces(small, own, 0, begin, sum);
        if (Kind::PIECES == 2) add_pieces(large, own, 1, begin, sum);
        add_pieces(large, own, 0, begin, sum);
    }
}

// Begins sums with the bias of their columns; `t2` is twice the lane's place among four.
template <int TILES>
__device__ __forceinline__ void begin_with(
    const float *bias, int columns, int t2, float (&sum)[TILES][4]) {
#pragma unroll
    for (int tile = 0; tile < TILES; ++tile)
#pragma unroll
        for (int j = 0; j < 4; ++j) {
            const int column = tile * 8 + t2 + j % 2;
            sum[tile][j] = column < columns ? bias[column] * Kind::SCALE : 0;
        }
}

// The embeddings of the lane's rows, 16 elements a step, the next ones on their way meanwhile.
struct Rows {
    INPUT input;
    INPUT::Place place[TALL][2];
    INPUT::Four next[TALL][2];
    int g, t4;

    __device__ __forceinline__ Rows(INPUT from, long long base, long long rows, int g, int t)
        : input(from), g(g), t4(t * 4) {
#pragma unroll
        for (int m = 0; m < TALL; ++m)
#pragma unroll
            for (int half = 0; half < 2; ++half) {
                const long long row = base + m * 16 + half * 8 + g;
                // Those behind the last one are not counted, but they are read.
                place[m][half] = input.place(row < rows ? row : rows - 1);
            }
        fetch(0);
    }

    __device__ __forceinline__ void fetch(int step) {
        const int k = step * 16 + t4;
#pragma unroll
        for (int m = 0; m < TALL; ++m)
#pragma unroll
            for (int half = 0; half < 2; ++half)
                next[m][half] = k < EMBEDDING ? input.four(place[m][half], k) : INPUT::Four{};
#pragma unroll
        for (int m = 0; m < TALL; ++m)
#pragma unroll
            for (int half = 0; half < 2; ++half)
                if (const void *soon = t4 == 0 ? input.soon(place[m][half], k) : nullptr) expect(soon);
    }

    // The warp's next rows begin here.
    __device__ __forceinline__ void expect_next(long long base, long long rows) const {
#pragma unroll
        for (int m = 0; m < TALL; ++m)
#pragma unroll
            for (int half = 0; half < 2; ++half) {
                const long long row = base + m * 16 + half * 8 + g;
                if (t4 == 0 && row < rows) expect(input.begin_of(row));
            }
    }

    __device__ __forceinline__ void give(float (&x)[TALL][2][4]) const {
#pragma unroll
        for (int m = 0; m < TALL; ++m)
#pragma unroll
            for (int half = 0; half < 2; ++half) next[m][half].give(x[m][half]);
    }
};

// The second layer's sums for one tile of 16 rows, from the first layer's.
__device__ __forceinline__ void second_layer(
    const float (&first)[FIRST_TILES][4], const Right *right, float (*sum)[SECOND_TILES][4]) {
#pragma unroll
    for (int step = 0; step < SECOND_STEPS; ++step) {
        float x[1][2][4];
#pragma unroll
        for (int half = 0; half < 2; ++half)
#pragma unroll
            for (int j = 0; j < 4; ++j) {
                const int tile = step * 2 + j / 2;
                const int there = tile < FIRST_TILES ? tile : 0;
                const float value = relu(first[there][half * 2 + j % 2]) / Kind::SCALE;
                x[0][half][j] = tile < FIRST_TILES ? value : 0;
            }
        add_step<false>(x, right + step * SECOND_TILES * 32, sum);
    }
}

// 64 sums over the warp's tokens between `begin` and `end`.
__device__ __forceinline__ void pool(
    const float (&second)[TALL][SECOND_TILES][4], long long base, long long begin, long long end,
    float *out) {
    const int lane = threadIdx.x % 32, g = lane / 4, t2 = lane % 4 * 2;
#pragma unroll
    for (int tile = 0; tile < SECOND_TILES; ++tile)
#pragma unroll
        for (int next = 0; next < 2; ++next) {
            float sum = 0;
#pragma unroll
            for (int m = 0; m < TALL; ++m)
#pragma unroll
                for (int half = 0; half < 2; ++half) {
                    const long long row = base + m * 16 + half * 8 + g;
                    if (row >= begin && row < end) sum += relu(second[m][tile][half * 2 + next]) / Kind::SCALE;
                }
            sum = sum_of_lanes<4>(sum);
            if (g == 0) out[tile * 8 + t2 + next] = sum;
        }
}

extern "C" __global__ void __launch_bounds__(THREADS) KERNEL(cases)(
    const void *given, const unsigned short *table, const Right *weights, const float *b1,
    const float *b2, const int *lengths, const float *w3, const float *b3, const float *w4,
    const float *b4, int *arrivals, float *partial, float *logits, long long rows, int tokens) {
#if RESIDENT
    DYNAMIC_SHARED(Right, all);
    for (int i = threadIdx.x; i < RIGHTS; i += THREADS) all[i] = weights[i];
    __syncthreads();
#else
    const Right *all = weights;
#endif
    const int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
    const Right *own = all + lane;
    const Answer answer{lengths, w3, b3, w4, b4, arrivals, partial, logits, rows, tokens};
    const long long parts = (rows + ROWS - 1) / ROWS;
    const long long step_of_parts = gridDim.x * static_cast<long long>(WARPS);
    long long part = blockIdx.x * static_cast<long long>(WARPS) + threadIdx.x / 32;
    for (; part < parts; part += step_of_parts) {
        const long long base = part * ROWS;
        Rows from(INPUT(given, table), base, rows, g, t);
        from.expect_next(base + step_of_parts * ROWS, rows);
        float first[TALL][FIRST_TILES][4], second[TALL][SECOND_TILES][4];
#pragma unroll
        for (int m = 0; m < TALL; ++m) begin_with(b1, FIRST, t * 2, first[m]);
#pragma unroll 1
        for (int step = 0; step < FIRST_STEPS; ++step) {
            float x[TALL][2][4];
            from.give(x);
            from.fetch(step + 1);
            add_step<INPUT::TEN_BITS>(x, own + step * FIRST_TILES * 32, first);
        }
#pragma unroll
        for (int m = 0; m < TALL; ++m) {
            begin_with(b2, SECOND, t * 2, second[m]);
            // Keeps the compiler from fetching one tile's weights while it is at the other: its
            // registers do not suffice for both.
            common::sync_warp();
            second_layer(first[m], own + FIRST_RIGHTS, &second[m]);
        }
        answer.hand_in(part, [&](long long begin, long long end, float *out) {
            pool(second, base, begin, end, out);
        });
    }
}
