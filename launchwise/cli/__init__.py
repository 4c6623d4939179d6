"""Commands, and what generates the reference.

:mod:`launchwise.cli.app` is the command ``launchwise``. Each of its commands is a package with a
module ``command``, which declares arguments and options and imports everything else when it runs:
``launchwise --help`` and completion must not wait for pandas.
"""
