"""Examples of simulations, to run and to change."""
