"""Parameters of tests of which one case is enough at every change."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def first_of(cases: Iterable[Any]) -> list[Any]:
    """All cases; those after the first have the mark ``slow``. A tuple is a case of several
    parameters."""
    first, *others = (each if isinstance(each, tuple) else (each,) for each in cases)
    return [pytest.param(*first), *(pytest.param(*each, marks=pytest.mark.slow) for each in others)]
