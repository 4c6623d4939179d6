"""The grid of a kernel: problem parameters divided by what a block computes."""

from __future__ import annotations

import re

from launchwise.cli.new.accesses import Accesses
from launchwise.cli.new.hosts import HostLaunch
from launchwise.cli.new.indices import AXES, Indices
from launchwise.cli.new.launches import Launch
from launchwise.cli.new.polynomials import names_of
from launchwise.cli.new.shapes import Sizes, length_of
from launchwise.cuda_text.syntax import tokens_of
from launchwise.cuda_text.types import is_type

_UNBOUNDED = "the kernel has no bound"


def draft_grid(
    accesses: Accesses, indices: Indices, launch: Launch, sizes: Sizes, host: HostLaunch
) -> tuple[list[str], str]:
    """Blocks per dimension, and a question unless the kernel's bounds say all of them."""
    grid, questions = [], []
    for axis, extent in zip(AXES, launch.extent, strict=False):
        if extent == "0":
            grid.append("1")
            continue
        if axis != "x" and indices.goes_on(axis):
            grid.append("1")
            questions.append(f"{axis}: goes on where the other axis ends")
            continue
        length, question = _length(indices, axis, launch, sizes, accesses)
        own = _as_on_host(indices, axis, launch, sizes, host) if question else ""
        multiple = _as_multiple(own or length, extent) if question == _UNBOUNDED else ""
        length = own or length
        grid.append(length if extent == "1" else f"ceil_div({length}, {extent})")
        asked = "as the host code of the file" if own else question
        questions.append(f"{axis}: {asked}{multiple}" if asked else "")
    named = [one.name for one in launch.tunables if one.role == "grid"]
    if named and grid:
        grid[0] = named[0]
        questions[0:1] = [f"{named[0]}, by its name"]
    if not any(extent != "0" for extent in launch.extent):
        questions.append("blockIdx is not read")
    return grid, "; ".join(filter(None, questions))


def _as_multiple(length: str, extent: str) -> str:
    """What to do about a kernel that has no bound where blocks have several elements."""
    if extent == "1":
        return ""
    size, block = (text if re.fullmatch(r"\w+", text) else f"({text})" for text in (length, extent))
    return f'; where sizes must fit, constraints: ["{size} % {block} == 0"]'


def _length(
    indices: Indices, axis: str, launch: Launch, sizes: Sizes, accesses: Accesses
) -> tuple[str, str]:
    """Elements along an axis, and a question unless all bounds agree."""
    parameters = indices.body.kernel.parameters
    arrays = [one.name for one in parameters if one.pointer and not one.const]
    bounds = [(one, length_of(one.bound, sizes)) for one in indices.bounds(axis)]
    # `i < n - 1` around less than all that is written is that of a neighbour.
    texts = [
        text
        for one, text in bounds
        if text and (min(one.bound.values()) > 0 or accesses.guards_writes(one, arrays))
    ]
    if not texts:
        return _unbounded(indices, axis, launch, sizes), _UNBOUNDED
    # Bounds that differ by more than a constant.
    leading = {
        frozenset((term, factor) for term, factor in one.bound.items() if term)
        for one, text in bounds
        if text or names_of(one.bound)
    }
    question = ""
    if indices.strides_over_grid(axis):
        question = "a loop strides over the grid, fewer blocks do as well"
    elif len(leading) > 1 or any(not text and names_of(one.bound) for one, text in bounds):
        question = "several bounds"
    elif axis not in launch.sure:
        question = "elements per block"
    return min(texts, key=len), question


def _unbounded(indices: Indices, axis: str, launch: Launch, sizes: Sizes) -> str:
    """Length of an axis without a bound: a size by which its index is not multiplied."""
    if len(launch.extent) > 1 or len(sizes.names) != 2:
        return sizes.axes.get(axis, sizes.names[0])
    factors = {name for _, factor in indices.placed(axis) for name in names_of(factor)}
    strides = {sizes.renamed[name] for name in factors & sizes.renamed.keys()}
    others = [name for name in sizes.names if name not in strides]
    return others[0] if strides and others else " * ".join(dict.fromkeys(sizes.axes.values()))


def _as_on_host(indices: Indices, axis: str, launch: Launch, sizes: Sizes, host: HostLaunch) -> str:
    """Elements along an axis as the grid of the host code has them; '' where that is not plain."""
    place = AXES.index(axis)
    names = host.names(indices.body.kernel, sizes.renamed)
    text = host.grid[place] if place < len(host.grid) else ""
    tokens = [each for each in tokens_of(text) if each not in "()" and not is_type(each)]
    match = re.fullmatch(r"(\w+)(?: \* (\w+))? \+ (.+) - 1 / \3", " ".join(tokens))
    if match is None or match[1] not in names:
        return ""
    threads = [one.name for one in launch.tunables if one.name == match[2]]
    return " * ".join([names[match[1]], *threads]) if bool(match[2]) == bool(threads) else ""
