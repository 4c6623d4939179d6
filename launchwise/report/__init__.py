"""The report: numbers from sweeps and evaluations, and the pages that show them.

What every page uses lies here: ``study`` gathers the tables of a study, ``numbers`` and ``scores``
compute, ``wording`` names and rounds, ``blocks`` and ``fields`` say what a section holds. The
sub-folders are pages; ``site`` reads the tables and writes the folder.
"""
