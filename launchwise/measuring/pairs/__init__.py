"""Comparing a problem's best configurations in turn on one card."""
