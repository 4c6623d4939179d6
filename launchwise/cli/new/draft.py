"""Draft from a kernel's names: contents and values of arguments, reference.

Every draft is a value that a spec may hold. Where a person must decide, it carries a question.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from launchwise.cli.new.problem import PITCH, Sizes
from launchwise.cli.new.signature import Parameter

SMALL_ARRAY = re.compile(r"filter|weight|coef|mask|stencil|taps")
_INDICES = re.compile(r"ind(ex|ices)|idx|offset|_?ptr$|^ptr")


def draft_fill(parameter: Parameter) -> str:
    """Content of an input."""
    if "float" in parameter.type or not (parameter.type or parameter.counts):
        return "normal"
    return "iota" if _INDICES.search(parameter.name.lower()) else "uniform"


def draft_scalar(parameter: Parameter, sizes: Sizes) -> tuple[Any, str]:
    """Value of a number, and a question where its name says nothing."""
    if parameter.name in sizes.renamed:
        return sizes.renamed[parameter.name], ""
    if PITCH.search(parameter.name.lower()):
        return sizes.axes.get("x", sizes.names[0]), "elements per row"
    return (1.0 if "float" in parameter.type else 1), "value"


# Reference


def draft_reference(title: str, inputs: Sequence[str], changed: bool = False) -> dict[str, Any]:
    """Function that computes the expected result, by the names of file and kernel.

    Parameters
    ----------
    title
        Names of file and kernel, lower case.
    inputs
        Names of array arguments that the kernel reads.
    changed
        Whether it changes one of them.
    """
    small = [name for name in inputs if SMALL_ARRAY.search(name.lower())]
    large = [name for name in inputs if name not in small]
    if re.search(r"convol|correl", title) and small and large:
        return {"call": "scipy.signal.correlate2d", "given": [large[0], small[0], "'valid'"]}
    if "transpos" in title and large:
        return {"call": "numpy.transpose", "given": large[:1]}
    if re.search(r"gemm|matmul|matrix_?mul|(^|[_ ])mm($|[_ ])", title) and len(large) > 1:
        return {"call": "numpy.matmul", "given": large[:2]}
    if re.search(r"(^|[_ ])add($|[_ ])", title) and len(large) > 1 and not changed:
        return {"call": "numpy.add", "given": large[:2]}
    if re.search(r"(^|[_ ])(sum|reduce|reduction)($|[_ ])", title) and large:
        return {"call": "numpy.sum", "given": large[:1]}
    return {"file": "reference.py:expected"}
