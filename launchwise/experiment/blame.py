"""Finds the settings file that a key comes from: the last file that holds it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from launchwise.base.errors import UserError
from launchwise.base.typed import read_yaml

COMMAND_LINE = "--config"


@dataclass(frozen=True)
class Beneath:
    """A file of a workload's folder that settings override."""

    # The file.
    path: Path
    # Dotted key of the settings that its content stands below, such as ``studies.tile``.
    key: str


@dataclass(frozen=True)
class Sources:
    """Files that the settings were merged from."""

    # Settings files, the last one strongest.
    files: Sequence[Path]
    # What they were merged to, if parts of it may come from no file.
    config: Mapping[str, Any] | None = None
    _read: dict[Path, Any] = field(default_factory=dict, init=False, repr=False, compare=False)

    def error(self, key: str, message: str, beneath: Beneath | None = None) -> UserError:
        """Error for ``key`` that names the file that holds it.

        ``key``: dotted key of the settings.
        ``beneath``: the file that the settings of this key override; its own keys are shorter.
        """
        where, depth = self._holder(key)
        if beneath is None or depth > len(beneath.key.split(".")):
            return UserError(where, key, message)
        own = key.removeprefix(beneath.key).removeprefix(".")
        return UserError(beneath.path, own, message)

    def left_out(self, key: str) -> list[str]:
        """Names below ``key`` that the merged settings set to null."""
        below = (self.config or {}).get(key)
        entries = below.items() if isinstance(below, Mapping) else ()
        return [str(name) for name, entry in entries if entry is None]

    def is_lost_null(self, key: str) -> bool:
        """Whether files set ``key`` to null and none gives it a value: a name that is mistyped."""
        depth = len(key.split("."))
        self._holder(key)  # Reads the files.
        held = [_follow(content, key.split(".")) for content in self._read.values()]
        values = [value for found, value in held if found == depth]
        return bool(values) and all(value is None for value in values)

    def _holder(self, key: str) -> tuple[str, int]:
        """The last file that holds ``key`` (or as much of it as any does), and how much it holds.

        :data:`COMMAND_LINE` when no file holds what the merged settings hold.
        """
        parts = key.split(".") if key else []
        best, depth, held = self.files[0] if self.files else Path("config.yaml"), -1, None
        for path in self.files:
            if path not in self._read:
                self._read[path] = read_yaml(path)
            found, node = _follow(self._read[path], parts)
            if found >= depth:
                best, depth, held = path, found, node
        found, node = _follow(self.config, parts)
        changed = found == depth and _differ(node, held) and not isinstance(node, Mapping)
        if self.files and self.config is not None and (found > depth or changed):
            return COMMAND_LINE, found
        return str(best), depth


def _differ(one: Any, other: Any) -> bool:
    # NaN is not equal to itself, but it is written alike.
    return bool(one != other) and repr(one) != repr(other)


def _follow(node: Any, parts: list[str]) -> tuple[int, Any]:
    """Number of leading ``parts`` of a dotted key that exist in ``node``, and the value there.

    Names may have dots themselves (``h200.sm72``): the longest name that fits is taken.
    """
    if isinstance(node, list) and parts and parts[0].isdigit() and int(parts[0]) < len(node):
        found, inner = _follow(node[int(parts[0])], parts[1:])
        return found + 1, inner
    if isinstance(node, Mapping):
        names = {str(name): name for name in node}
        for count in range(len(parts), 0, -1):
            name = ".".join(parts[:count])
            if name in names:
                found, inner = _follow(node[names[name]], parts[count:])
                return found + count, inner
    return 0, node
