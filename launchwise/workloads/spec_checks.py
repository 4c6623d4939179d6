"""Whether everything in a spec fits together: names, expressions, arguments, files."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from launchwise.base.errors import UserError, unknown
from launchwise.base.expressions import FUNCTIONS, check_names
from launchwise.gpus.profile import GPU_FEATURES
from launchwise.workloads.arguments import Argument, parameters_of, types_of
from launchwise.workloads.builds import split_kernel
from launchwise.workloads.definitions import definitions, is_macro, overriding_line
from launchwise.workloads.parts import (
    GPU_NAMES,
    LATER_COLUMNS,
    MEASURED_COLUMNS,
    SPEC_FILE,
    Variant,
    Work,
)
from launchwise.workloads.sources import source_text, sources_text, without_comments
from launchwise.workloads.templates import check_kernel_text, is_template, kernel_texts

if TYPE_CHECKING:
    from launchwise.workloads.spec import Spec


def check_spec(spec: Spec) -> None:
    """Check that what a spec names is there, and that its expressions can be read.

    Raises
    ------
    ValueError
        With the key, at the first mistake.
    """
    _check_own_names(spec)
    for name, variant in spec.variants.items():
        for tunable in variant.tunables:
            if tunable not in spec.tunables:
                message = unknown("tunable", tunable, spec.tunables)
                raise ValueError(f"variants.{name}.tunables: {message}")
    for name, entry in spec.tunables.items():
        if len({type(value) for value in (entry.neutral, *entry.values)}) > 1:
            raise ValueError(f"tunables.{name}: its values mix numbers and texts")
        if len(set(entry.values)) != len(entry.values):
            raise ValueError(f"tunables.{name}.values: a value is given twice")
    _check_arguments(spec)
    _check_expressions(spec)
    if spec.baseline.get("variant") not in spec.variants:
        raise ValueError(
            f"baseline: {unknown('variant', spec.baseline.get('variant'), spec.variants)}"
        )
    for key, value in spec.baseline.items():
        if key != "variant" and key not in spec.tunables:
            raise ValueError(f"baseline: {unknown('tunable', key, spec.tunables)}")
        if key != "variant" and value not in (
            *spec.tunables[key].values,
            spec.tunables[key].neutral,
        ):
            raise ValueError(f"baseline.{key}: {value!r} is not a value of this tunable")
    _check_verified(spec)


def _check_verified(spec: Spec) -> None:
    """Insist that something may be recommended, and that all is compared with right answers."""
    if not any(variant.verified for variant in spec.variants.values()):
        raise ValueError("variants: none is verified, so none could be recommended")
    name = str(spec.baseline["variant"])
    if not spec.variants[name].verified:
        raise ValueError(
            f"baseline: variant {name!r} is not verified: nothing can be compared with it"
        )


def _check_arguments(spec: Spec) -> None:
    """Check what :class:`Argument`, :class:`Reference` and kernels name."""
    if not spec.arguments:
        for key in ("macros", "reference"):
            if getattr(spec, key):
                raise ValueError(f"{key}: belongs to a spec with arguments")
        return
    known = {*spec.problem, *spec.derived}
    for name, argument in spec.arguments.items():
        types_of_argument(f"arguments.{name}", argument, spec.problem)
        for text in argument.shape or []:
            _check_of_problem(spec, f"arguments.{name}.shape", text, known)
        if argument.value is not None:
            everything = known | {*spec.tunable_columns}
            check_names(f"arguments.{name}.value", argument.value, everything)
    if not any(argument.is_written for argument in spec.arguments.values()):
        raise ValueError("arguments: none has the role output or inout")
    chosen = {"variant", *(n for n, one in spec.tunables.items() if one.kind == "build")}
    for name, text in spec.macros.items():
        check_names(f"macros.{name}", text, known | chosen)
        if name in spec.tunables:
            raise ValueError(f"macros.{name}: is a tunable")
    for name, variant in spec.variants.items():
        _check_kernels(spec, f"variants.{name}", variant)
    _check_reference(spec, known)


def _check_kernels(spec: Spec, where: str, variant: Variant) -> None:
    if (variant.kernel is None) == (not variant.kernels):
        raise ValueError(f"{where}: needs kernel, the name of its __global__ function")
    for named in (variant.arguments, *(step.arguments for step in variant.kernels)):
        for name in parameters_of(named, spec.arguments):
            if name not in spec.arguments:
                message = unknown("argument", name, spec.arguments)
                raise ValueError(f"{where}.arguments: {message}")
            if spec.arguments[name].constant is not None:
                raise ValueError(f"{where}.arguments: {name} lies in constant memory")
    known = {*spec.problem, *spec.derived, *spec.tunable_columns, *GPU_NAMES}
    for step in variant.kernels:
        for text in (*step.block, *step.grid, step.shared_bytes):
            check_names(f"{where}.kernels", text, known)
    check_names(f"{where}.shared_bytes", variant.shared_bytes, known)


def _check_reference(spec: Spec, known: set[str]) -> None:
    if spec.reference is None:
        raise ValueError("reference is missing: what must the outputs be?")
    for text in spec.reference.given or []:
        if text not in spec.arguments:
            check_names("reference.given", text, known)
        elif not spec.arguments[text].is_read:
            raise ValueError(f"reference.given: {text} is an output")
    if spec.reference.variant is not None and spec.reference.variant not in spec.variants:
        message = unknown("variant", spec.reference.variant, spec.variants)
        raise ValueError(f"reference.variant: {message}")


def _check_of_problem(spec: Spec, where: str, text: str, known: set[str]) -> None:
    check_names(where, text, known)
    raw = spec.formulas.raw_names(text)
    if strange := [each for each in raw if each not in spec.problem]:
        message = f"{text!r} reads {strange[0]}; it may read problem parameters only"
        raise ValueError(f"{where}: {message}")


def _check_own_names(spec: Spec) -> None:
    taken = {name: "a name that every sweep has" for name in (*MEASURED_COLUMNS, "variant")}
    taken |= dict.fromkeys(LATER_COLUMNS, "a column of later tables")
    taken |= {name: "a fact of the GPU" for name in GPU_NAMES}
    taken |= {name: "a function" for name in FUNCTIONS}
    taken |= dict.fromkeys(("only", "constraints"), "a key of sweep.yaml")
    for part in ("problem", "tunables", "derived"):
        for name in getattr(spec, part):
            if name in taken:
                raise ValueError(f"{part}.{name}: {name} is already {taken[name]}")
            taken[name] = f"in {part}"
    for name, column in zip(spec.stages, spec.stage_columns, strict=True):
        if column in taken:
            raise ValueError(f"stages.{name}: {column} is already {taken[column]}")
        taken[column] = "a stage"
    for name in spec.findings:
        if name in taken:
            raise ValueError(f"findings.{name}: {name} is already {taken[name]}")


def _check_expressions(spec: Spec) -> None:
    known = set(spec.problem)
    for name, text in spec.derived.items():
        # A derived name may depend on tunables (a pitch on the padding), so they count too.
        check_names(f"derived.{name}", text, known | set(spec.tunable_columns))
        known.add(name)
    for key in Work.model_fields:
        if key != "item":
            text = getattr(spec.work, key)
            check_names(f"work.{key}", text, known)
            # Whatever stands behind derived names: a problem costs the same for every variant.
            raw = spec.formulas.raw_names(text)
            if strange := [each for each in raw if each not in spec.problem]:
                message = f"{text!r} reads {strange[0]}; it may read problem parameters only"
                raise ValueError(f"work.{key}: {message}")
    known |= {*spec.tunable_columns, *GPU_NAMES}
    for text in spec.constraints:
        check_names("constraints", text, known)
    for name, variant in spec.variants.items():
        for part in ("constraints", "block", "grid"):
            for text in getattr(variant, part) or ():
                check_names(f"variants.{name}.{part}", text, known)
    for name, text in spec.features.items():
        check_names(f"features.{name}", text, known - set(GPU_NAMES) | set(GPU_FEATURES))
    if spec.cost is not None:
        try:
            spec.cost.check(known | set(GPU_FEATURES), spec.variants)
        except ValueError as error:
            raise ValueError(f"cost.{error}") from error


def check_described(folder: Path, spec: Spec) -> None:
    """Check what the arguments of a spec name outside of it: kernels, macros, the reference."""
    from launchwise.workloads.references import check_listed

    path = folder / SPEC_FILE
    for name, variant in spec.variants.items():
        _check_kernel_names(folder, spec, name, variant)
        text = without_comments(source_text(folder / str(variant.source)))
        for tunable in variant.tunables:
            if spec.tunables[tunable].kind == "launch":
                if is_macro(tunable, text):
                    message = f"is launch, but {variant.source} reads {tunable} as a macro"
                    raise UserError(path, f"tunables.{tunable}.kind", f"{message}: say build")
            elif line := overriding_line(tunable, text):
                message = (
                    f"{variant.source}:{line} defines {tunable} whatever the tunable is: put "
                    f"#ifndef {tunable} and #endif around that line, or delete it"
                )
                raise UserError(path, f"variants.{name}.tunables", message)
    if spec.reference is not None and spec.reference.call is not None:
        try:
            check_listed(spec.reference.call)
        except ValueError as error:
            raise UserError(path, "reference.call", str(error)) from None


def _check_kernel_names(folder: Path, spec: Spec, name: str, variant: Variant) -> None:
    """Insist that the source of a variant, or a header beside it, has its kernels.

    Raises
    ------
    UserError
        With what is there instead, or with a template argument that cannot be one.
    """
    key = (folder / SPEC_FILE, f"variants.{name}.kernel")
    text = without_comments(sources_text(folder, [str(variant.source), *spec.headers]))
    for kernel in kernel_texts(variant):
        base = split_kernel(kernel)[0]
        if not re.search(rf"\b{re.escape(base.split('::')[-1])}\s*(?:<[^;{{}}()]*>\s*)?\(", text):
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


def types_of_argument(where: str, argument: Argument, problem: Mapping[str, Any]) -> list[str]:
    """:func:`launchwise.workloads.arguments.types_of`, with the key in its message."""
    try:
        return types_of(argument, problem)
    except ValueError as error:
        raise ValueError(f"{where}.{error}") from None
