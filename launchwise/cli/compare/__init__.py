"""``launchwise compare``: what changed between two sets of sweeps."""
