// Dynamic shared memory of a block, as an array of any type.
#pragma once

// Declares `type *name`, aligned to 16 bytes. A macro, because CUDA C++ forbids `extern __shared__`
// arrays of one name and several types. A build for the CPU defines its own beforehand.
#ifndef DYNAMIC_SHARED
#define DYNAMIC_SHARED(type, name)                                    \
    extern __shared__ __align__(16) unsigned char name##_bytes[];     \
    type *name = reinterpret_cast<type *>(name##_bytes)
#endif
