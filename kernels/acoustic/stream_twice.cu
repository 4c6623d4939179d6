// Two time steps per pass along z, for order 2: the first step's points stay on the chip, so that the
// second reads none of them from memory. A warp has a row of 32 * POINTS points; neighbours along x
// come from its lanes, those along y from shared memory. Beyond the boundary u is zero.
// Macros of a build: TILE_Y rows per block, ROWS of them per warp, STAGES, BLOCKS_PER_SM, ALIGNED (as in
// streaming.cuh). The outermost points of a tile belong to the halo of the second step.
#include "common/async_copy.cuh"
#include "common/dynamic_shared.cuh"
#include "common/warp.cuh"

static_assert(RADIUS == 1 && ALIGNED, "order 2, rows at multiples of 16 bytes");
constexpr int POINTS = 16 / sizeof(REAL);
struct alignas(POINTS * sizeof(REAL)) Points {
    REAL v[POINTS];
};
constexpr int WIDTH = 32 * POINTS, HEIGHT = TILE_Y + 2;
constexpr int PLANE = WIDTH * HEIGHT;
constexpr int WARPS = TILE_Y / ROWS, THREADS = 32 * WARPS;
// The plane before is needed again: its neighbours belong to the first step of its points.
constexpr int DEPTH = STAGES + 1;
constexpr int WRITTEN_X = WIDTH - 2 * POINTS, WRITTEN_Y = TILE_Y - 2;

// A row of a tile with the rows beside it.
struct Rows {
    const Points &above, &here, &below;
};

