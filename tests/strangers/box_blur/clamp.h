#ifndef CLAMP_H_
#define CLAMP_H_

// nearest value inside [low, high]
__device__ __forceinline__ int clamp(int value, int low, int high)
{
    return value < low ? low : (value > high ? high : value);
}

#endif  // CLAMP_H_
