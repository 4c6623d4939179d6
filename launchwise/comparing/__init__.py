"""Compare two sets of sweeps row by row, after a change of driver, toolkit, kernel or card."""
