"""Parameters of tests of which one case is enough at every change."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def first_of(cases: Iterable[Any], every: int = 0) -> list[Any]:
    """All cases; those after the first, but for each ``every``-th, have the mark ``slow``. A tuple
    is a case of several parameters."""
    return [
        pytest.param(
            *(each if isinstance(each, tuple) else (each,)),
            marks=pytest.mark.slow if number and (not every or number % every) else (),
        )
        for number, each in enumerate(cases)
    ]
