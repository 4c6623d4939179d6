"""Commands, and what generates the reference.

:mod:`launchwise.cli.app` is the command ``launchwise``. Modules ``*_commands`` and
``command`` declare arguments and options, and import everything else when a command runs:
``launchwise --help`` and completion must not wait for pandas.
"""
