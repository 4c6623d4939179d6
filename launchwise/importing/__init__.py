"""Sweeps that others measured: readers and writers of their formats, and workloads made of them."""
