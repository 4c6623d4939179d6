"""PyCUDA, as far as the check and the compile stage need it."""

VERSION = (2026, 1)
