"""``launchwise check``: checks of a workload before it is measured."""
