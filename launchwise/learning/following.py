"""Tunables that follow from the problem: a study's constraint leaves one value of them.

Where a constraint says ``streams == published_streams``, what was best for another size has another
number of streams. Whoever carries it over must take the number of the asked problem, or the
configuration does not exist there.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

from launchwise.base.expressions import parsed
from launchwise.workloads.spec import Spec


def following_tunables(spec: Spec, constraints: Iterable[str]) -> dict[str, str]:
    """Tunables that a constraint equates with an expression over the problem alone.

    Returns each tunable to the expression's text.
    """
    tunables = set(spec.tunable_columns)
    found: dict[str, str] = {}
    for text in constraints:
        tree = parsed(text)
        if not (isinstance(tree, ast.Compare) and [type(each) for each in tree.ops] == [ast.Eq]):
            continue
        for name, value in ((tree.left, tree.comparators[0]), (tree.comparators[0], tree.left)):
            if not (isinstance(name, ast.Name) and name.id in spec.tunables):
                continue
            expression = ast.unparse(value)
            if tunables.isdisjoint(spec.formulas.raw_names(expression)):
                found[name.id] = expression
    return found
