// Streams along z, with the copy engine (sm_90 and newer): for each plane one thread asks for a box of u,
// halo included, and for what the time step needs of u_old and velocity. The copies count bytes at
// barriers in shared memory, so that no warp waits for all others. The sums are in streaming.cuh.
#include "common/bulk_copy.cuh"
#include "streaming.cuh"

static_assert(ALIGNED && THREADS % 32 == 0, "rows at multiples of 16 bytes, whole warps");
constexpr int WARPS = THREADS / 32;
// Boxes begin at multiples of 128 bytes.
constexpr int LINE = 128 / sizeof(REAL);
constexpr int PLANE_ROOM = (PLANE + LINE - 1) / LINE * LINE;
constexpr int TILE_ROOM = (TILE + LINE - 1) / LINE * LINE;

// What a block keeps in shared memory.
struct Rooms {
    REAL planes[STAGES][PLANE_ROOM];
    REAL olds[STAGES][TILE_ROOM], speeds[STAGES][TILE_ROOM];
    // The thread's own points of the last RADIUS planes, the centres of time steps to come.
    REAL centres[RADIUS][TILE_ROOM];
    // Of each stage: its copies have come; all warps have left it.
    common::BulkBarrier full[STAGES], empty[STAGES];
};

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS_PER_SM)
    KERNEL(stream_tensor)(REAL *__restrict__ u_new, const common::TensorMap *maps,
                          const REAL *__restrict__ damping, int nx, int ny, int nz, int pitch,
                          int chunk, REAL scale) {
    const common::TensorMap *u = maps, *u_old = maps + 1, *velocity = maps + 2;
    extern __shared__ __align__(128) unsigned char shared[];
    Rooms &rooms = *reinterpret_cast<Rooms *>(shared);
    if (threadIdx.x == 0) {
        for (int stage = 0; stage < STAGES; ++stage) {
            rooms.full[stage].begin(1);
            rooms.empty[stage].begin(WARPS);
        }
        common::publish_barriers();
    }
    __syncthreads();
    // Every thread that asks has to see the maps as the host wrote them.
    if (threadIdx.x % 32 == 0)
        for (int which = 0; which < 3; ++which) common::acquire_map(maps + which);
    const Place place(nx, ny, nz, pitch, chunk);
    const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
    const int mine = (static_cast<int>(threadIdx.x) / COLUMNS + RADIUS) * WIDTH + HALO +
                     static_cast<int>(threadIdx.x) % COLUMNS * POINTS;
    const int alone = static_cast<int>(threadIdx.x) * POINTS;
    const int left = FIRST_X + static_cast<int>(blockIdx.x) * TILE_X;
    const int top = RADIUS + static_cast<int>(blockIdx.y) * TILE_Y;
    const int first = place.z_begin - RADIUS, last = place.z_end + RADIUS;
    // Asks for plane z of u, and for what the step needs when that plane is added. What lies outside
    // the grid comes as zeros, and counts.
    const auto ask = [&](int z, int stage) {
        const int complete = z - RADIUS;
        const bool steps = complete >= place.z_begin;
        common::BulkBarrier &full = rooms.full[stage];
        full.arrive_and_expect((PLANE + (steps ? 2 * TILE : 0)) * sizeof(REAL));
        common::copy_box(rooms.planes[stage], u, left - HALO, top - RADIUS, z, full);
        if (steps) {
            common::copy_box(rooms.olds[stage], u_old, left, top, complete, full);
            common::copy_box(rooms.speeds[stage], velocity, left, top, complete, full);
        }
    };
    if (threadIdx.x == 0)
        for (int ahead = 0; ahead < STAGES - 1; ++ahead) ask(first + ahead, ahead);
    const bool writes = place.any();
    const Layer layer(damping, place);
    Sums sums;
    sums.clear();
    // `behind`: the stage of the plane before, whose place the next plane takes.
    int stage = 0, parity = 0, behind = STAGES - 1, parity_behind = 1, centre = 0, asks = 0;
    for (int z = first; z < last; ++z) {
        const REAL here = layer.at(z - RADIUS, place.z_begin);
        // The warps ask in turn, each once all have left the plane before.
        if (warp == asks) {
            if (z + STAGES - 1 < last) {
                rooms.empty[behind].wait(parity_behind);
                if (lane == 0) ask(z + STAGES - 1, behind);
            }
            __syncwarp();
        }
        rooms.full[stage].wait(parity);
        const REAL *own = rooms.planes[stage] + mine;
        const Points laplacian = sums.take(own, z >= place.z_begin && z < place.z_end);
        Points *kept = reinterpret_cast<Points *>(rooms.centres[centre] + alone);
        const int complete = z - RADIUS;
        if (writes && complete >= place.z_begin) {
            const Points old = *reinterpret_cast<const Points *>(rooms.olds[stage] + alone);
            const Points speed = *reinterpret_cast<const Points *>(rooms.speeds[stage] + alone);
            Points points = advance(*kept, old, speed, laplacian, scale);
            layer.damp(points, old, here);
            place.store(u_new, complete, points);
        }
        *kept = *reinterpret_cast<const Points *>(own);
        __syncwarp();
        if (lane == 0) rooms.empty[stage].arrive();
        behind = stage;
        parity_behind = parity;
        stage = next(stage, STAGES);
        if (stage == 0) parity ^= 1;
        centre = next(centre, RADIUS);
        asks = next(asks, WARPS);
    }
}
