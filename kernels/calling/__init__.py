"""Kernels as library functions: arrays of other libraries, prepared launches by the CUDA driver."""
