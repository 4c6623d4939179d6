"""``launchwise new``: a draft of ``spec.yaml`` from a CUDA file or a file of Triton.

CUDA: :mod:`launchwise.cuda_text` reads the file. ``signature`` says which of its kernels a spec may
hold, ``undeclared`` which names a build defines, ``spec_text`` what the spec says.

Triton and CuPy: ``python`` runs the file with stand-ins, in a process of its own.
"""