// h^2 times the Laplacian along x and y, without the centre's weight.
__device__ __forceinline__ Points around(const Rows &rows, int lane) {
    const REAL left = common::shuffle(rows.here.v[POINTS - 1], lane ? lane - 1 : 0);
    const REAL right = common::shuffle(rows.here.v[0], lane < 31 ? lane + 1 : 31);
    Points sum;
#pragma unroll
    for (int i = 0; i < POINTS; ++i)
        sum.v[i] = ((i ? rows.here.v[i ? i - 1 : 0] : left) +
                    (i < POINTS - 1 ? rows.here.v[i < POINTS - 1 ? i + 1 : i] : right)) +
                   (rows.above.v[i] + rows.below.v[i]);
    return sum;
}

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS_PER_SM)
    KERNEL(stream_twice)(REAL *__restrict__ u_new, REAL *__restrict__ u_between,
                         const REAL *__restrict__ u, const REAL *__restrict__ u_old,
                         const REAL *__restrict__ velocity, int nx, int ny, int nz, int pitch,
                         int chunk, REAL scale) {
    DYNAMIC_SHARED(REAL, planes);
    REAL *between = planes + DEPTH * PLANE;  // two planes of the first step, without halo
    constexpr REAL weight[2] = WEIGHTS;
    const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
    const int x = static_cast<int>(blockIdx.x) * WRITTEN_X + (lane - 1) * POINTS;
    const int top = static_cast<int>(blockIdx.y) * WRITTEN_Y;  // of the first step's rows
    const int row = warp * ROWS;                               // this warp's first row of the tile
    const INDEX stride = static_cast<INDEX>(ny) * pitch;
    const int z_begin = 1 + static_cast<int>(blockIdx.z) * chunk;
    const int z_end = min(z_begin + chunk, nz - 1);
    const int first = max(z_begin - 2, 0), last = min(z_end + 2, nz);
    const bool in_row = x >= 0 && x < pitch;

    const auto load = [&](int z, int slot) {
        if (z < last && in_row) {
            for (int r = warp; r < HEIGHT; r += WARPS)
                if (top + r >= 1 && top + r - 1 < ny)
                    common::copy_async<POINTS * sizeof(REAL)>(
                        planes + slot * PLANE + r * WIDTH + lane * POINTS,
                        u + z * stride + static_cast<INDEX>(top + r - 1) * pitch + x);
        }
        common::commit_copies();
    };
    for (int ahead = 0; ahead < STAGES - 1; ++ahead) load(first + ahead, ahead);

    // Of this thread's rows: u at the planes z - 2, z - 1 and z, the first step at z - 3 and z - 2,
    // the velocity at z - 2.
    Points u_below[ROWS] = {}, u_here[ROWS] = {}, u_above[ROWS] = {};
    Points step_below[ROWS] = {}, step_here[ROWS] = {}, speed_below[ROWS] = {};
    int now = 0, ahead = STAGES - 1, before = DEPTH - 1;
    // One plane more than there are: the plane behind the last one is the boundary's.
    for (int z = first; z < z_end + 2; ++z) {
        const int middle = z - 1, done = z - 2;
        const bool inside = middle >= 1 && middle < nz - 1;
        Points old[ROWS] = {}, speed[ROWS] = {};
        if (inside && in_row && middle >= z_begin - 1) {
#pragma unroll
            for (int r = 0; r < ROWS; ++r) {
                const int y = top + row + r;
                if (y >= 1 && y < ny - 1) {
                    const INDEX at = middle * stride + static_cast<INDEX>(y) * pitch + x;
                    old[r] = *reinterpret_cast<const Points *>(u_old + at);
                    speed[r] = *reinterpret_cast<const Points *>(velocity + at);
                }
            }
        }
        common::wait_for_copies<STAGES - 2>();
        __syncthreads();
        load(z + STAGES - 1, ahead);
        const REAL *plane = planes + before * PLANE + (row + 1) * WIDTH + lane * POINTS;
        const REAL *next = planes + now * PLANE + (row + 1) * WIDTH + lane * POINTS;
        const REAL *stepped = between + (done & 1) * TILE_Y * WIDTH + row * WIDTH + lane * POINTS;
        REAL *stepping = between + (middle & 1) * TILE_Y * WIDTH + row * WIDTH + lane * POINTS;
        Points step_above[ROWS];
        const auto rows_of = [&](const REAL *at, const Points(&own)[ROWS], int r, Points &above,
                                 Points &below) {
            above = r ? own[r ? r - 1 : 0] : *reinterpret_cast<const Points *>(at - WIDTH);
            below = r < ROWS - 1 ? own[r < ROWS - 1 ? r + 1 : r]
                                 : *reinterpret_cast<const Points *>(at + ROWS * WIDTH);
        };
#pragma unroll
        for (int r = 0; r < ROWS; ++r) {
            u_below[r] = u_here[r];
            u_here[r] = u_above[r];
            if (z < last) u_above[r] = *reinterpret_cast<const Points *>(next + r * WIDTH);
        }
#pragma unroll
        for (int r = 0; r < ROWS; ++r) {
            Points above, below;
            rows_of(plane, u_here, r, above, below);
            const Points sum = around({above, u_here[r], below}, lane);
            const int y = top + row + r;
#pragma unroll
            for (int i = 0; i < POINTS; ++i) {
                const REAL laplacian = weight[0] * u_here[r].v[i] +
                                       weight[1] * (sum.v[i] + (u_below[r].v[i] + u_above[r].v[i]));
                const REAL force = speed[r].v[i] * speed[r].v[i] * scale * laplacian;
                const bool there = inside && y >= 1 && y < ny - 1 && x + i >= 1 && x + i < nx - 1;
                step_above[r].v[i] =
                    there ? REAL(2) * u_here[r].v[i] - old[r].v[i] + force : REAL(0);
            }
            *reinterpret_cast<Points *>(stepping + r * WIDTH) = step_above[r];
        }
        if (done >= z_begin && done < z_end) {
            // The tile's outermost rows have no neighbours in it: what they get is not written.
            Points result[ROWS];
#pragma unroll
            for (int r = 0; r < ROWS; ++r) {
                Points above, below;
                above = r ? step_here[r ? r - 1 : 0]
                          : *reinterpret_cast<const Points *>(row ? stepped - WIDTH : stepped);
                below = r < ROWS - 1 ? step_here[r < ROWS - 1 ? r + 1 : r]
                                     : *reinterpret_cast<const Points *>(
                                           row + ROWS < TILE_Y ? stepped + ROWS * WIDTH : stepped);
                const Points sum = around({above, step_here[r], below}, lane);
#pragma unroll
                for (int i = 0; i < POINTS; ++i) {
                    const REAL laplacian =
                        weight[0] * step_here[r].v[i] +
                        weight[1] * (sum.v[i] + (step_below[r].v[i] + step_above[r].v[i]));
                    const REAL force =
                        speed_below[r].v[i] * speed_below[r].v[i] * scale * laplacian;
                    result[r].v[i] = REAL(2) * step_here[r].v[i] - u_below[r].v[i] + force;
                }
                const int y = top + row + r;
                const bool row_written = row + r >= 1 && row + r < TILE_Y - 1 && y < ny - 1;
                if (row_written && lane >= 1 && lane < 31 && x < nx - 1) {
                    const INDEX at = done * stride + static_cast<INDEX>(y) * pitch + x;
                    if (x >= 1 && x + POINTS <= nx - 1) {
                        *reinterpret_cast<Points *>(u_new + at) = result[r];
                        *reinterpret_cast<Points *>(u_between + at) = step_here[r];
                    } else {
#pragma unroll
                        for (int i = 0; i < POINTS; ++i)
                            if (x + i >= 1 && x + i < nx - 1) {
                                u_new[at + i] = result[r].v[i];
                                u_between[at + i] = step_here[r].v[i];
                            }
                    }
                }
            }
        }
#pragma unroll
        for (int r = 0; r < ROWS; ++r) {
            step_below[r] = step_here[r];
            step_here[r] = step_above[r];
            speed_below[r] = speed[r];
        }
        before = now;
        now = now + 1 == DEPTH ? 0 : now + 1;
        ahead = ahead + 1 == DEPTH ? 0 : ahead + 1;
    }
}
