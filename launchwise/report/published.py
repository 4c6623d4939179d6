"""Published tables beside ours, for the sections that studies bring along."""

from launchwise.experiment.published import FOLDER, Records, facts_of
from launchwise.experiment.published import read_tables as read_published

__all__ = ["FOLDER", "Records", "facts_of", "read_published"]
