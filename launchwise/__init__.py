"""launchwise: measure CUDA launch parameters, learn from them, recommend them."""

__version__ = "0.1.0"
