"""Search of a space of configurations on a GPU that nobody measured, guided by what is known."""

from launchwise.search.candidates import Search

__all__ = ["Search"]
