"""GPU access: only modules of this package import PyCUDA or the CUDA bindings."""
