"""CUDA bindings that are there."""

__version__ = "13.0"
