"""``launchwise recommend`` and ``launchwise export``: answers of fitted models."""
