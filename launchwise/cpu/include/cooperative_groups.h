// Cooperative groups: the block, tiles of up to 32 lanes, and lanes that are active together.
#pragma once
#include "cuda_on_cpu.h"
#include "launchwise_cpu/groups.h"
