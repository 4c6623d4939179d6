"""Bytes of the ``extern __shared__`` array of a kernel."""

from __future__ import annotations

from collections.abc import Mapping

from tree_sitter import Node

from launchwise.cli.new.hosts import HostLaunch
from launchwise.cli.new.launches import Launch
from launchwise.cli.new.macros import needed_items
from launchwise.cli.new.problem import Sizes
from launchwise.cli.new.signature import Kernel, Source
from launchwise.cli.new.tokens import closing, is_name
from launchwise.cli.new.tunables import AXES
from launchwise.cli.new.yaml_lines import Line
from launchwise.cuda_text.names import on_device
from launchwise.cuda_text.syntax import child, has_word, text_of, walk
from launchwise.cuda_text.types import BYTES, bare

_OPERATORS = {"+": "+", "-": "-", "*": "*", "/": "//", "%": "%", "(": "(", ")": ")"}


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
        if len(part) == 1 and one.name in sizes.renamed:
            known[part[0]] = sizes.renamed[one.name]
    for axis, side in zip(AXES, launch.block, strict=False):
        known[f"{host.block_name}.{axis}"] = side if side.isalnum() else f"({side})"
    if len(launch.block) == 1:
        known[host.block_name] = known[f"{host.block_name}.x"]
    found: list[str] = []
    tokens, place = host.shared, 0
    while place < len(tokens):
        token = tokens[place]
        if token == "sizeof" and tokens[place + 1 : place + 2] == ["("]:
            end = closing(tokens, place + 1)
            found.append(_bytes_of(" ".join(tokens[place + 2 : end]), source, kernel))
            place = end
        elif tokens[place + 1 : place + 2] == ["."]:
            found.append(known.get("".join(tokens[place : place + 3]), ""))
            place += 2
        elif is_name(token):
            found.append(known.get(token, ""))
        else:
            number = token.rstrip("uUlL")
            found.append(number if number.isdigit() else _OPERATORS.get(token, ""))
        if not found[-1]:
            return ""
        place += 1
    text = " ".join(found).replace("( ", "(").replace(" )", ")")
    return "" if text in ("", "0") else text


def _bytes_of(written: str, source: Source, kernel: Kernel) -> str:
    """``sizeof`` of a type; '' where that is unknown."""
    if bare(written) in kernel.types:
        return f"(8 if {kernel.types[bare(written)]} == 'float64' else 4)"
    kind, width = source.names.spec_type(written)
    return str(BYTES[kind] * width) if kind in BYTES else ""
