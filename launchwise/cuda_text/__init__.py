"""Reads CUDA C++: the preprocessor's output as a syntax tree, and what it declares."""
