"""Imported sweeps: readers and writers of other tuners' formats, and workloads made of them."""
