struct Particle {
    float x, y;
    float vx, vy;
    double mass;
    int id;
};

struct Params {
    float dt;
    unsigned count;
    double gravity;
};

__global__ void moveParticles(Particle *particles, Params params)
{
    unsigned p = blockIdx.x * blockDim.x + threadIdx.x;
    if (p >= params.count) return;

    Particle one = particles[p];
    one.vy += params.dt * (float)params.gravity;
    one.x  += params.dt * one.vx;
    one.y  += params.dt * one.vy;
    particles[p] = one;
}
