"""How the host code of a CUDA file launches a kernel, and its bytes of dynamic shared memory."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tree_sitter import Node

from launchwise.cli.new.body import Polynomial, expression, read
from launchwise.cli.new.indices import AXES
from launchwise.cli.new.signature import Kernel, Source
from launchwise.cli.new.tunables import needed_items
from launchwise.cli.new.yaml_lines import Line
from launchwise.cuda_text.declarations import on_device
from launchwise.cuda_text.launches import HostCode, Launch
from launchwise.cuda_text.syntax import child, has_word, plain, text_of, tokens_of, walk
from launchwise.cuda_text.types import BYTES, bare


@dataclass(frozen=True)
class HostLaunch:
    """The first launch of a kernel in its file."""

    block: list[int | None] = field(default_factory=list)  # threads, None for what is no number
    grid: list[str] = field(default_factory=list)  # texts of the blocks per dimension
    given: list[str] = field(default_factory=list)  # texts of the arguments
    # names of template parameters or macros that are the sides of the block, '' for others
    sides: list[str] = field(default_factory=list)
    shared: str = ""  # text of the bytes of dynamic shared memory
    block_name: str = ""  # variable that holds the block, '' where none does

    def names(self, kernel: Kernel, renamed: Mapping[str, str]) -> dict[str, str]:
        """Names that are given to the kernel, to the problem parameters that they are."""
        return {
            part: renamed[one.name]
            for part, one in zip(self.given, kernel.parameters, strict=False)
            if part.isidentifier() and one.name in renamed
        }


def host_launch(source: Source, kernel: Kernel, fixed: Mapping[str, int]) -> HostLaunch:
    """How a file launches a kernel; an empty launch where it does not, or in other words. A launch
    through a pointer counts where the file launches the kernel in no other way. ``fixed`` is what
    the file sets to integers."""
    host = source.host
    known = {one.name for one in source.kernels}
    named = [one for one in host.launches if one.kernel == kernel.name]
    pointers = [one for one in host.launches if one.kernel not in known]
    if not named and len(source.kernels) > 1:
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

    def expand(node: Node, _: bool) -> Polynomial | None:
        values = [str(fixed.get(text_of(node), ""))]
        values = values if values != [""] else host.value(text_of(node), place)
        return {(): int(values[0])} if len(values) == 1 and values[0].isdigit() else None

    numbers = [read(expression(text), expand) for text in sides]
    return HostLaunch(
        [number.get((), 0) if set(number) <= {()} else None for number in numbers],
        host.sides(grid, place),
        list(one.arguments),
        [passed.get(text, text) if text.isidentifier() else "" for text in sides],
        shared,
        plain(block) if plain(block).isidentifier() else "",
    )


def shared_bytes(
    source: Source, kernel: Kernel, host: HostLaunch, block: Sequence[str], known: Mapping[str, str]
) -> list[Line]:
    """Bytes of the ``extern __shared__`` array; none where the kernel has no such array. They are
    those of the launch in the file, if they are one expression of ``known`` names; else an element
    per thread of the block, with a question."""
    own = [node for item in needed_items(source, kernel) for node in on_device(item)]
    arrays = [
        each
        for node in (*(item.node for item in kernel.items), *own)
        for each in walk(node, "declaration")
        if has_word(each, "extern") and has_word(each, "__shared__")
    ]
    if not arrays:
        return []
    sides = {
        axis: side if side.isalnum() else f"({side})"
        for axis, side in zip(AXES, block, strict=False)
    }
    known = {**known, **{f"{host.block_name}.{axis}": side for axis, side in sides.items()}}
    if len(block) == 1:
        known = {**known, host.block_name: sides["x"]}

    def put(match: re.Match[str]) -> str:
        if match["type"]:
            return _bytes_of(match["type"], source, kernel) or "?"
        return match["number"] or known.get("".join(match["name"].split())) or "?"

    text = _WORD.sub(put, " ".join(tokens_of(host.shared)).replace("/", "//"))
    text = text.replace("( ", "(").replace(" )", ")")
    if text not in ("", "0") and re.fullmatch(r"[-+*/%() \w.'=]+", text):
        return [Line("shared_bytes", text)]
    size = _bytes_of(text_of(child(arrays[0], "type")), source, kernel) or 4
    text = f"{size} * {' * '.join(block)}"
    return [Line("shared_bytes", text, "bytes of the extern __shared__ array")]


_WORD = re.compile(
    r"sizeof\s*\((?P<type>[^()]*)\)"
    r"|(?P<name>[A-Za-z_]\w*(?:\s*\.\s*\w+)?)|(?P<number>\d+)[uUlL]*"
)


def _bytes_of(written: str, source: Source, kernel: Kernel) -> str:
    """``sizeof`` of a type; '' where that is unknown."""
    if bare(written) in kernel.types:
        return f"(8 if {kernel.types[bare(written)]} == 'float64' else 4)"
    kind, width = source.names.spec_type(written)
    return str(BYTES[kind] * width) if kind in BYTES else ""
