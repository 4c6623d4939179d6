"""The figures of a written report, computed a second time from the tables of ``results/``.

Nothing here calls :mod:`launchwise.report`. What settings, ``spec.yaml`` and the machine model of a
GPU say is read with the library; figures are computed with pandas and numpy.
"""
