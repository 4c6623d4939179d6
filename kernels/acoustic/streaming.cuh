// What the kernels share that stream along z. A block has TILE_X x TILE_Y points of every plane, a
// thread POINTS of them side by side: 16 bytes. Each plane of u, with a halo, passes through shared
// memory once. Sums along z wait in registers until the last plane that they need has passed.
// Included in the namespaces of those who use it. Macros of a build, beside those of stencil.cuh:
//   TILE_X, TILE_Y
//   STAGES         planes in shared memory, from the one that is added up to those on their way
//   BLOCKS_PER_SM  blocks that an SM should hold at the same time: limits registers
//   ALIGNED        1 where each row begins at a multiple of 16 bytes
//   DAMPED         1 with an absorbing layer: its factors by x, then y, then z in `damping`, aligned
#include "common/async_copy.cuh"

constexpr int POINTS = 16 / sizeof(REAL);

struct alignas(POINTS * sizeof(REAL)) Points {
    REAL v[POINTS];
};

// Columns of the halo, so many that a row in shared memory begins at a whole vector.
constexpr int HALO = (RADIUS + POINTS - 1) / POINTS * POINTS;
constexpr int WIDTH = TILE_X + 2 * HALO, HEIGHT = TILE_Y + 2 * RADIUS;
constexpr int PLANE = WIDTH * HEIGHT, TILE = TILE_X * TILE_Y;
constexpr int COLUMNS = TILE_X / POINTS, THREADS = COLUMNS * TILE_Y;
constexpr int FIRST_X = ALIGNED ? RADIUS / POINTS * POINTS : RADIUS;

// The place behind `place` in a ring of `count`.
__device__ __forceinline__ int next(int place, int count) {
    return place + 1 == count ? 0 : place + 1;
}

// The grid, and the part of it that a thread has.
struct Place {
    int nx, ny, nz, pitch;
    int x, y;            // the first of its points
    int z_begin, z_end;  // planes that its block writes

    __device__ __forceinline__ Place(int nx, int ny, int nz, int pitch, int chunk)
        : nx(nx), ny(ny), nz(nz), pitch(pitch) {
        x = FIRST_X + static_cast<int>(blockIdx.x) * TILE_X +
            static_cast<int>(threadIdx.x) % COLUMNS * POINTS;
        y = RADIUS + static_cast<int>(blockIdx.y) * TILE_Y +
            static_cast<int>(threadIdx.x) / COLUMNS;
        z_begin = RADIUS + static_cast<int>(blockIdx.z) * chunk;
        z_end = min(z_begin + chunk, nz - RADIUS);
    }

    __device__ __forceinline__ INDEX at(int z) const {
        return (static_cast<INDEX>(z) * ny + y) * pitch + x;
    }
    // Whether any of its points is inside the boundary, and whether all are.
    __device__ __forceinline__ bool any() const { return y < ny - RADIUS && x < nx - RADIUS; }
    __device__ __forceinline__ bool all() const { return x >= RADIUS && x + POINTS <= nx - RADIUS; }
    __device__ __forceinline__ bool inside(int point) const {
        return x + point >= RADIUS && x + point < nx - RADIUS;
    }

    __device__ __forceinline__ Points load(const REAL *array, int z) const {
        Points points;
        if (ALIGNED) {
            points = *reinterpret_cast<const Points *>(array + at(z));
        } else {
#pragma unroll
            for (int i = 0; i < POINTS; ++i) points.v[i] = inside(i) ? array[at(z) + i] : REAL(0);
        }
        return points;
    }

    // Queues the copy of its points of plane z.
    __device__ __forceinline__ void copy(REAL *to, const REAL *array, int z) const {
        if (ALIGNED) {
            common::copy_async<POINTS * sizeof(REAL)>(to, array + at(z));
        } else {
#pragma unroll
            for (int i = 0; i < POINTS; ++i)
                if (inside(i)) common::copy_async<sizeof(REAL)>(to + i, array + at(z) + i);
        }
    }

    __device__ __forceinline__ void store(REAL *array, int z, const Points &points) const {
        if (ALIGNED && all()) {
            *reinterpret_cast<Points *>(array + at(z)) = points;
        } else {
#pragma unroll
            for (int i = 0; i < POINTS; ++i)
                if (inside(i)) array[at(z) + i] = points.v[i];
        }
    }
};

// Sums of a thread's points for the 2 RADIUS planes that are not complete.
struct Sums {
    REAL sum[2 * RADIUS][POINTS];

    __device__ __forceinline__ void clear() {
#pragma unroll
        for (int j = 0; j < 2 * RADIUS; ++j)
#pragma unroll
            for (int i = 0; i < POINTS; ++i) sum[j][i] = 0;
    }

