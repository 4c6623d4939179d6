"""``launchwise init``: a folder for a project, ready for Snakemake."""
