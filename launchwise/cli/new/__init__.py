"""``launchwise new``: a draft of ``spec.yaml`` from a CUDA file.

``tokens`` splits the file. ``signature`` finds kernels, parameters and constant memory. ``macros``
finds the names that a compilation must define. ``tunables`` and ``draft`` decide, ``writing`` and
``folder`` write.
"""
