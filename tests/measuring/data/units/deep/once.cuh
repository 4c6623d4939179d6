#pragma once
#include "../sizes.h"
__device__ inline float once() { Size s{OFFSET}; return s.n; }
