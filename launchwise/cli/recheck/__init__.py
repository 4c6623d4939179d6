"""``launchwise recheck``: which answers are stale since driver, toolkit or card changed."""
