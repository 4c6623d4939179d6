"""``launchwise tune``: measure one workload on this machine's GPU and print what to use."""
