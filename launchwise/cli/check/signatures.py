"""Arguments of a spec beside the parameters of its kernels: CUDA itself compares neither."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from launchwise.base.errors import UserError
from launchwise.cli.new.signature import Kernel, Parameter, read_source
from launchwise.cli.new.types import fits
from launchwise.workloads.arguments import Argument, parameters_of, types_of
from launchwise.workloads.described import steps_of
from launchwise.workloads.parts import SPEC_FILE
from launchwise.workloads.spec import Spec


def check_signatures(folder: Path, spec: Spec) -> None:
    """Compare number, kind and type of arguments with the kernels of each variant.

    What cannot be read off a file is taken to be right: templates, types that macros make.

    Raises
    ------
    UserError
        At the first difference.
    """
    if not spec.arguments:
        return
    launched = list(_launched(folder, spec))
    writable = {
        (variant, argument)
        for variant, _, kernel, named in launched
        for argument, parameter in zip(named, kernel.parameters, strict=False)
        if not parameter.const
    }
    for variant, name, kernel, named in launched:
        given = [each for each in named if each in spec.arguments]
        takes = kernel.parameters
        key = f"variants.{variant}.arguments"
        if len(given) != len(takes):
            listed = ", ".join(each.name for each in takes)
            message = f"{name} takes {len(takes)} ({listed}), {len(given)} are given"
            raise UserError(folder / SPEC_FILE, key, f"{message} ({', '.join(given)})")
        for argument, parameter in zip(given, takes, strict=True):
            # One of several kernels that writes it is enough.
            read_only = (variant, argument) not in writable
            if said := _difference(spec, spec.arguments[argument], parameter, read_only):
                where = f"arguments.{argument}"
                raise UserError(folder / SPEC_FILE, where, f"{said}: {name}({parameter.name})")


def _launched(folder: Path, spec: Spec) -> Iterator[tuple[str, str, Kernel, list[str]]]:
    """Variant, name and definition of a kernel, and the arguments that it gets."""
    for variant, one in spec.variants.items():
        try:
            source = read_source(folder / str(one.source))
        except UserError:
            continue  # Its kernels may come from a header.
        known = {kernel.name: kernel for kernel in source.kernels if not kernel.refused}
        for step in steps_of(one):
            if step.kernel in known:
                named = list(parameters_of(step.arguments, spec.arguments))
                yield variant, step.kernel, known[step.kernel], named


def _difference(spec: Spec, argument: Argument, parameter: Parameter, read_only: bool) -> str:
    """Complaint about an argument; '' if it fits."""
    if argument.is_array != parameter.pointer:
        kinds = ("an array", "a number")
        own, other = kinds if argument.is_array else kinds[::-1]
        return f"is {own}, the kernel takes {other}"
    if argument.is_written and read_only:
        return f"is {argument.role}, the kernel takes it as const"
    if not parameter.type:
        return ""
    for each in types_of(argument, spec.problem):
        if not fits(parameter.type, each):
            return f"is {each}, the kernel takes {parameter.written}"
    return ""
