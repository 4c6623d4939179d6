// Types of 16 bits, once for a whole compilation: builds lie in namespaces.
#pragma once
#include <cuda_bf16.h>
#include <cuda_fp16.h>
