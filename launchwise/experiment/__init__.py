"""An experiment: settings, and what they ask of which workloads."""
