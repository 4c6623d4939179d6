"""Numbers in texts: one strict reader for command lines and for files of others.

Python itself reads more: ``1_0`` as 10, digits of every script, spaces around them.
"""

from __future__ import annotations

import re

LARGEST = 2**63 - 1  # Largest magnitude of an integer in a file

_WHOLE = re.compile(r"[+-]?[0-9]{1,400}")
_REAL = re.compile(
    r"[+-]?(?:(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:e[+-]?[0-9]+)?|nan|inf|infinity)",
    re.IGNORECASE | re.ASCII,
)


def whole(text: str) -> int | None:
    """The integer that a text is: a sign and digits of ASCII alone; None where it is none."""
    return int(text) if _WHOLE.fullmatch(text) else None


def real(text: str) -> float | None:
    """The number that a text is, NaN and infinities among them; None where it is none."""
    return float(text) if _REAL.fullmatch(text) else None
