"""``launchwise plan``: which problems to measure next, and an overlay that measures them."""
