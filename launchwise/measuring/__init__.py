"""From kernels and a GPU to rows: compiling, sweeping, timing, the journal, what the card did.

A supervisor (:mod:`launchwise.measuring.sweep`) keeps a measuring process
(:mod:`launchwise.measuring.serving`, on a GPU :mod:`launchwise.cuda.child`) busy. Nothing in here
imports CUDA.
"""
