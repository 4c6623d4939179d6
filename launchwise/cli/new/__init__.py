"""``launchwise new``: a draft of ``spec.yaml`` from a CUDA file or a file of Triton.

CUDA: ``tokens`` splits the file. ``signature`` finds kernels, parameters and constant memory.
``macros`` finds the names that a compilation must define. ``tunables`` and ``draft`` decide,
``writing`` and ``folder`` write.

Triton and CuPy: ``python`` runs the file with stand-ins, in a process of its own.
"""
