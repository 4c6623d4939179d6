"""Tridiagonal systems on a GPU by the partition method (Austin, Berndt, Moulton 2004)."""
