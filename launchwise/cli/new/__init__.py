"""``launchwise new``: a draft of ``spec.yaml`` from a CUDA file or a file of Triton.

CUDA: ``tokens`` splits the file. ``signature`` finds kernels, parameters and constant memory.
``macros`` finds the names that a compilation must define. ``tunables`` and ``draft`` decide,
``writing`` and ``folder`` write.

Triton: ``triton_files`` finds functions. ``triton_tuning`` reads their decorators by ``constants``,
``triton_pointers`` their loads and stores, ``triton_hosts`` their launch. ``triton_draft`` decides,
``triton_writing`` writes.
"""
