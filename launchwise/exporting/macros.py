"""One answer as a C header: a macro per tunable."""

from __future__ import annotations

import re
from typing import Any

from launchwise.base.literals import cpp_comment, visible
from launchwise.base.names import assigned
from launchwise.learning.answers import BASES, Answer
from launchwise.workloads.spec import Spec


def macros_text(answer: Answer, spec: Spec) -> str:
    """Macros of the first suggestion: numbers as they are, the variant by its name.

    Kernels of a workload without host code are built with macros that are named as its tunables,
    and with ``macros`` of the spec. Host code has names of its own, and macros are in capitals.
    """
    configuration = answer.suggestions[0].configuration
    problem = assigned(answer.problem)
    about = cpp_comment(f"{problem} on {answer.gpu}: {BASES[answer.basis]}")
    lines = [f"// {about}", "#pragma once"]
    for name, value in configuration.items():
        if isinstance(value, str) and (name == "variant" or spec.has_host_code):
            lines.append(f"#define {macro_name(name)}_{macro_name(value)} 1")
        else:
            lines.append(_defined(macro_name(name) if spec.has_host_code else name, value))
    whole = {**spec.neutral, **configuration}
    for name, text in spec.macros.items():
        lines.append(_defined(name, spec.value(text, answer.problem, whole)))
    return "\n".join(lines) + "\n"


def _defined(name: str, value: Any) -> str:
    # A text of the spec neither ends the line nor goes on in the next one.
    text = visible(" ".join(str(value).split())).rstrip("\\")
    return f"#define {name} {text}"


def macro_name(name: str) -> str:
    """A name in capitals, of letters, digits and underscores."""
    return re.sub(r"\W", "_", name, flags=re.ASCII).upper()
