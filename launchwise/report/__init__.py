"""The report: numbers from sweeps and evaluations, and the pages that show them.

What every page uses lies here: ``study`` gathers the tables of a study, ``numbers`` computes,
``wording`` names and rounds, ``blocks`` and ``fields`` say what a section holds. ``pages`` has the
pages of the whole report, ``answer`` a study's; ``site`` reads the tables and writes the folder.
"""
