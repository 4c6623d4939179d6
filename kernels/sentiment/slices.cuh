// Slices of both factors of a product pass through shared memory, the next one on its way from global
// memory while one is worked on. Included once, as a header.
#pragma once

// What a thread carries meanwhile: its share of COUNT words.
template <typename Word, int COUNT, int THREADS>
struct Carried {
    static constexpr int MOST = (COUNT + THREADS - 1) / THREADS;
    Word v[MOST];

    template <typename From>
    __device__ __forceinline__ void take(From from) {
        for (int n = 0; n < MOST; ++n) {
            const int i = n * THREADS + static_cast<int>(threadIdx.x);
            if (i < COUNT) v[n] = from(i);
        }
    }

    template <typename To>
    __device__ __forceinline__ void leave(To to) const {
        for (int n = 0; n < MOST; ++n) {
            const int i = n * THREADS + static_cast<int>(threadIdx.x);
            if (i < COUNT) to(i, v[n]);
        }
    }
};

// Goes through `depth` words, `step` of them a slice. `take(begin)` fetches a slice, `leave(place)` puts
// it where the others can see it, `add(place)` works on it; there are two places, `size` words each.
template <typename Word, typename Take, typename Leave, typename Add>
__device__ __forceinline__ void each_slice(
    Word *slices, int size, int depth, int step, Take take, Leave leave, Add add) {
    take(0);
    leave(slices);
    __syncthreads();
    for (int begin = 0, now = 0; begin < depth; begin += step, now ^= 1) {
        const bool more = begin + step < depth;
        if (more) take(begin + step);
        add(slices + now * size);
        if (more) leave(slices + (now ^ 1) * size);
        __syncthreads();
    }
}
