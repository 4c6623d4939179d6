// Both layers and the sum over tokens in one launch. A warp has ROWS tokens and waits for no other:
// a lane has a fourth of the rows and an eighth of the columns of both layers in registers, so that
// with 24 rows each word that it reads serves 4.6 products. RESIDENT: the weights lie in shared memory,
// blocks stay until all is done; or they come from the caches.
// ROWS, WARPS, RESIDENT and LAST_ANSWERS are macros of the build.
#include "pooled_warps.cuh"

constexpr int THREADS = WARPS * 32;
constexpr int HIGH = ROWS / 4;
constexpr int DEPTH = 4;
// Columns of a lane: fours of neighbours. Those of the first layer end in the next row's weights: what
// two lanes have in their last four is not counted. With 19 columns, three of them single ones, the
// compiler gives a sum and a factor the same of an SM's two register banks more often, and both have to
// be read one after the other.
constexpr int FIRST_PITCH = 152, FIRST_WIDE = 20, SECOND_WIDE = SECOND / 8;
constexpr int ALL_HAVE = 16, LAST_OWNERS = 6;
constexpr int FIRST_WEIGHTS = EMBEDDING * FIRST_PITCH;
constexpr int WEIGHTS = FIRST_WEIGHTS + FIRST_PITCH * SECOND;
// Slices on their way: one that is worked on, one that all can see, one that is written.
constexpr int SLICES_KEPT = 3, SLAB = SLICES_KEPT * DEPTH * ROWS;

__device__ __forceinline__ int column_of(int across, int j) {
    return (j / 4 * 8 + across) * 4 + j % 4;
}

// Both layers' weights one behind the other, zeros where the network has no column or row.
extern "C" __global__ void KERNEL(arrange)(const float *w1, const float *w2, float *out) {
    const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
    if (i >= WEIGHTS) return;
    const int row = i / FIRST_PITCH, column = i % FIRST_PITCH, second = i - FIRST_WEIGHTS;
    if (second < 0)
        out[i] = column < FIRST ? w1[row * FIRST + column] : 0;
    else
        out[i] = second < FIRST * SECOND ? w2[second] : 0;
}

template <int N>
struct alignas(N % 4 == 0 ? 16 : 4 * N) Some {
    float v[N];
};

// A row of weights, the lane's columns.
template <int WIDE>
__device__ __forceinline__ void columns_from(const float *row, int across, float (&w)[WIDE]) {
#pragma unroll
    for (int j = 0; j < WIDE; j += 4) {
        const Some<4> four = *reinterpret_cast<const Some<4> *>(row + column_of(across, j));
#pragma unroll
        for (int n = 0; n < 4; ++n) w[j + n] = four.v[n];
    }
}

template <int WIDE>
__device__ __forceinline__ void begin_with(
    const float *bias, int columns, int across, float (&sum)[HIGH][WIDE]) {
#pragma unroll
    for (int j = 0; j < WIDE; ++j) {
        const int column = column_of(across, j);
        const float value = column < columns ? bias[column] : 0;
#pragma unroll
        for (int i = 0; i < HIGH; ++i) sum[i][j] = value;
    }
}

// Column after column, rows up and down: at each turn a row's factor serves twice in a row, and is read
// once.
template <int WIDE>
__device__ __forceinline__ void add(
    const float (&x)[HIGH], const float (&w)[WIDE], float (&sum)[HIGH][WIDE]) {
#pragma unroll
    for (int j = 0; j < WIDE; ++j)
#pragma unroll
        for (int n = 0; n < HIGH; ++n) {
            const int i = j % 2 ? HIGH - 1 - n : n;
            sum[i][j] += x[i] * w[j];
        }
}

// The lane's rows of one element of the embeddings.
__device__ __forceinline__ void rows_from(const float *own, float (&x)[HIGH]) {
    constexpr int PART = HIGH % 4 == 0 ? 4 : 2;
#pragma unroll
    for (int i = 0; i < HIGH; i += PART) {
        const auto some = *reinterpret_cast<const Some<PART> *>(own + i);
#pragma unroll
        for (int n = 0; n < PART; ++n) x[i + n] = some.v[n];
    }
}

