"""What benchmarks share: command line, copies of the project, samples of processes."""
