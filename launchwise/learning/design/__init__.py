"""Which problems to measure next, from how alike the times of measured problems are."""
