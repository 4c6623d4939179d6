"""``kernels/<workload>/spec.yaml``: a workload, read and checked with what lies beside it."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from pydantic import PrivateAttr, model_validator

from launchwise.base.errors import UserError, unknown
from launchwise.base.names import SPEC_FILE, assigned, beside, check_folder_name, inside
from launchwise.base.typed import read_yaml, validated
from launchwise.cuda_text.preprocessor import expanded
from launchwise.cuda_text.syntax import without_comments
from launchwise.workloads.arguments import Fill
from launchwise.workloads.builds import check_triton, split_kernel
from launchwise.workloads.checks.fitting_sizes import nearest_problem, nearest_value
from launchwise.workloads.checks.spec_checks import check_spec
from launchwise.workloads.completion import completed, derived_features
from launchwise.workloads.cost import COST_FILE
from launchwise.workloads.parts import Value, Variant
from launchwise.workloads.sources import included_files, source_text, sources_text
from launchwise.workloads.spec_fields import SpecFields
from launchwise.workloads.templates import (
    check_kernel_text,
    declaring_line,
    definitions,
    is_macro,
    is_template,
    macro_names,
    overriding_line,
    own_names,
)
from launchwise.workloads.usual import USUAL_FILE, Usual, read_usual

FEATURES_FILE = "features.yaml"


class Spec(SpecFields, title="spec.yaml"):
    """A workload: problem space, tunables, variants, constraints, baseline and work."""

    _folder: Path | None = PrivateAttr(None)
    _feasible: dict[tuple[Value, ...], None] | None = PrivateAttr(None)
    _usual: tuple[Usual, ...] = PrivateAttr(())

    @property
    def folder(self) -> Path | None:
        """Folder that the spec was read from, if it was."""
        return self._folder

    @property
    def usual(self) -> tuple[Usual, ...]:
        """Usual configurations of ``usual.yaml``; empty without the file."""
        return self._usual

    @property
    def feasible_configurations(self) -> dict[tuple[Value, ...], None] | None:
        """Values of :attr:`tunable_columns` of each feasible configuration, in the file's order.
        None where constraints alone tell them. A mapping without values: looked up and in order."""
        return self._feasible

    @property
    def size(self) -> int:
        """Configurations that the tunables span, feasible or not; listed ones where they are."""
        if self._feasible is not None:
            return len(self._feasible)
        return sum(
            math.prod(len(self.tunables[name].values) for name in variant.tunables)
            for variant in self.variants.values()
        )

    def narrowed(self, allowed: Mapping[str, Collection[Value]]) -> Spec:
        """The same workload with some values only of some columns of a configuration.

        ``allowed``: ``variant`` or a tunable to what it may be; whatever is not named may be
            anything.
        """
        wanted = {
            name: set(allowed.get(name, self.values_of(name))) for name in self.tunable_columns
        }
        tunables = {
            name: tunable.model_copy(
                update={"values": [each for each in tunable.values if each in wanted[name]]}
            )
            for name, tunable in self.tunables.items()
        }
        variants = {
            name: variant
            for name, variant in self.variants.items()
            if name in wanted["variant"]
            # A variant without a tunable has its neutral value, which may be left out too.
            and all(
                tunables[each].values
                if each in variant.tunables
                else tunable.neutral in wanted[each]
                for each, tunable in self.tunables.items()
            )
        }
        return self.model_copy(update={"tunables": tunables, "variants": variants})

    def several_runs(self, variants: Iterable[str]) -> str:
        """A sentence on each variant of which one launch does several runs of the problem."""
        if self.cost is None:
            return ""
        kernels = {name: self.cost.several(name) for name in sorted(variants)}
        return "".join(
            f" A launch of {name} does {1 / self.value(kernel.launches, {}):g} runs: its times and "
            "limits are per run."
            for name, kernel in kernels.items()
            if kernel is not None
        )

    @property
    def recommendable(self) -> Spec:
        """The same workload without variants that are not verified."""
        # Not cached: a narrowed copy would keep what was cached for the whole.
        kept = [name for name, variant in self.variants.items() if variant.verified]
        return self if len(kept) == len(self.variants) else self.narrowed({"variant": kept})

    @model_validator(mode="before")
    @classmethod
    def _complete(cls, raw: Any) -> Any:
        if not isinstance(raw, Mapping):
            return raw
        found = completed(raw)
        if "work" not in found:
            raise ValueError("work is missing: only a spec with arguments may leave it out")
        return found

    @model_validator(mode="after")
    def _consistent(self) -> Spec:
        check_spec(self)
        return self

    def check_value(self, name: str, value: Any) -> str | None:
        """Complaint about a value of a problem parameter, whatever the others are, or None."""
        if complaint := self.problem[name].check(value):
            return complaint
        if broken := self.broken({name: value}, only=name):
            nearest = nearest_value(self, name, value)
            return _with_nearest(broken[1], None if nearest is None else {name: nearest})
        return None

    def check_problem(self, problem: Mapping[str, Any]) -> str | None:
        """Complaint about ``problem``, or None. Its values may be missing, unknown or illegal, or
        break a constraint of the problem."""
        for name in problem:
            if name not in self.problem:
                return unknown("problem parameter", name, self.problem)
        for name, parameter in self.problem.items():
            if name not in problem:
                return f"{name} is missing"
            if complaint := parameter.check(problem[name]):
                return f"{name}: {complaint}"
        if (broken := self.broken(problem)) is None:
            return None
        text, why = broken
        read = [name for name in self.problem if name in self.formulas.raw_names(text)]
        nearest = nearest_problem(self, problem) or {}
        told = {
            each: nearest[each]
            for each in nearest
            if each in read or nearest[each] != problem[each]
        }
        return f"{assigned({each: problem[each] for each in read})}: {_with_nearest(why, told)}"

    def broken(self, problem: Mapping[str, Any], only: str | None = None) -> tuple[str, str] | None:
        """First constraint of the problem that does not hold, and what is said of it, or None.

        ``only``: a parameter: constraints that read something else are left out.
        """
        for text in self.problem_constraints:
            if only is None or self.formulas.raw_names(text) == (only,):
                try:
                    if not self.formulas.value(text, problem):
                        return text, f"{text} does not hold"
                except ValueError as error:
                    return text, str(error)
        return None


def _with_nearest(why: str, nearest: Mapping[str, Any] | None) -> str:
    """What is said of a problem that breaks a constraint, and the nearest that does not."""
    if not nearest:
        return f"{why}, and no size near meets the constraints"
    return f"{why}; the nearest size that fits is {assigned(nearest)}"


def load_spec(folder: Path) -> Spec:
    """Read and check ``folder/spec.yaml`` and what lies beside it. ``features.yaml``, ``cost.yaml``
    and ``usual.yaml`` may be missing. Raises UserError: one line with the file and the key."""
    path = beside(folder, SPEC_FILE)
    raw = read_yaml(path)
    check_folder_name(folder)
    spec = validated(Spec, raw, path)
    for key, file in (("features", FEATURES_FILE), ("cost", COST_FILE)):
        own = beside(folder, file)
        if own.is_file():
            if getattr(spec, key):
                raise UserError(path, key, f"also given in {own}: keep one of them")
            whole = {**spec.model_dump(exclude_unset=True), key: read_yaml(own)}
            spec = validated(Spec, whole, own)
    if spec.arguments and not spec.features:
        whole = {**spec.model_dump(exclude_unset=True), "features": derived_features(spec)}
        spec = validated(Spec, whole, path)
    if spec.workload != folder.name:
        raise UserError(path, "workload", f"is {spec.workload!r} but the folder is {folder.name!r}")
    for name, variant in spec.variants.items():
        if variant.source is not None:
            _check_file(folder, variant.source, f"variants.{name}.source")
    for header in spec.headers:
        _check_file(folder, header, "headers")
    if spec.arguments:
        check_described(folder, spec)
    spec._folder = folder
    if spec.feasible is not None:
        spec._feasible = read_feasible(inside(folder, spec.feasible, path, "feasible"), spec)
    spec._usual = read_usual(beside(folder, USUAL_FILE), spec)
    return spec


def _check_file(folder: Path, name: str, key: str) -> None:
    """Insist on a file of the folder (:func:`launchwise.base.names.inside`)."""
    path = folder / SPEC_FILE
    if not inside(folder, name, path, key).is_file():
        raise UserError(path, key, f"no file {name!r}")


def read_feasible(path: Path, spec: SpecFields) -> dict[tuple[Value, ...], None]:
    """Values of each configuration in a Parquet file. Raises UserError when the file cannot be
    read, lacks a column, or holds a value that the spec does not list."""
    # Only some workloads list their configurations: loading it takes a fifth of a second.
    from pyarrow import ArrowException

    from launchwise.base.arrays import read_parquet

    try:
        table = read_parquet(path, spec.tunable_columns)
    except FileNotFoundError as error:
        raise UserError(path, "", "is missing") from error
    except (OSError, ValueError, KeyError, ArrowException) as error:
        raise UserError(path, "", f"cannot be read: {error}") from error
    if lacking := [name for name in spec.tunable_columns if name not in table.column_names]:
        raise UserError(path, lacking[0], "is missing")
    columns = [table[name].to_pylist() for name in spec.tunable_columns]
    for name, values in zip(spec.tunable_columns, columns, strict=True):
        if strange := sorted(set(values) - set(spec.values_of(name)), key=str):
            raise UserError(path, name, unknown("value", strange[0], spec.values_of(name)))
    return dict.fromkeys(zip(*columns, strict=True))


def check_described(folder: Path, spec: SpecFields) -> None:
    """Check what the arguments of a spec name outside of it: kernels, macros, the reference."""
    path = folder / SPEC_FILE
    for key, named in _named_files(spec):
        inside(folder, named, path, key)
    for name, variant in spec.variants.items():
        if variant.is_triton:
            check_triton(folder, spec, name, variant)
            continue
        _check_kernel_names(folder, spec, name, variant)
        text = without_comments(source_text(folder / str(variant.source)))
        for tunable in variant.tunables:
            if spec.tunables[tunable].kind == "launch" and is_macro(tunable, text):
                message = f"is launch, but {variant.source} reads {tunable} as a macro"
                raise UserError(path, f"tunables.{tunable}.kind", f"{message}: say build")
        _check_build_tunables(folder, spec, name, variant)


def _named_files(spec: SpecFields) -> Iterator[tuple[str, str]]:
    """Key and path of every file that a spec names beside CUDA sources and headers."""
    for name, argument in spec.arguments.items():
        if isinstance(argument.fill, Fill) and argument.fill.file is not None:
            yield f"arguments.{name}.fill", argument.fill.file
    for key, function in spec.own_functions.items():
        yield key, function.partition(":")[0]


def _check_build_tunables(folder: Path, spec: SpecFields, name: str, variant: Variant) -> None:
    """Insist that no file of a variant defines its build tunables otherwise. Raises UserError with
    file and line of a definition or of a constant with the name of a tunable."""
    key = (folder / SPEC_FILE, f"variants.{name}.tunables")
    macros = {*spec.macros, *variant.tunables}
    own = macro_names(folder, spec, variant)
    for path in included_files(folder, [str(variant.source), *spec.headers]):
        text = without_comments(source_text(path))
        top = folder.resolve()
        file = path.relative_to(top).as_posix() if path.is_relative_to(top) else path.name
        for tunable in own_names(spec, variant):
            if line := overriding_line(tunable, text, macros):
                message = (
                    f"{file}:{line} defines {tunable} whatever the tunable is: put "
                    f"#ifndef {tunable} and #endif around that line, or delete it"
                )
                raise UserError(*key, message)
            if tunable in own and (line := declaring_line(tunable, text, macros)):
                message = (
                    f"{file}:{line} declares the constant {tunable}, but a build tunable is a "
                    f"macro: write #ifndef {tunable}, #define {tunable} ... and #endif instead"
                )
                raise UserError(*key, message)


def _check_kernel_names(folder: Path, spec: SpecFields, name: str, variant: Variant) -> None:
    """Insist that the source of a variant, or a header beside it, has its kernels. Raises UserError
    with what is there instead, or with a template argument that cannot be one."""
    key = (folder / SPEC_FILE, f"variants.{name}.kernel")
    text = without_comments(sources_text(folder, [str(variant.source), *spec.headers]))
    for kernel in variant.kernel_names:
        base = split_kernel(kernel)[0]
        own = re.compile(rf"\b{re.escape(base.split('::')[-1])}\s*(?:<[^;{{}}()]*>\s*)?\(")
        if not own.search(text) and not own.search(expanded(text).text):
            known = list(dict.fromkeys(each.name for each in definitions(text)))
            raise UserError(*key, f"{variant.source}: {unknown('kernel', base, known)}")
        template = is_template(text, base)
        if template and "<" not in kernel:
            message = f"{base} is a template: name its arguments, such as {base}<64, float>"
            raise UserError(*key, message)
        if template is False and "<" in kernel:
            raise UserError(*key, f"{base} is no template: name it without arguments")
        try:
            check_kernel_text(spec, variant, kernel, text)
        except ValueError as error:
            raise UserError(*key, str(error)) from None
