"""launchwise: measure CUDA launch parameters, learn from them, recommend them."""

__version__ = "0.2.0.dev0"
