// Which tile of the result a block has: experts have tiles of rows of their own.
#pragma once

struct Tile {
    int expert, row, rows, column;  // First row, rows from there to the expert's end, first column.
};

__device__ inline int tiles_of(const int *first, int expert, int experts, int block_m) {
    return expert < experts ? (first[expert + 1] - first[expert] + block_m - 1) / block_m : 0;
}

// Tiles below each other that come before the next column: their weights stay in L2.
constexpr int GROUP = 8;

// Tile number `block`, by a whole warp; false where there are fewer.
__device__ inline bool find_tile(
    const int *first, int experts, int n, int block_m, int block_n, int block, Tile &found) {
    const int lane = threadIdx.x % 32;
    int down = 0;
    for (int expert = lane; expert < experts; expert += 32)
        down += tiles_of(first, expert, experts, block_m);
    for (int far = 16; far; far /= 2)
        down += __shfl_xor_sync(0xFFFFFFFFu, down, far);
    const int across = (n + block_n - 1) / block_n;
    if (block >= down * across)
        return false;
    const int group = block / (GROUP * across), place = block % (GROUP * across);
    const int height = min(down - group * GROUP, GROUP);
    const int tile = group * GROUP + place % height;
    found.column = place / height * block_n;
    int passed = 0;
    for (int chunk = 0; chunk < experts; chunk += 32) {
        const int own = tiles_of(first, chunk + lane, experts, block_m);
        int sum = own;
        for (int far = 1; far < 32; far *= 2) {
            const int other = __shfl_up_sync(0xFFFFFFFFu, sum, far);
            sum += lane >= far ? other : 0;
        }
        const unsigned later = __ballot_sync(0xFFFFFFFFu, passed + sum > tile);
        if (later) {
            const int who = __ffs(later) - 1;
            found.expert = chunk + who;
            const int before = passed + __shfl_sync(0xFFFFFFFFu, sum - own, who);
            found.row = first[found.expert] + (tile - before) * block_m;
            found.rows = first[found.expert + 1] - found.row;
            return true;
        }
        passed += __shfl_sync(0xFFFFFFFFu, sum, 31);
    }
    return false;
}

// x sigmoid(x), times the weight of the row.
__device__ inline float activated(float sum, float scale) { return sum / (1 + expf(-sum)) * scale; }
