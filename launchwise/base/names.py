"""Names of files that commands look for before they load anything."""

SPEC_FILE = "spec.yaml"
"""Specification of a workload, in its folder."""
