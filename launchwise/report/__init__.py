"""The report: numbers from sweeps and evaluations, and the page that shows them.

``study`` gathers the tables of a study; ``numbers`` computes; ``wording`` names and rounds;
``theme``, ``figures`` and ``maps`` draw; ``overview``, ``goals``, ``models``, ``sections`` and
``outliers`` hold the parts that every study has, ``own_sections`` those that a study brings along;
``assemble`` puts the parts in order and ``page`` writes the HTML file.
"""