    // Adds what a plane gives to every sum, and moves each sum one place down. `mine`: the thread's
    // points of the plane in shared memory. `across`: whether the block writes that plane, which takes
    // its neighbours along x and y. Returns the sum that is complete: that of RADIUS planes before.
    __device__ __forceinline__ Points take(const REAL *mine, bool across) {
        constexpr REAL weight[RADIUS + 1] = WEIGHTS;
        REAL row[POINTS + 2 * HALO];
        REAL own[POINTS];
        Points complete;
        if (across) {
#pragma unroll
            for (int q = 0; q < POINTS + 2 * HALO; q += POINTS) {
                const Points some = *reinterpret_cast<const Points *>(mine - HALO + q);
#pragma unroll
                for (int i = 0; i < POINTS; ++i) row[q + i] = some.v[i];
            }
#pragma unroll
            for (int i = 0; i < POINTS; ++i) own[i] = weight[0] * row[HALO + i];
#pragma unroll
            for (int k = 1; k <= RADIUS; ++k) {
                const Points above = *reinterpret_cast<const Points *>(mine - k * WIDTH);
                const Points below = *reinterpret_cast<const Points *>(mine + k * WIDTH);
#pragma unroll
                for (int i = 0; i < POINTS; ++i)
                    own[i] += weight[k] * ((row[HALO + i - k] + row[HALO + i + k]) +
                                           (above.v[i] + below.v[i]));
            }
        } else {
            const Points centre = *reinterpret_cast<const Points *>(mine);
#pragma unroll
            for (int i = 0; i < POINTS; ++i) {
                row[HALO + i] = centre.v[i];
                own[i] = 0;
            }
        }
#pragma unroll
        for (int i = 0; i < POINTS; ++i) {
            const REAL u = row[HALO + i];
            complete.v[i] = sum[0][i] + weight[RADIUS] * u;
#pragma unroll
            for (int j = 0; j < 2 * RADIUS - 1; ++j) {
                const int distance = j + 1 < RADIUS ? RADIUS - j - 1 : j + 1 - RADIUS;
                sum[j][i] = sum[j + 1][i] + (distance ? weight[distance] * u : own[i]);
            }
            sum[2 * RADIUS - 1][i] = weight[RADIUS] * u;
        }
        return complete;
    }
};

// The absorbing layer as a thread's points meet it: the factors of x and y stay in registers, that of z
// is read ahead of its plane. All points are damped, also those outside the layer, where every factor is
// 1: a branch costs more than the multiplications.
struct Layer {
#if DAMPED
    const REAL *along_z;
    REAL beside[POINTS];

    __device__ __forceinline__ Layer(const REAL *damping, const Place &place)
        : along_z(damping + place.nx + place.ny) {
        Points along_x{};
        REAL along_y = 0;
        if (place.any()) {
            along_x = *reinterpret_cast<const Points *>(damping + place.x);
            along_y = damping[place.nx + place.y];
        }
#pragma unroll
        for (int i = 0; i < POINTS; ++i) beside[i] = along_x.v[i] * along_y;
    }

    // The factor of plane z, for a block that writes planes from `z_begin`.
    __device__ __forceinline__ REAL at(int z, int z_begin) const {
        return z >= z_begin ? along_z[z] : REAL(1);
    }

    // Damps new points by g, the product of the factors of x, y and z: of the new field and of the one
    // before a fraction g stays (Cerjan and others 1985). What is stored of the one before lacks this
    // step's g: u_new = g (2 u + force - g u_old).
    __device__ __forceinline__ void damp(Points &points, const Points &old, REAL here) const {
#pragma unroll
        for (int i = 0; i < POINTS; ++i) {
            const REAL g = beside[i] * here;
            points.v[i] = g * (points.v[i] + (old.v[i] - g * old.v[i]));
        }
    }
#else
    __device__ __forceinline__ Layer(const REAL *, const Place &) {}
    __device__ __forceinline__ REAL at(int, int) const { return REAL(1); }
    __device__ __forceinline__ void damp(Points &, const Points &, REAL) const {}
#endif
};

// One leapfrog step of a thread's points, `centre` their u.
__device__ __forceinline__ Points advance(const Points &centre, const Points &old,
                                          const Points &speed, const Points &laplacian, REAL scale) {
    Points points;
#pragma unroll
    for (int i = 0; i < POINTS; ++i) {
        const REAL force = speed.v[i] * speed.v[i] * scale * laplacian.v[i];
        points.v[i] = REAL(2) * centre.v[i] - old.v[i] + force;
    }
    return points;
}
