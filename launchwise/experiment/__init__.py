"""An experiment: settings, workloads and studies."""
