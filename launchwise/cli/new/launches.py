"""Block and grid of a kernel, from its indices and from the names of tunables."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from tree_sitter import Node

from launchwise.cli.new.accesses import Accesses
from launchwise.cli.new.arguments import HostLaunch
from launchwise.cli.new.body import Polynomial, coefficient, names_of, written
from launchwise.cli.new.indices import AXES, Indices
from launchwise.cli.new.shapes import Sizes, length_of
from launchwise.cli.new.tunables import Tunable, as_block, axis_of, block_values, role_of
from launchwise.cuda_text.syntax import child, text_of, tokens_of
from launchwise.cuda_text.types import is_type


@dataclass(frozen=True)
class Launch:
    """Block and grid of a kernel as expressions."""

    block: list[str]  # threads per block, per dimension of the block
    # elements of the result that a block computes, per dimension of the grid; ``0`` along an
    # axis of which the kernel does not read ``blockIdx``
    extent: list[str]
    # all tunables: those of the file, with values that fit the block, and launch tunables for
    # sides of the block that the file does not name
    tunables: list[Tunable]
    # axes along which indices say what a block computes
    sure: frozenset[str] = field(default_factory=frozenset)
    question: str = ""  # what a person must decide about the block; empty for nothing


def draft_launch(
    indices: Indices,
    shared_axes: Mapping[str, set[str]],
    tunables: Sequence[Tunable],
    fixed: Mapping[str, int],
    host: HostLaunch,
) -> Launch:
    """Block and grid. ``shared_axes`` are axes of built-in variables that functions of the device
    read, ``fixed`` macros that the file itself sets to integers."""
    tunables = list(_by_index(indices, tunables))
    axes = {name: indices.axes[name] or shared_axes[name] for name in indices.axes}
    block, invented, questions = _block(indices, axes, tunables, fixed, host)
    square = _square(tunables, axes)
    for place, one in enumerate(tunables):
        if one.name == square and one.name in block:
            tunables[place] = as_block(one, "", len(block) > 1, block.count(one.name) > 1)
    every, limited = _limited([*invented, *tunables], block, indices)
    questions += [*limited, *_differing(block, tunables, host)]
    count = max((AXES.index(axis) + 1 for axis in axes["blockIdx"]), default=1)
    extent, sure = [], set()
    for axis, side in zip(AXES[:count], [*block, "1", "1"], strict=False):
        found = _extent(indices, axis, block, every) if axis in axes["blockIdx"] else "0"
        extent.append(found or side)
        sure |= {axis} if found and _is_proven(indices, axis, every) else set()
    return Launch(block, extent, every, frozenset(sure), "; ".join(questions))


# Sides of the block


def _by_index(indices: Indices, tunables: Sequence[Tunable]) -> Iterator[Tunable]:
    """Tunables with the role and the axis that the arithmetic of indices gives them. A name that
    stands for a side along two axes says nothing: threads may walk along one of them."""
    several = len(indices.axes["threadIdx"]) > 1
    sides = indices.sides()
    factors = {
        axis: {name for factor in indices.per_block(axis) for name in names_of(factor)}
        for axis in AXES
    }
    for one in tunables:
        neighbours = [axis for axis in AXES if {(one.name,): 1} in sides[axis]]
        alone = neighbours[0] if len(neighbours) == 1 else ""
        axis = _side_of_steps(indices, one) or alone or _side_in_memory(indices, one)
        own = [each for each in AXES if one.name in factors[each]]
        if axis and (one.role not in ("block", "flag") or (one.axis and one.axis != axis)):
            yield as_block(one, axis, several)
        elif len(own) == 1 and one.role in ("other", "tile", "unroll"):
            yield replace(one, role="tile", axis=own[0], question="")
        else:
            yield one


def _side_of_steps(indices: Indices, one: Tunable) -> str:
    """Axis of the threads that a loop numbers: ``(i = threadIdx.x; i < n; i += SIDE)``."""
    steps = [variable for variable, step in indices.steps.items() if step == {(one.name,): 1}]
    axes = set[str]().union(*map(indices.started_by, steps))
    return axes.pop() if len(axes) == 1 else ""


def _side_in_memory(indices: Indices, one: Tunable) -> str:
    """Axis of the threads that have an element each in an array of shared memory; or ''."""
    if one.role != "other" or indices.axes["threadIdx"] != {"x"}:
        return ""
    arrays = {
        name
        for name, sizes, _ in indices.body.shared_arrays()
        if [text_of(size) for size in sizes] == [one.name]
    }
    threads = {name for name, index in indices.subscripts() if index == {("threadIdx.x",): 1}}
    return "x" if arrays & threads else ""


def _square(tunables: Sequence[Tunable], axes: Mapping[str, set[str]]) -> str | None:
    """A name without an axis that is the side of the block where no other name is."""
    blocks = {one.axis for one in tunables if one.role == "block"}
    for one in tunables:
        if one.role == "block" and not one.axis:
            return one.name
    tile = next((one.name for one in tunables if one.role == "tile" and not one.axis), "")
    items = re.search(r"per_|items|coarsen|work_|wpt|ipt", tile.lower())
    return None if items or axes["blockDim"] or "x" in blocks else tile or None


def _block(
    indices: Indices,
    axes: Mapping[str, set[str]],
    tunables: Sequence[Tunable],
    fixed: Mapping[str, int],
    host: HostLaunch,
) -> tuple[list[str], list[Tunable], list[str]]:
    """Sides of the block, launch tunables for those without a name, and questions."""
    blocks = {one.axis: one.name for one in reversed(tunables) if one.role == "block"}
    threads = axes["threadIdx"] | axes["blockDim"] | {axis for axis in blocks if axis}
    count = max((AXES.index(axis) + 1 for axis in threads), default=1)
    square = _square(tunables, axes)
    literal = {axis_of(name): str(fixed[name]) for name in fixed if role_of(name) == "block"}
    product = _threads_of_a_product(tunables) if count == 1 and not axes["blockDim"] else ""
    block, invented, questions = [], [], []
    for axis, given in zip(AXES[:count], [*host.block, None, None, None], strict=False):
        side = blocks.get(axis) or product or square or literal.get(axis) or literal.get("")
        side = side or _fixed_side(indices, axis, axes, given)
        if product and side == product:
            questions.append("threads of the block")
        if not side:
            side = f"block_size_{axis}"
            values, start = block_values(axis, several=count > 1)
            if given is not None and 1 <= given <= 1024:
                values, start = sorted({*values, given}), given
            invented.append(Tunable(side, "launch", values, start, "block", axis))
            if axis in axes["threadIdx"] and axis not in axes["blockDim"]:
                questions.append(f"threads along {axis}: blockDim.{axis} is not read")
        block.append(side)
    return block, invented, questions


def _threads_of_a_product(tunables: Sequence[Tunable]) -> str:
    """Threads of a matrix product whose threads compute TM x TN elements of BM x BN."""
    by_name = {one.name.lower(): one.name for one in tunables}
    names = [by_name.get(name) for name in ("bm", "bn", "tm", "tn")]
    return "" if None in names else "{} * {} // ({} * {})".format(*names)


def _fixed_side(
    indices: Indices, axis: str, axes: Mapping[str, set[str]], given: int | None
) -> str:
    """Side of the block that the kernel writes as a number: ``blockIdx.x * 256 + threadIdx.x``.
    ``given`` are the threads of the launch, fewer where each computes several elements."""
    every = None
    if axis in axes["blockDim"]:
        # Loops may go on by blockDim: only an index that no loop changes says the side.
        every = list(indices.body.definitions(keep=frozenset(indices.steps)))
    found = {one[()] for one in indices.sides(every)[axis] if set(one) == {()}}
    side = found.pop() if len(found) == 1 else 0
    if not 1 < side <= 1024:
        return ""
    return str(given if given is not None and 1 <= given < side and side % given == 0 else side)


# What limits the block


def _differing(
    block: Sequence[str], tunables: Sequence[Tunable], host: HostLaunch
) -> Iterator[str]:
    """Sides of the block that the file gives other numbers than its own launch has."""
    starts = {one.name: one.start for one in tunables if one.given}
    for axis, side, number in zip(AXES, block, host.block, strict=False):
        own = int(side) if side.isdigit() else starts.get(side)
        if number is not None and own is not None and own != number:
            yield f"{axis}: the host code has {number} threads"


def _limited(
    tunables: Sequence[Tunable], block: Sequence[str], indices: Indices
) -> tuple[list[Tunable], list[str]]:
    """Sides of the block for which arrays in shared memory have room, and questions."""
    room = _most_threads(indices)
    limited, questions = [], []
    for one in tunables:
        sides = [axis for axis, side in zip(AXES, block, strict=False) if side == one.name]
        most, array = min((room[axis] for axis in sides if axis in room), default=(0, ""))
        if most and one.role == "block" and max(one.values) > most and not one.given:
            values = [value for value in one.values if value <= most] or [most]
            one = replace(one, values=values, start=min(one.start, values[-1]))
            questions.append(f"{one.name}: {array} has room for {most} threads")
        limited.append(one)
    return limited, questions


def _most_threads(indices: Indices) -> dict[str, tuple[int, str]]:
    """Axis to the threads that arrays of fixed length have room for, and to such an array. Arrays
    that threads index under a bound of their own, such as ``threadIdx.x < 32``, say nothing."""
    found: dict[str, tuple[int, str]] = {}
    body = indices.body
    bounded = [one.index for one in indices.comparisons if set(one.bound) <= {()}]
    lengths = {
        name: [body.value(size, frame) for size in sizes]
        for name, sizes, frame in body.shared_arrays()
    }
    for frame, array, node in body.subscripts():
        name: Node | None = array
        place, index = 0, body.value(node, frame)
        while name is not None and name.type == "subscript_expression":
            place, name = place + 1, child(name, "argument")
        terms = [term for term in index if term]
        length = lengths.get(text_of(name), [])[place : place + 1]
        if not length or set(length[0]) != {()} or len(terms) != 1 or len(terms[0]) != 1:
            continue
        variable, _, axis = terms[0][0].partition(".")
        step = index[terms[0]]
        if variable == "threadIdx" and step > 0 and {terms[0]: 1} not in bounded:
            most = (length[0][()] - index.get((), 0) - 1) // step + 1
            if 1 < most < found.get(axis, (1025, ""))[0]:
                found[axis] = most, text_of(name)
    return found


# Elements per block


def _extent(indices: Indices, axis: str, block: Sequence[str], tunables: Sequence[Tunable]) -> str:
    """Elements per block along an axis by the indices; '' where they do not say."""
    known = {one.name for one in tunables} | {f"blockDim.{each}" for each in AXES}
    compared = [coefficient(one.index, f"blockIdx.{axis}") for one in indices.bounds(axis)]
    candidates = [_stripped(each, known) for each in (*compared, *indices.per_block(axis))]
    usable = [one for one in candidates if one and names_of(one) <= known]
    if not usable:
        return ""
    best = max(usable, key=lambda one: (len(names_of(one)), sum(one.values())))
    text = written(usable[0] if compared and usable[0] == candidates[0] else best)
    for each, side in zip(AXES, [*block, "1", "1"], strict=False):
        side = side if re.fullmatch(r"\w+", side) else f"({side})"
        text = text.replace(f"blockDim.{each}", side)
    if not re.fullmatch(r"[\w *]+", text):
        return text
    # A product with the sides of the block first.
    factors = sorted(text.split(" * "), key=lambda one: (one.isdigit(), role_of(one) != "block"))
    return " * ".join(factors)


def _is_proven(indices: Indices, axis: str, tunables: Sequence[Tunable]) -> bool:
    """Whether a bound is that of the elements of blocks; not ``i * items < n`` for n elements.
    Where ``items`` is a parameter of the kernel, a block has that many times as many."""
    known = {one.name for one in tunables} | {f"blockDim.{each}" for each in AXES}
    return any(
        names_of(coefficient(one.index, f"blockIdx.{axis}")) <= known | names_of(one.bound)
        for one in indices.bounds(axis)
    )


def _stripped(one: Polynomial, known: set[str]) -> Polynomial:
    """A factor without pitches: names that are neither tunables nor sides of the block."""
    if len(one) != 1:
        return one
    ((term, factor),) = one.items()
    if any("gridDim" in name or name.startswith("?") for name in term):
        return {}
    return {tuple(name for name in term if name in known): factor}


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
    return next((name for name in sizes.names if name not in strides), sizes.names[0])


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
