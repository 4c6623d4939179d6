"""One answer as a C header: a macro per tunable."""

from __future__ import annotations

import re

from launchwise.base.literals import cpp_comment
from launchwise.learning.answers import BASES, Answer


def macros_text(answer: Answer, declared: bool = False) -> str:
    """Macros of the first suggestion: numbers as they are, the variant by its name.

    Parameters
    ----------
    declared
        Whether the workload has no host code: its kernels are built with macros that are named as
        its tunables. Host code has names of its own, and macros are in capitals.
    """
    first = answer.suggestions[0]
    problem = ", ".join(f"{name}={value}" for name, value in answer.problem.items())
    about = cpp_comment(f"{problem} on {answer.gpu}: {BASES[answer.basis]}")
    lines = [f"// {about}", "#pragma once"]
    for name, value in first.configuration.items():
        if isinstance(value, str):
            lines.append(f"#define {macro_name(name)}_{macro_name(value)} 1")
        else:
            lines.append(f"#define {name if declared else macro_name(name)} {value}")
    return "\n".join(lines) + "\n"


def macro_name(name: str) -> str:
    """A name in capitals, of letters, digits and underscores."""
    return re.sub(r"\W", "_", name, flags=re.ASCII).upper()
