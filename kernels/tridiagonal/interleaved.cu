// One thread a sub-system; row k of all sub-systems lies together, so that neighbouring threads read
// neighbouring words. For those who may choose how they store their systems. What is left over
// behind the last whole sub-system stands at the end, in order.
__device__ __forceinline__ long long place(long long number, long long subsystems, int m, int k) {
    return k < m ? k * subsystems + number : subsystems * m + k - m;
}

#include "by_thread.cuh"