// `slab`: SLAB words of the warp's own, embeddings on their way from lanes that fetch to lanes that
// multiply, element after element. Whatever is multiplied was read from shared memory a step before.
// There is no branch in a slice, so that the compiler may fetch and leave between multiplications.
__device__ __forceinline__ void first_layer(
    INPUT input, long long base, long long rows, const float *weights, float *slab, int lane,
    float (&sum)[HIGH][FIRST_WIDE]) {
    constexpr int SLICES = EMBEDDING / DEPTH;
    const int down = lane / 8, across = lane % 8;
    // Lanes beyond the warp's rows fetch and leave the last one, too.
    const int own = lane < ROWS ? lane : ROWS - 1;
    const long long row = base + own;
    // Those behind the last one are not counted, but they are read.
    const auto place = input.place(row < rows ? row : rows - 1);
    const auto leave = [&](INPUT::Four four, int kept) {
        float x[DEPTH];
        four.give(x);
#pragma unroll
        for (int k = 0; k < DEPTH; ++k) slab[(kept * DEPTH + k) * ROWS + own] = x[k];
    };
    leave(input.four(place, 0), 0);
    leave(input.four(place, DEPTH), 1);
    common::sync_warp();
    float x[2][HIGH], w[2][FIRST_WIDE];
    rows_from(slab + down * HIGH, x[0]);
    columns_from(weights, across, w[0]);
#pragma unroll 1
    for (int slice = 0, now = 0; slice < SLICES; ++slice) {
        const int soon = now == SLICES_KEPT - 1 ? 0 : now + 1;
        const int later = soon == SLICES_KEPT - 1 ? 0 : soon + 1;
        // Behind the last slice it fetches, and reads, what nobody uses.
        const INPUT::Four next = input.four(place, (slice + 2 < SLICES ? slice + 2 : 0) * DEPTH);
#pragma unroll
        for (int k = 0; k < DEPTH; ++k) {
            const int element = k + 1 < DEPTH ? now * DEPTH + k + 1 : soon * DEPTH;
            rows_from(slab + element * ROWS + down * HIGH, x[(k + 1) % 2]);
            columns_from(
                weights + (slice * DEPTH + k + 1) * FIRST_PITCH, across, w[(k + 1) % 2]);
            add(x[k % 2], w[k % 2], sum);
        }
        leave(next, later);
        now = soon;
        common::sync_warp();
    }
}

// What the first layer left in one lane's columns goes to all lanes of the same rows, lane after lane.
__device__ __forceinline__ void second_layer(
    const float (&first)[HIGH][FIRST_WIDE], const float *weights, int lane,
    float (&sum)[HIGH][SECOND_WIDE]) {
    const int across = lane % 8;
    const auto hand_on = [&](int owner, int begin, int end) {
#pragma unroll
        for (int j = begin; j < end; ++j) {
            float x[HIGH], w[SECOND_WIDE];
#pragma unroll
            for (int i = 0; i < HIGH; ++i) x[i] = common::shuffle(first[i][j], lane - across + owner);
            columns_from(weights + column_of(owner, j) * SECOND, across, w);
            add(x, w, sum);
        }
    };
#pragma unroll 1
    for (int owner = 0; owner < 8; ++owner) hand_on(owner, 0, ALL_HAVE);
#pragma unroll 1
    for (int owner = 0; owner < LAST_OWNERS; ++owner) hand_on(owner, ALL_HAVE, FIRST_WIDE);
}

// 64 sums over the warp's tokens between `begin` and `end`.
__device__ __forceinline__ void pool(
    const float (&second)[HIGH][SECOND_WIDE], long long base, long long begin, long long end,
    int lane, float *out) {
    const int down = lane / 8, across = lane % 8;
#pragma unroll
    for (int j = 0; j < SECOND_WIDE; ++j) {
        float sum = 0;
#pragma unroll
        for (int i = 0; i < HIGH; ++i) {
            const long long row = base + down * HIGH + i;
            if (row >= begin && row < end) sum += relu(second[i][j]);
        }
        sum = sum_of_lanes<8>(sum);
        if (down == 0) out[column_of(across, j)] = sum;
    }
}

extern "C" __global__ void __launch_bounds__(THREADS) KERNEL(cases)(
    const void *given, const unsigned short *table, const float *weights, const float *b1,
    const float *b2, const int *lengths, const float *w3, const float *b3, const float *w4,
    const float *b4, int *arrivals, float *partial, float *logits, long long rows, int tokens) {
    DYNAMIC_SHARED(float, shared);
    float *slab = shared + threadIdx.x / 32 * SLAB;
#if RESIDENT
    float *all = shared + WARPS * SLAB;
    for (int i = threadIdx.x * 4; i < WEIGHTS; i += THREADS * 4)
        *reinterpret_cast<Some<4> *>(all + i) = *reinterpret_cast<const Some<4> *>(weights + i);
    __syncthreads();
#else
    const float *all = weights;
#endif
    const int lane = threadIdx.x % 32, across = lane % 8;
    const Answer answer{lengths, w3, b3, w4, b4, arrivals, partial, logits, rows, tokens};
    const long long parts = (rows + ROWS - 1) / ROWS;
    long long part = blockIdx.x * static_cast<long long>(WARPS) + threadIdx.x / 32;
    for (; part < parts; part += gridDim.x * static_cast<long long>(WARPS)) {
        const long long base = part * ROWS;
        float first[HIGH][FIRST_WIDE], second[HIGH][SECOND_WIDE];
        begin_with(b1, FIRST, across, first);
        first_layer(INPUT(given, table), base, rows, all, slab, lane, first);
#pragma unroll
        for (int i = 0; i < HIGH; ++i)
#pragma unroll
            for (int j = 0; j < FIRST_WIDE; ++j) first[i][j] = relu(first[i][j]);
        begin_with(b2, SECOND, across, second);
        second_layer(first, all + FIRST_WEIGHTS, lane, second);
        answer.hand_in(part, [&](long long begin, long long end, float *out) {
            pool(second, base, begin, end, lane, out);
        });
    }
}
