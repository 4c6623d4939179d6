typedef unsigned int uint32;
typedef unsigned short uint16;

struct Lcg {
    uint32 state;
    __device__ explicit Lcg(uint32 seed) : state(seed) {}
    // 16 random bits
    __device__ unsigned long long next() {
        state = 1664525u * state + 1013904223u;
        return state >> 16;
    }
};

__global__ void mc_pi(uint32 *seeds, uint16 *hits, int npoints, int nstreams)
{
    int s = blockIdx.x * blockDim.x + threadIdx.x;
    if (s >= nstreams) return;
    Lcg rng(seeds[s]);
    uint16 n = 0;
    for (int p = 0; p < npoints; p++) {
        unsigned long long x = rng.next(), y = rng.next();
        if (x * x + y * y < 1ull << 32) n++;
    }
    hits[s] = n;
    seeds[s] = rng.state;
}
