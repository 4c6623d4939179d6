"""``launchwise check``: what can be known of a workload before it is measured."""
