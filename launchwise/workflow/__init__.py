"""What the Snakefile asks the library."""
