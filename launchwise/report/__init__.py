"""The report: numbers from sweeps and evaluations, and the one page that shows them.

``study`` gathers the tables of a study; ``numbers`` computes; ``wording`` names and rounds;
``theme``, ``figures`` and ``maps`` draw; ``overview``, ``goals``, ``models``, ``sections``,
``outliers`` and ``acoustic`` say what a part holds; ``assemble`` puts the parts in order and
``page`` writes the HTML file.
"""
