"""Options of nvcc that ``spec.yaml`` may name."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import AfterValidator

from launchwise.base.errors import unknown

_OPTIONS = (
    *("-std=c++11", "-std=c++14", "-std=c++17", "-std=c++20", "-std=c++23", "-O0", "-O1", "-O2"),
    *("-O3", "-use_fast_math", "-fmad=true", "-fmad=false", "-maxrregcount=64", "-lineinfo"),
    *("-extra-device-vectorization", "-expt-relaxed-constexpr", "-extended-lambda"),
)


def compiler_option(text: str) -> str:
    """The option itself.

    Raises
    ------
    ValueError
        When ``spec.yaml`` may not name it.
    """
    bare = re.sub(r"^--", "-", text)
    if re.sub(r"(?<=^-maxrregcount=)\d{1,3}$", "64", bare) not in _OPTIONS:
        raise ValueError(unknown("option", text, _OPTIONS))
    return text


CompilerOption = Annotated[str, AfterValidator(compiler_option)]
"""Options that change how a kernel is compiled, and nothing else on the machine."""
