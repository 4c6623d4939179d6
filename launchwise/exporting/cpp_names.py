"""Names that C++ allows, and values as it writes them."""

from __future__ import annotations

import re
from collections.abc import Sequence

from launchwise.base.literals import cpp_text
from launchwise.workloads.parts import Value

KEYWORDS = frozenset(
    """
    alignas alignof and and_eq asm auto bitand bitor bool break case catch char char16_t char32_t
    class compl const constexpr const_cast continue decltype default delete do double dynamic_cast
    else enum explicit export extern false float for friend goto if inline int long mutable
    namespace new noexcept not not_eq nullptr operator or or_eq private protected public register
    reinterpret_cast return short signed sizeof static static_assert static_cast struct switch
    template this thread_local throw true try typedef typeid typename union unsigned using virtual
    void volatile wchar_t while xor xor_eq
    """.split()  # noqa: SIM905 (a list of 90 lines is harder to read)
)


def cpp_name(name: str) -> str:
    """A name that C++ allows."""
    found = re.sub(r"\W", "_", name, flags=re.ASCII)
    found = f"_{found}" if found[:1].isdigit() else found
    return f"{found}_" if found in KEYWORDS else found


def cpp_values(values: Sequence[Value]) -> str:
    """Numbers and texts in braces."""
    listed = (cpp_text(each) if isinstance(each, str) else str(each) for each in values)
    return f"{{{', '.join(listed)}}}"
