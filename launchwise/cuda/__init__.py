"""Everything that touches a GPU. Only modules in here import PyCUDA or the CUDA bindings."""
