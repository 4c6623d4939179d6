"""Functions for the Snakefile."""
