"""Whether a spec fits the files that it names: kernels, macros, functions, configurations."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from launchwise.base.errors import UserError, unknown
from launchwise.base.names import SPEC_FILE, inside
from launchwise.cuda_text.directives import without_comments
from launchwise.cuda_text.preprocessor import expanded
from launchwise.workloads.arguments import Fill
from launchwise.workloads.builds import split_kernel
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
)
from launchwise.workloads.triton_builds import check_triton


def read_feasible(path: Path, spec: SpecFields) -> dict[tuple[Value, ...], None]:
    """Values of each configuration in a Parquet file. Raises UserError when the file cannot be
    read, lacks a column, or holds a value that the spec does not list."""
    # Only some workloads list their configurations: loading it takes a fifth of a second.
    from pyarrow import ArrowException, parquet

    from launchwise.base.arrays import insist_on_limits

    try:
        insist_on_limits(path)
        table = parquet.read_table(path, columns=spec.tunable_columns)
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
    functions = {"inputs": spec.inputs}
    if spec.reference is not None:
        functions |= {
            f"reference.{key}": getattr(spec.reference, key) for key in ("file", "compare")
        }
    for key, function in functions.items():
        if function is not None:
            yield key, function.partition(":")[0]


def _check_build_tunables(folder: Path, spec: SpecFields, name: str, variant: Variant) -> None:
    """Insist that no file of a variant defines its build tunables otherwise. Raises UserError with
    file and line of a definition or of a constant with the name of a tunable."""
    key = (folder / SPEC_FILE, f"variants.{name}.tunables")
    build = [each for each in variant.tunables if spec.tunables[each].kind == "build"]
    macros = {*spec.macros, *variant.tunables}
    own = macro_names(folder, spec, variant)
    for path in included_files(folder, [str(variant.source), *spec.headers]):
        text = without_comments(source_text(path))
        top = folder.resolve()
        file = path.relative_to(top).as_posix() if path.is_relative_to(top) else path.name
        for tunable in build:
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
