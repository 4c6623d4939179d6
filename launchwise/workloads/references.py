"""References of ``spec.yaml``: listed functions of NumPy and SciPy."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from launchwise.base.errors import UserError
from launchwise.base.names import SPEC_FILE
from launchwise.workloads.element_types import widened
from launchwise.workloads.listed_functions import check_listed
from launchwise.workloads.spec import Spec


def function(name: str) -> Callable[..., Any]:
    """The listed function of a full name; raises what :func:`check_listed` raises."""
    check_listed(name)
    module, _, short = name.rpartition(".")
    found: Callable[..., Any] = getattr(importlib.import_module(module), short)
    return found


def called(spec: Spec, names: Mapping[str, Any], inputs: Mapping[str, np.ndarray]) -> Any:
    """Result of a spec's ``call``; floating-point inputs are float64 there.

    Parameters
    ----------
    names
        The problem, and numbers among the arguments.

    Raises
    ------
    UserError
        When the function fails.
    """
    reference = spec.reference
    assert reference is not None
    assert reference.call is not None
    given = [_given(spec, text, names, inputs) for text in reference.given or []]
    try:
        return function(reference.call)(*given)
    except (ValueError, TypeError, IndexError, ArithmeticError, np.linalg.LinAlgError) as error:
        where = (spec.folder or Path()) / SPEC_FILE
        raise UserError(where, "reference.call", f"{reference.call} fails: {error}") from error


def _given(
    spec: Spec, text: str, names: Mapping[str, Any], inputs: Mapping[str, np.ndarray]
) -> Any:
    """An input, a number among the arguments, or the value of an expression."""
    if text in inputs:
        return widened(inputs[text])
    return names[text] if text in spec.arguments else spec.value(text, names)
