"""Bytes of the ``extern __shared__`` array of a kernel."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from launchwise.cli.new.hosts import HostLaunch
from launchwise.cli.new.launches import Launch
from launchwise.cli.new.macros import reached_by
from launchwise.cli.new.problem import Sizes
from launchwise.cli.new.signature import Kernel, Source
from launchwise.cli.new.tokens import closing, is_name
from launchwise.cli.new.tunables import AXES
from launchwise.cli.new.types import BYTES, type_of
from launchwise.cli.new.yaml_lines import Line

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
    if not array:
        return []
    if own := _as_on_host(source, kernel, launch, sizes, host, macros):
        return [Line("shared_bytes", own)]
    threads = " * ".join(launch.block)
    size = _item_bytes(array, source, kernel)
    return [Line("shared_bytes", f"{size} * {threads}", "bytes of the extern __shared__ array")]


def _declaration(source: Source, kernel: Kernel) -> list[str]:
    """Tokens of the declaration; empty where there is none that the kernel uses."""
    own = (*kernel.body, ";", *reached_by(source, kernel))
    for tokens in (own, source.code.tokens):
        for place, token in enumerate(tokens):
            if token != "extern" or "__shared__" not in tokens[place : place + 6]:
                continue
            end = next((at for at in range(place, len(tokens)) if tokens[at] == ";"), len(tokens))
            found = list(tokens[place:end])
            name = found[found.index("[") - 1] if "[" in found else found[-1]
            if tokens is own or name in own:
                return found
    return []


def _item_bytes(array: Sequence[str], source: Source, kernel: Kernel) -> int | str:
    """Bytes of an element of the array, by its type; 4 where that is unknown."""
    words = [word for word in array[array.index("__shared__") + 1 :] if is_name(word)]
    for word in words:
        if word in kernel.types:
            return f"(8 if {kernel.types[word]} == 'float64' else 4)"
    kind, width = type_of(words[:-1], source.names.aliases)
    return BYTES[kind] * width if kind in BYTES else 4


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
            found.append(_bytes_of(tokens[place + 2 : end], source, kernel))
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


def _bytes_of(written: Sequence[str], source: Source, kernel: Kernel) -> str:
    """``sizeof`` of a type; '' where that is unknown."""
    words = [word for word in written if word != "unsigned"]
    if len(words) == 1 and words[0] in kernel.types:
        return f"(8 if {kernel.types[words[0]]} == 'float64' else 4)"
    kind, width = type_of(list(written), source.names.aliases)
    return str(BYTES[kind] * width) if kind in BYTES else ""
