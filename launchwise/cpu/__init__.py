"""A device that runs CUDA kernels' own sources on the CPU."""
