"""Shared by all benchmarks: command line, copies of the project, samples of processes."""
