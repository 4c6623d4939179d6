"""``launchwise import`` and ``launchwise export-sweep``: sweeps of other tuners, in and out."""
