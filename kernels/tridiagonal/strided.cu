// One thread a sub-system, its rows one after the other in memory: neighbouring threads are m rows
// apart. What the forward sweep leaves goes to shared memory and to the place of the solution.
__device__ __forceinline__ long long place(long long number, long long, int m, int k) {
    return number * m + k;
}

#include "by_thread.cuh"
