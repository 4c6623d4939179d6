"""Measures kernels on a GPU: compilation, sweeps, timing, the journal, telemetry.

A supervisor (:mod:`launchwise.measuring.listening`) keeps a measuring process
(:mod:`launchwise.measuring.serving`, on a GPU :mod:`launchwise.cuda.child`) busy. Nothing in here
imports CUDA.
"""
