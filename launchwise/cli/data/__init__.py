"""``launchwise data``: recorded sweeps, which a wheel leaves out."""
