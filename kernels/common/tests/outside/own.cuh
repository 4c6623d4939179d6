#pragma once
#include "common/dynamic_shared.cuh"
