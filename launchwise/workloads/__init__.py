"""Workloads: specs, spaces of configurations, builds, cost, host code."""
