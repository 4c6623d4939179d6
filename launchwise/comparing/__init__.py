"""Compares two sets of sweeps row by row: what a new driver, toolkit, kernel or card changed."""
