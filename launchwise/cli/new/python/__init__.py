"""A Python file of kernels, run in a child process with stand-ins for Triton, PyTorch and CuPy.

``folder`` above starts the child, and writes. In it ``running`` runs the file within limits:
``values`` stand for what only a GPU would know, ``tensors``, ``kernels`` and ``stand_ins`` for
modules. ``device`` runs a kernel, ``host`` the functions that launch it, or a launch that is made
up; ``texts`` writes their expressions, and copies. ``draft`` decides, ``Facts`` go back.
"""
