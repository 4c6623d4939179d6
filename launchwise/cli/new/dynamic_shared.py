"""Bytes of the ``extern __shared__`` array of a kernel."""

from __future__ import annotations

import re
from collections.abc import Mapping

from tree_sitter import Node

from launchwise.cli.new.hosts import HostLaunch
from launchwise.cli.new.launches import Launch
from launchwise.cli.new.macros import needed_items
from launchwise.cli.new.problem import Sizes
from launchwise.cli.new.signature import Kernel, Source
from launchwise.cli.new.tunables import AXES
from launchwise.cli.new.yaml_lines import Line
from launchwise.cuda_text.names import on_device
from launchwise.cuda_text.syntax import child, has_word, text_of, tokens_of, walk
from launchwise.cuda_text.types import BYTES, bare

_WORD = re.compile(
    r"sizeof\s*\((?P<type>[^()]*)\)"
    r"|(?P<name>[A-Za-z_]\w*(?:\s*\.\s*\w+)?)|(?P<number>\d+)[uUlL]*"
)


def shared_bytes(
    source: Source,
    kernel: Kernel,
    launch: Launch,
    sizes: Sizes,
    host: HostLaunch,
    macros: Mapping[str, int],
) -> list[Line]:
    """The line of a variant; none where its kernel has no such array.

    The bytes are those of the launch in the file, if they are one expression of known names; else
    an element per thread, with a question.
    """
    array = _declaration(source, kernel)
    if array is None:
        return []
    if own := _as_on_host(source, kernel, launch, sizes, host, macros):
        return [Line("shared_bytes", own)]
    threads = " * ".join(launch.block)
    size = _item_bytes(array, source, kernel)
    return [Line("shared_bytes", f"{size} * {threads}", "bytes of the extern __shared__ array")]


def _declaration(source: Source, kernel: Kernel) -> Node | None:
    """The declaration; None where there is none that the kernel uses."""
    items = needed_items(source, kernel)
    own = [node for item in items for node in on_device(item)]
    for node in (*(item.node for item in kernel.items), *own):
        for each in walk(node, "declaration"):
            if has_word(each, "extern") and has_word(each, "__shared__"):
                return each
    return None


def _item_bytes(array: Node, source: Source, kernel: Kernel) -> int | str:
    """Bytes of an element of the array, by its type; 4 where that is unknown."""
    return _bytes_of(text_of(child(array, "type")), source, kernel) or 4


def _as_on_host(
    source: Source,
    kernel: Kernel,
    launch: Launch,
    sizes: Sizes,
    host: HostLaunch,
    macros: Mapping[str, int],
) -> str:
    """Bytes as the host code of the file has them; '' where a name is unknown."""
    known = {one.name: one.name for one in launch.tunables}
    known |= {name: str(number) for name, number in macros.items()}
    for part, one in zip(host.given, kernel.parameters, strict=False):
        if part.isidentifier() and one.name in sizes.renamed:
            known[part] = sizes.renamed[one.name]
    for axis, side in zip(AXES, launch.block, strict=False):
        known[f"{host.block_name}.{axis}"] = side if side.isalnum() else f"({side})"
    if len(launch.block) == 1:
        known[host.block_name] = known[f"{host.block_name}.x"]
    unknown = bool(re.sub(r"[-+*/%() ]", "", _WORD.sub("", host.shared)))

    def put(match: re.Match[str]) -> str:
        nonlocal unknown
        text = match["number"] or known.get("".join((match["name"] or "").split()), "")
        text = _bytes_of(match["type"], source, kernel) if match["type"] else text
        unknown |= not text
        return text

    text = _WORD.sub(put, " ".join(tokens_of(host.shared)).replace("/", "//"))
    text = text.replace("( ", "(").replace(" )", ")")
    return "" if unknown or text in ("", "0") else text


def _bytes_of(written: str, source: Source, kernel: Kernel) -> str:
    """``sizeof`` of a type; '' where that is unknown."""
    if bare(written) in kernel.types:
        return f"(8 if {kernel.types[bare(written)]} == 'float64' else 4)"
    kind, width = source.names.spec_type(written)
    return str(BYTES[kind] * width) if kind in BYTES else ""
