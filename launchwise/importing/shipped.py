"""Configurations that a kernel library ships, as the usual choices of a workload.

A configuration file has winners without times (:mod:`launchwise.workloads.usual`), so it is
no sweep. What it launches for a problem is what an answer has to beat: as the usual choice it is
measured in pairs with the fastest of a sweep, and every gain is one over the library.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from launchwise.base.errors import UserError, unknown
from launchwise.base.literals import whole
from launchwise.base.storage import read_json_object, read_text, write_text
from launchwise.workloads.parts import Value
from launchwise.workloads.sources import cpu_limit
from launchwise.workloads.spec import Spec
from launchwise.workloads.usual import (
    DEVICE,
    USUAL_FILE,
    ConfigFiles,
    Usual,
    UsualChoices,
    check_usual,
    read_config_files,
)

HEADER = "# Written by `launchwise import-shipped`, which writes it anew each time.\n"
REPLACE = "--replace"
VERSION = "triton_version"  # Key of a file that is no size

ALWAYS = "1 == 1"


@dataclass(frozen=True)
class Shipped:
    device: str  # the library's name of it
    rules: list[Usual]  # what it launches for any problem of the files
    versions: tuple[str, ...]  # releases of Triton that the files state


def import_shipped(
    files: Sequence[Path],
    folder: Path,
    spec: Spec,
    mapping_file: Path,
    variant: str | None = None,
    *,
    replace: bool = False,
) -> Shipped:
    """Write ``usual.yaml`` of a workload from configuration files. ``variant``: the variant that
    stands for the library's kernel; left out: the only one. ``replace``: whether to write over a
    ``usual.yaml`` that this function did not write. Raises UserError when a file is named or filled
    otherwise than the mapping says, files are of several devices, a value is none of the
    workload's, or ``usual.yaml`` is somebody's own."""
    found = shipped_choices(files, spec, read_config_files(mapping_file, spec), variant)
    target = folder / USUAL_FILE
    if target.is_file() and not replace and not read_text(target).startswith(HEADER):
        message = f"was not written by launchwise import-shipped: {REPLACE} writes over it"
        raise UserError(target, "", message)
    plain = {"choices": [each.model_dump() for each in found.rules]}
    text = yaml.safe_dump(plain, sort_keys=False, width=100)
    about = f"# What a library ships for {found.device}.\n"
    write_text(target, HEADER + about + text)
    return found


def shipped_choices(
    files: Sequence[Path], spec: Spec, mapping: ConfigFiles, variant: str | None = None
) -> Shipped:
    """What files launch for problems; see :func:`import_shipped`."""
    name = _variant(spec, variant)
    rules: list[Usual] = []
    devices: dict[str, Path] = {}
    versions: dict[str, None] = {}
    for path in files:
        values = _values_in_name(path, mapping)
        devices.setdefault(values.pop(DEVICE), path)
        if len(devices) > 1:
            one, other = devices
            message = f"is of {other}, {devices[one].name} of {one}: name files of one device"
            raise UserError(path, "", message)
        content = read_json_object(path)
        if VERSION in content:
            versions[str(content[VERSION])] = None
        of_file = [
            f"({text}) == {repr(value) if whole(value) is None else value}"
            for text, value in values.items()
        ]
        by_size = _by_size(content, mapping, path)
        for condition, size in _intervals(list(by_size), mapping):
            every = [*of_file, condition, *([mapping.where] if mapping.where != ALWAYS else [])]
            rules.append(
                Usual(
                    when=" and ".join(f"({each})" for each in every),
                    reason=f"shipped in {path.name} for {size}",
                    configuration={
                        "variant": name,
                        **_configuration(by_size[size], spec, name, mapping, f"{path}: {size}"),
                    },
                )
            )
    if not rules:
        raise UserError("import-shipped", "", "no file is named")
    check_usual(UsualChoices(choices=rules).choices, spec)
    return Shipped(next(iter(devices)), rules, tuple(versions))


def _variant(spec: Spec, variant: str | None) -> str:
    if variant is None and len(spec.variants) == 1:
        return next(iter(spec.variants))
    if variant not in spec.variants:
        several = f"name one of several: {', '.join(spec.variants)}"
        message = unknown("variant", variant, spec.variants) if variant else several
        raise UserError("import-shipped", "--variant", message)
    return variant


def _values_in_name(path: Path, mapping: ConfigFiles) -> dict[str, str]:
    """Expressions in the name of a file to the texts in their places."""
    with cpu_limit(path):  # Names of many parts can be read in very many ways.
        match = mapping.pattern.fullmatch(path.name)
    if match is None:
        raise UserError(path, "", f"is not named as the mapping says: {mapping.file}")
    # Those of a folder stand before those of the name.
    parts = mapping.parts[len(mapping.parts) - len(match.groups()) :]
    if DEVICE not in parts:
        raise UserError(path, "", f"its name does not state the device: {mapping.file}")
    return dict(zip(parts, match.groups(), strict=True))


def _by_size(
    content: Mapping[str, Any], mapping: ConfigFiles, path: Path
) -> dict[int, Mapping[str, Any]]:
    """Key to its configuration, in the order of the file."""
    found: dict[int, Mapping[str, Any]] = {}
    for key, value in content.items():
        if key == VERSION or key in mapping.head:
            continue
        size = whole(key)
        if size is None or size < 0:
            raise UserError(path, key, "is no size: head of the mapping names other keys")
        if not isinstance(value, Mapping):
            raise UserError(path, key, "must be a configuration: names to values")
        found[size] = value
    if not found:
        raise UserError(path, "", "holds no configuration")
    return found


def _intervals(sizes: list[int], mapping: ConfigFiles) -> Iterator[tuple[str, int]]:
    """Condition for each size to be the nearest one, if those before do not hold. Of two that are
    as near the library takes the first of the file."""
    known = sorted(sizes)
    for low, high in itertools.pairwise(known):
        sign = "<=" if sizes.index(low) < sizes.index(high) else "<"
        if mapping.nearest == "linear":
            yield f"2 * ({mapping.key}) {sign} {low + high}", low
        else:
            yield f"({mapping.key}) * ({mapping.key}) {sign} {low * high}", low
    yield ALWAYS, known[-1]


def _configuration(
    given: Mapping[str, Any], spec: Spec, variant: str, mapping: ConfigFiles, where: str
) -> dict[str, Value]:
    renamed = mapping.renamed(spec.variants[variant])
    found: dict[str, Value] = {}
    for name, theirs in renamed.items():
        if theirs not in given:
            raise UserError(where, theirs, f"is missing, which is {name} of {spec.workload}")
        if given[theirs] not in spec.values_of(name):
            message = f"{given[theirs]!r} is no value of {name}: add it to spec.yaml"
            raise UserError(where, theirs, f"{message}, or choose other files")
        found[name] = given[theirs]
    _insist_on_constants(given, [*renamed.values()], mapping, where)
    return found


def _insist_on_constants(
    given: Mapping[str, Any], taken: Iterable[str], mapping: ConfigFiles, where: str
) -> None:
    """What is no tunable must be as the mapping says: the workload's kernel has no such choice."""
    for name, value in given.items():
        if name in taken:
            continue
        if name not in mapping.constants and mapping.named(name) is None:
            message = f"is a tunable that the mapping leaves out ({name}: null under tunables)"
            raise UserError(where, name, f"{message}: its files hold it, so remove that entry")
        if name not in mapping.constants:
            message = "is no tunable of the workload: constants of the mapping can state its value"
            raise UserError(where, name, message)
        if value != mapping.constants[name]:
            message = f"is {value!r}, not {mapping.constants[name]!r} as constants say"
            raise UserError(where, name, message)
