"""Sections on the quality of the measurements."""
