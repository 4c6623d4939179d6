// Streams along z, with asynchronous copies: while a block adds up one plane of u, STAGES - 1 planes are
// on their way to shared memory, and what the time step needs of u_old and velocity with them. One
// barrier per plane. The sums are in streaming.cuh.
#include "common/dynamic_shared.cuh"
#include "streaming.cuh"

// What one thread copies of a plane: the same vectors of every plane.
struct Share {
    static constexpr int VECTORS = PLANE / POINTS;
    static constexpr int COUNT = (VECTORS + THREADS - 1) / THREADS;
    INDEX from[COUNT];  // within a plane; negative where there is nothing to copy
    int wanted[COUNT];  // points of a vector that lie in the row

    __device__ __forceinline__ Share(const Place &place) {
        const int left = FIRST_X + static_cast<int>(blockIdx.x) * TILE_X - HALO;
        const int top = static_cast<int>(blockIdx.y) * TILE_Y;
#pragma unroll
        for (int i = 0; i < COUNT; ++i) {
            const int vector = static_cast<int>(threadIdx.x) + i * THREADS;
            const int x = left + vector % (WIDTH / POINTS) * POINTS;
            const int y = top + vector / (WIDTH / POINTS);
            const bool there = vector < VECTORS && y < place.ny && x + POINTS > 0 && x < place.nx;
            from[i] = static_cast<INDEX>(y) * place.pitch + x;
            wanted[i] = there ? min(POINTS, place.nx - x) : 0;
        }
    }

    // Queues the copies of a plane; `u` is its first point in global memory.
    __device__ __forceinline__ void copy(REAL *plane, const REAL *u) const {
#pragma unroll
        for (int i = 0; i < COUNT; ++i) {
            REAL *to = plane + (threadIdx.x + i * THREADS) * POINTS;
            if (ALIGNED) {
                if (wanted[i]) common::copy_async<POINTS * sizeof(REAL)>(to, u + from[i]);
            } else {
                const int left = FIRST_X + static_cast<int>(blockIdx.x) * TILE_X - HALO;
                const int x = left + (static_cast<int>(threadIdx.x) + i * THREADS) %
                                         (WIDTH / POINTS) * POINTS;
#pragma unroll
                for (int j = 0; j < POINTS; ++j)
                    if (j < wanted[i] && x + j >= 0)
                        common::copy_async<sizeof(REAL)>(to + j, u + from[i] + j);
            }
        }
    }
};

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS_PER_SM)
    KERNEL(stream)(REAL *__restrict__ u_new, const REAL *__restrict__ u,
                   const REAL *__restrict__ u_old, const REAL *__restrict__ velocity,
                   const REAL *__restrict__ damping, int nx, int ny, int nz, int pitch, int chunk,
                   REAL scale) {
    DYNAMIC_SHARED(REAL, planes);
    const Place place(nx, ny, nz, pitch, chunk);
    const Share share(place);
    const INDEX stride = static_cast<INDEX>(ny) * pitch;
    const int mine = (static_cast<int>(threadIdx.x) / COLUMNS + RADIUS) * WIDTH + HALO +
                     static_cast<int>(threadIdx.x) % COLUMNS * POINTS;
    // Behind the planes: what a thread alone reads and writes.
    REAL *centres = planes + STAGES * PLANE + threadIdx.x * POINTS;
    REAL *olds = centres + RADIUS * TILE, *speeds = olds + STAGES * TILE;
    const int first = place.z_begin - RADIUS, last = place.z_end + RADIUS;
    const bool writes = place.any();
    const Layer layer(damping, place);
    // Queues the copies of plane z of u, and of what the step needs when that plane is added.
    const auto copy = [&](int z, int stage) {
        if (z < last) share.copy(planes + stage * PLANE, u + z * stride);
        const int complete = z - RADIUS;
        if (writes && complete >= place.z_begin && complete < place.z_end) {
            place.copy(olds + stage * TILE, u_old, complete);
            place.copy(speeds + stage * TILE, velocity, complete);
        }
        common::commit_copies();
    };
#pragma unroll
    for (int ahead = 0; ahead < STAGES - 1; ++ahead) copy(first + ahead, ahead);
    Sums sums;
    sums.clear();
    int now = 0, ahead = STAGES - 1, centre = 0;
    for (int z = first; z < last; ++z) {
        const REAL here = layer.at(z - RADIUS, place.z_begin);
        common::wait_for_copies<STAGES - 2>();
        __syncthreads();
        copy(z + STAGES - 1, ahead);
        const REAL *own = planes + now * PLANE + mine;
        const Points laplacian = sums.take(own, z >= place.z_begin && z < place.z_end);
        Points *kept = reinterpret_cast<Points *>(centres + centre * TILE);
        const int complete = z - RADIUS;
        if (writes && complete >= place.z_begin) {
            const Points old = *reinterpret_cast<const Points *>(olds + now * TILE);
            const Points speed = *reinterpret_cast<const Points *>(speeds + now * TILE);
            Points points = advance(*kept, old, speed, laplacian, scale);
            layer.damp(points, old, here);
            place.store(u_new, complete, points);
        }
        *kept = *reinterpret_cast<const Points *>(own);
        now = next(now, STAGES);
        ahead = next(ahead, STAGES);
        centre = next(centre, RADIUS);
    }
}
