"""How the host code of a CUDA file launches a kernel."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tree_sitter import Node

from launchwise.cli.new.polynomials import Polynomial, expression, read
from launchwise.cli.new.signature import Kernel, Source
from launchwise.cuda_text.launches import HostCode, Launch
from launchwise.cuda_text.syntax import plain, text_of


@dataclass(frozen=True)
class HostLaunch:
    """The first launch of a kernel in its file.

    ``block`` are threads per dimension, None for what is no number, and ``sides`` the names of
    template parameters or macros that they are, '' for others; ``grid`` are the texts of the
    blocks per dimension, ``given`` of the arguments, ``shared`` of the bytes of dynamic shared
    memory. ``block_name`` is the variable that holds the block, '' where none does.
    """

    block: list[int | None] = field(default_factory=list)
    grid: list[str] = field(default_factory=list)
    given: list[str] = field(default_factory=list)
    sides: list[str] = field(default_factory=list)
    shared: str = ""
    block_name: str = ""


def host_launch(source: Source, kernel: Kernel, fixed: Mapping[str, int]) -> HostLaunch:
    """How a file launches a kernel; an empty launch where it does not, or in other words.

    A launch through a pointer counts where the file launches the kernel in no other way.

    Parameters
    ----------
    fixed
        What the file sets to integers.
    """
    host = source.host
    known = {one.name for one in source.kernels}
    named = [one for one in host.launches if one.kernel == kernel.name]
    pointers = [one for one in host.launches if one.kernel not in known]
    alone = len(source.kernels) == 1
    if not named and not alone:
        taken = host.pointers_to(kernel.name)
        pointers = [one for one in pointers if taken is not None and taken < one.node.start_byte]
    for one in named or pointers[:1]:
        if len(one.configuration) > 1:
            return _launch(host, one, kernel, fixed)
    return HostLaunch()


def _launch(host: HostCode, one: Launch, kernel: Kernel, fixed: Mapping[str, int]) -> HostLaunch:
    place = one.node.start_byte
    grid, block, *more = one.configuration
    sides = host.sides(block, place)
    passed = {text: own.name for own, text in zip(kernel.template, one.template, strict=False)}
    shared = plain(more[0]) if more else ""
    if shared.isidentifier():
        shared = " + ".join(host.value(shared, place)) or shared
    return HostLaunch(
        [_number(text, host, place, fixed) for text in sides],
        host.sides(grid, place),
        list(one.arguments),
        [passed.get(text, text) if text.isidentifier() else "" for text in sides],
        shared,
        plain(block) if plain(block).isidentifier() else "",
    )


def _number(text: str, host: HostCode, place: int, fixed: Mapping[str, int]) -> int | None:
    def expand(node: Node, divides: bool) -> Polynomial | None:
        name = text_of(node)
        if name in fixed:
            return {(): fixed[name]}
        values = host.value(name, place)
        return {(): int(values[0])} if len(values) == 1 and values[0].isdigit() else None

    found = read(expression(text), expand)
    return found.get((), 0) if set(found) <= {()} else None
