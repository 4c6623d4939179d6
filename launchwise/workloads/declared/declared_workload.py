"""The workload of a folder: its own host code, or what a spec with ``arguments`` declares.

Of the latter builds, layouts and content need no Python.
"""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Iterable, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

from launchwise.base.errors import UserError
from launchwise.workloads.builds import Build, triton_build
from launchwise.workloads.comparison import DIGEST_BUILD
from launchwise.workloads.declared.content import Content, Source, nbytes_of
from launchwise.workloads.declared.declared_session import DeclaredSession
from launchwise.workloads.declared.expected import Outputs, OwnReference
from launchwise.workloads.declared.own_functions import import_from
from launchwise.workloads.device import Device
from launchwise.workloads.output_check import compare_build
from launchwise.workloads.spec import Spec
from launchwise.workloads.templates import macro_names, resolved_kernel
from launchwise.workloads.workload import Session, Workload


class DeclaredWorkload(Workload):
    """A workload that its spec describes whole."""

    session: type[DeclaredSession] = DeclaredSession
    """Class of its sessions."""

    @cached_property
    def source(self) -> Source:
        """Makes the content of problems."""
        return Source(self.folder, self.spec)

    @cached_property
    def reference(self) -> OwnReference:
        """Gives the expected outputs."""
        return OwnReference(self.folder, self.spec)

    @cached_property
    def _read_by_data(self) -> list[str]:
        """Tunables that inputs, outputs or the reference depend on, in the order of the spec."""
        spec = self.spec
        read = set(self.reference.read_names())
        for name in list(read):
            if name in spec.arguments:
                texts = spec.arguments[name].values.values()
                read |= {each for text in texts for each in spec.formulas.raw_names(text)}
            elif name in spec.derived:
                read |= set(spec.formulas.raw_names(name))
        return [
            name for name in spec.tunables if name in read | self._read_by_arrays(scratch=False)
        ]

    def _read_by_arrays(self, scratch: bool) -> set[str]:
        """Names that types and shapes read: of scratch arrays, or of all others."""
        spec = self.spec
        texts = [
            text
            for argument in spec.arguments.values()
            if (argument.role == "scratch") == scratch
            for text in (*argument.sizes, argument.type)
            if isinstance(text, str)
        ]
        return {name for text in texts for name in spec.formulas.raw_names(text)}

    def layout(self, configuration: Mapping[str, Any]) -> Hashable:
        """Values of the tunables that arrays or the reference depend on: they share buffers."""
        return tuple((name, configuration[name]) for name in self._read_by_layouts)

    @cached_property
    def _read_by_layouts(self) -> list[str]:
        read = {*self._read_by_data, *self._read_by_arrays(scratch=True)}
        return [name for name in self.spec.tunables if name in read]

    def build(self, problem: Mapping[str, Any], configuration: Mapping[str, Any]) -> Build:
        """Build tunables of the variant as macros of the same names, and ``macros`` of the spec.
        For Triton they are constexprs and options of the compiler."""
        spec = self.spec
        variant = spec.variants[str(configuration["variant"])]
        if variant.is_triton:
            return triton_build(self.folder, spec, variant, problem, configuration)
        named = macro_names(self.folder, spec, variant)
        macros = {name: configuration[name] for name in named if name in spec.tunables}
        for name, text in spec.macros.items():
            if name in named:
                macros[name] = spec.value(text, problem, configuration)
        kernels = [
            resolved_kernel(spec, kernel, problem, configuration) for kernel in variant.kernel_names
        ]
        return Build.of(variant.source, macros, dict.fromkeys(kernels))

    def check_builds(self, problem: Mapping[str, Any]) -> list[Build]:
        """Builds that compare large outputs, that watch what must stay, and of the reference."""
        spec = self.spec
        builds: list[Build | None] = [DIGEST_BUILD]
        for argument in spec.arguments.values():
            if argument.is_written and not isinstance(argument.type, dict):
                for names in self._neutral_but([argument.type]):
                    names |= problem
                    try:
                        nbytes = nbytes_of(spec, argument, names)
                    except ValueError:
                        nbytes = 1 << 30  # Data decide its size: it may be large.
                    builds.append(compare_build(argument.dtype(names), nbytes))
        builds += self._reference_builds(problem)
        return list(dict.fromkeys(build for build in builds if build is not None))

    def _reference_builds(self, problem: Mapping[str, Any]) -> list[Build]:
        """Builds of the variant that is the reference: neutral ones, in each layout. No constraint
        holds for them: a sweep may leave them out."""
        spec = self.spec
        if spec.reference is None or spec.reference.variant is None:
            return []
        own = [name for name in self._read_by_layouts if spec.tunables[name].kind == "build"]
        first = {"variant": spec.reference.variant}
        return [self.build(problem, first | each) for each in self._neutral_but(own)]

    def _neutral_but(self, names: Iterable[str]) -> list[dict[str, Any]]:
        """Neutral tunables, with every value of those among ``names``."""
        tunables = self.spec.tunables
        values = {name: tunables[name].values for name in names if name in tunables}
        return [
            {**self.spec.neutral, **dict(zip(values, chosen, strict=True))}
            for chosen in itertools.product(*values.values())
        ]

    def check_reference(self, device: Device, problem: Mapping[str, Any], seed: int) -> str:
        """Nothing to compare: inputs and reference are made on the host alone. How a device
        compares is checked by each session (see
        :class:`launchwise.workloads.output_check.OutputCheck`)."""
        return ""

    def open(
        self, device: Device, problem: Mapping[str, Any], layout: Hashable, seed: int
    ) -> Session:
        """Make the inputs of a problem and put them on the device."""
        assert isinstance(layout, tuple)
        values = dict(layout)
        made = self.content_and_outputs({**problem, **values}, problem, seed)
        return self.session(self, device, problem, values, seed, self.reference, *made)

    def content_and_outputs(
        self, names: Mapping[str, Any], problem: Mapping[str, Any], seed: int
    ) -> tuple[Content, Outputs]:
        """Content of a problem, and what its reference expects; kept for the next layout."""
        key = (seed, *((name, names[name]) for name in (*problem, *self._read_by_data)))
        if self._kept is None or self._kept[0] != key:
            content = self.source.content(problem, names, seed)
            self._kept = key, (content, self.reference.outputs(names, content))
        return self._kept[1]

    _kept: tuple[Any, tuple[Content, Outputs]] | None = None


HOST_MODULE = "host.workload"
"""Where the class of a workload is found in its folder: ``host/workload.py``."""


def host_file(folder: Path) -> Path:
    """Where a workload's host code begins."""
    return folder.joinpath(*HOST_MODULE.split(".")).with_suffix(".py")


def load_workload(folder: Path, spec: Spec) -> Workload:
    """The workload defined in ``folder/host/workload.py``, or by the ``arguments`` of its spec.
    Raises UserError when the file is missing where it is needed, fails, or defines no single
    subclass of :class:`Workload`."""
    path = host_file(folder)
    if not path.is_file():
        if spec.arguments:
            return DeclaredWorkload(folder, spec)
        if (folder / path.name).is_file():
            raise UserError(
                folder / path.name, "", f"must be moved to {path.parent.name}/{path.name}"
            )
        raise UserError(path, "", "is missing")
    module = import_from(folder, HOST_MODULE)
    found = [
        value
        for value in vars(module).values()
        if isinstance(value, type)
        and issubclass(value, Workload)
        and value.__module__ == module.__name__
    ]
    if len(found) != 1:
        raise UserError(path, "", f"must define one subclass of Workload, not {len(found)}")
    return found[0](folder, spec)
