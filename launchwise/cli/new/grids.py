"""The grid of a kernel: problem parameters divided by what a block computes."""

from __future__ import annotations

import re

from launchwise.cli.new.accesses import Accesses
from launchwise.cli.new.hosts import HostLaunch
from launchwise.cli.new.indices import Indices
from launchwise.cli.new.launches import Launch
from launchwise.cli.new.polynomials import Polynomial, names_of
from launchwise.cli.new.problem import Sizes
from launchwise.cli.new.shapes import length_of
from launchwise.cli.new.signature import Kernel
from launchwise.cli.new.tunables import AXES
from launchwise.cuda_text.syntax import tokens_of


def draft_grid(
    accesses: Accesses, indices: Indices, launch: Launch, sizes: Sizes, host: HostLaunch
) -> tuple[list[str], str]:
    """Blocks per dimension, and a question unless the kernel's bounds say all of them."""
    kernel = indices.body.kernel
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
        unbounded = question == _UNBOUNDED
        if question and (own := _as_on_host(kernel, axis, launch, sizes, host)):
            grid.append(own)
            size = re.match(r"ceil_div\((\w+),", own)
            more = _as_multiple(size[1], extent) if unbounded and size else ""
            questions.append(f"{axis}: as the host code of the file{more}")
            continue
        if unbounded:
            question = f"{axis}: {_UNBOUNDED}{_as_multiple(length, extent)}"
        grid.append(length if extent == "1" else f"ceil_div({length}, {extent})")
        questions.append(question)
    named = [one.name for one in launch.tunables if one.role == "grid"]
    if named and grid:
        grid[0] = named[0]
        questions[0:1] = [f"{named[0]}, by its name"]
    if not any(extent != "0" for extent in launch.extent):
        questions.append("blockIdx is not read")
    return grid, "; ".join(filter(None, questions))


_UNBOUNDED = "the kernel has no bound"


def _as_multiple(length: str, extent: str) -> str:
    """What to do about a kernel that has no bound where blocks have several elements."""
    if extent == "1":
        return ""
    plain = re.compile(r"\w+")
    size, block = (text if plain.fullmatch(text) else f"({text})" for text in (length, extent))
    return f'; where sizes must fit, constraints: ["{size} % {block} == 0"]'


def _length(
    indices: Indices, axis: str, launch: Launch, sizes: Sizes, accesses: Accesses
) -> tuple[str, str]:
    """Elements along an axis, and a question unless all bounds agree."""
    parameters = indices.body.kernel.parameters
    arrays = [one.name for one in parameters if one.pointer and not one.const]
    known = [(one.bound, length_of(one.bound, sizes)) for one in indices.bounds(axis)]
    shorter = [
        one for one in indices.bounds(axis) if any(factor < 0 for factor in one.bound.values())
    ]
    # `i < n - 1` around less than all that is written is that of a neighbour.
    neighbours = [one.bound for one in shorter if not accesses.guards_writes(one, arrays)]
    texts = [text for bound, text in known if text and bound not in neighbours]
    if not texts:
        return _unbounded(indices, axis, launch, sizes), _UNBOUNDED
    question = ""
    leading = {_leading(bound) for bound, text in known if text}
    # A bound that is a number is that of a border: `i > 0`.
    other = [bound for bound, text in known if not text and names_of(bound)]
    if indices.strides_over_grid(axis):
        question = f"{axis}: a loop strides over the grid, fewer blocks do as well"
    elif len(leading) > 1 or other:
        question = f"{axis}: several bounds"
    elif axis not in launch.sure:
        question = f"{axis}: elements per block"
    return min(texts, key=len), question


def _leading(bound: Polynomial) -> str:
    """A bound without its constant."""
    return repr(sorted((term, factor) for term, factor in bound.items() if term))


def _unbounded(indices: Indices, axis: str, launch: Launch, sizes: Sizes) -> str:
    """Length of an axis without a bound: a size by which its index is not multiplied."""
    if launch.dimensions > 1 or len(sizes.names) != 2:
        return sizes.axes.get(axis, sizes.names[0])
    factors = {name for _, factor in indices.placed(axis) for name in names_of(factor)}
    strides = {sizes.renamed[name] for name in factors & sizes.renamed.keys()}
    others = [name for name in sizes.names if name not in strides]
    return others[0] if strides and others else " * ".join(dict.fromkeys(sizes.axes.values()))


def _as_on_host(kernel: Kernel, axis: str, launch: Launch, sizes: Sizes, host: HostLaunch) -> str:
    """Blocks along an axis as the host code of the file has them; '' where that is not plain."""
    place = AXES.index(axis)
    if place >= len(host.grid):
        return ""
    names = {
        part: sizes.renamed[one.name]
        for part, one in zip(host.given, kernel.parameters, strict=False)
        if part.isidentifier() and one.name in sizes.renamed
    }
    if host.grid[place].isidentifier():
        return names.get(host.grid[place], "")
    text = _CAST.sub("", " ".join(tokens_of(host.grid[place])))
    if whole := re.fullmatch(r"\( (\(.+) \)", text):
        text = whole[1]
    match = re.fullmatch(r"\( (\w+)(?: \* (\w+))? \+ (.+) - 1 \) / (.+)", text)
    threads = {one.name for one in launch.tunables}
    if match and match[3] == match[4] and match[1] in names and match[2] in (None, *threads):
        length = " * ".join(filter(None, [names[match[1]], match[2]]))
        return f"ceil_div({length}, {launch.extent[place]})"
    return ""


_CAST = re.compile(r"\( (?:(?:unsigned|signed|int|long|size_t|u?int(?:32|64)_t) )+\) ")
