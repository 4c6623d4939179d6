"""One problem of a workload that its spec describes: buffers, inputs, launches and check.

Inputs are made on the host from the seed of the problem; outputs are compared with the reference,
element by element.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from launchwise.base.errors import UserError, raising
from launchwise.base.names import SPEC_FILE, assigned
from launchwise.workloads.arguments import GIVEN, NULL, parameters_of
from launchwise.workloads.builds import Build
from launchwise.workloads.comparison import Untouched, Zone, guarded
from launchwise.workloads.declared.content import Content, named_shape
from launchwise.workloads.declared.expected import Outputs, OwnReference, number
from launchwise.workloads.device import (
    Buffer,
    Device,
    FunctionRun,
    Launch,
    LaunchSequence,
    OutOfMemory,
    Restore,
    Runnable,
    closed_on_error,
)
from launchwise.workloads.launch_shapes import Planned, evaluated, planned, swapped_in
from launchwise.workloads.output_check import (
    BYTE,
    OutputCheck,
    Poison,
    nan_in,
    unchanged,
    wrong_element,
)
from launchwise.workloads.workload import Finding, Session, Workload

UNCHANGED = "as it was: a kernel that does nothing would be right"


class DeclaredSession(Session):
    """One problem on one device, in the layout of some configurations.

    ``layout``: tunables that arrays or the reference depend on.
    ``content``, ``wanted``: content of the arrays, and what the reference expects.
    Raises OutOfMemory when its arrays do not fit. Raises UserError when inputs or the reference do
    not fit the arguments.
    """

    def __init__(
        self,
        workload: Workload,
        device: Device,
        problem: Mapping[str, Any],
        layout: Mapping[str, Any],
        seed: int,
        reference: OwnReference,
        content: Content,
        wanted: Outputs,
    ) -> None:
        super().__init__(workload, device, problem, seed)
        spec = workload.spec
        self.arguments = spec.arguments
        self.names = {**problem, **layout, **content.numbers}
        self.content, self._wanted, self._own = content, wanted, reference
        self.working_set_bytes = int(spec.value(spec.work.bytes, problem))
        self._checks: dict[str, list[OutputCheck]] | None = None
        self._poison: dict[str, Poison] = {}
        self._constants: set[Build] = set()
        self._struct_kernels: set[tuple[Build, str]] = set()
        self._passed: Mapping[str, str] = {}
        self._fills = 0
        self._zones: dict[str, Zone] = {}
        self._pristine: dict[str, Buffer] = {}
        swapped = {
            name for one in spec.variants.values() for pair in swapped_in(one) for name in pair
        }
        with closed_on_error(self):
            self.buffers = dict(self._allocated())
            self._keep_pristine(swapped)
            kept = {
                name: (self.buffers[name], array)
                for name, array in self.content.arrays.items()
                if self.arguments[name].role == "input"
                and name not in swapped
                and name in self.buffers
            }
            self._untouched = Untouched(device, self.memory, kept, self._zones)
            self._untouched.note()

    def _allocated(self) -> Iterator[tuple[str, Buffer]]:
        for name, argument in self.arguments.items():
            if not argument.is_array or argument.constant is not None:
                continue
            content = self.content.arrays.get(name)
            nbytes = math.prod(self._shape(name)) * argument.dtype(self.names).itemsize
            if self.device.guards_buffers:
                buffer = self.memory.take(nbytes)
            else:
                self._zones[name] = guarded(self.device, self.memory, nbytes, len(self._zones))
                buffer = self._zones[name].array
            if content is not None:
                self.device.upload(buffer, content)
            yield name, buffer

    def _keep_pristine(self, swapped: set[str]) -> None:
        for name, array in self.content.arrays.items():
            argument = self.arguments[name]
            if argument.is_restored or (name in swapped and argument.restore):
                try:
                    self._pristine[name] = self.memory.upload(array)
                except OutOfMemory as error:
                    message = (
                        f"{SPEC_FILE}: arguments.{name}: does not fit twice, and is put back "
                        f"before each launch (restore: false leaves that out): {error}"
                    )
                    raise OutOfMemory(message) from error

    def launch(self, configuration: Mapping[str, Any]) -> Runnable:
        """Kernels of a configuration, with grids, blocks and arguments."""
        workload = self.workload
        spec = workload.spec
        variant = spec.variants[str(configuration["variant"])]
        build = workload.build(self.problem, configuration)
        self._fill_constants(build)
        names = {**self.names, **configuration}
        key = f"variants.{configuration['variant']}"
        try:
            plan = planned(spec, variant, names)
        except ValueError as error:
            raise self._mistake(f"{key}.repeat", str(error)) from error
        if not plan:
            raise self._mistake(f"{key}.repeat", "gives no launch at all")
        # After the last launch, a name means what that launch was given.
        self._passed = {other: name for name, other in plan[-1].passed.items()}
        launches = tuple(self._launch(build, each, names) for each in plan)
        restores = tuple(Restore(kept, self._buffer(name)) for name, kept in self._pristine.items())
        if variant.offloads:
            return FunctionRun(self.device, launches[0], restores)
        if len(launches) == 1:
            (only,) = launches
            return Launch(**{**vars(only), "restores": restores})
        places = [each.place for each in plan]
        main = next((number for number, step in enumerate(variant.steps) if step.main), 0)
        return LaunchSequence(launches, places.index(main) if main in places else 0, restores)

    def _buffer(self, name: str, passed: Mapping[str, str] | None = None) -> Buffer:
        """Buffer of an array at a launch; at the first one where no launch is named. Where arrays
        change places, the first launch is given those that make the last one write where the names
        say."""
        given = (passed or {}).get(name, name)
        return self.buffers[self._passed.get(given, given)]

    def _launch(self, build: Build, each: Planned, names: Mapping[str, Any]) -> Launch:
        known = {**names, **each.counters}
        shape = evaluated(self.workload.spec, each.step, known)
        passed = parameters_of(each.step.arguments, self.arguments)
        values = tuple(self._argument(name, known, each.passed) for name in passed)
        shared = shape.shared_bytes or 0
        made = Launch(build, shape.kernel, shape.grid, shape.block, values, shared)
        self._check_structs(made, passed)
        return made

    def _check_structs(self, launch: Launch, names: list[str]) -> None:
        structs = [
            place
            for place, name in enumerate(names)
            if name != NULL
            and isinstance(self.arguments[name].type, dict)
            and not self.arguments[name].is_array
        ]
        if not structs or (launch.build, launch.kernel) in self._struct_kernels:
            return
        sizes = self.device.parameter_bytes(launch)
        for place in structs if sizes is not None and len(sizes) == len(names) else ():
            assert sizes is not None
            given = launch.arguments[place].nbytes
            if given != sizes[place]:
                message = f"is a struct of {given} B, the kernel's parameter has {sizes[place]} B"
                raise self._mistake(f"arguments.{names[place]}", message)
        self._struct_kernels.add((launch.build, launch.kernel))

    def _argument(self, name: str, known: Mapping[str, Any], passed: Mapping[str, str]) -> Any:
        if name == NULL:
            return np.uint64(0)
        argument = self.arguments[name]
        if argument.is_array:
            return self._buffer(name, passed)
        if argument.value == GIVEN:
            return self.content.numbers[name]
        with raising(self._mistake):
            value = number(self.workload.spec, name, known)
        return value

    def _fill_constants(self, build: Build) -> None:
        if build in self._constants:
            return
        for name, argument in self.arguments.items():
            if argument.constant is not None:
                content = self.content.arrays[name]
                place = self.device.constant(build, argument.constant)
                if place.nbytes < content.nbytes:
                    message = f"has {place.nbytes} bytes, {name} needs {content.nbytes}"
                    path = self.workload.folder / build.source
                    raise UserError(path, argument.constant, message)
                self.device.upload(place, content)
        self._constants.add(build)

    def poison(self) -> None:
        """Fill outputs with what is not expected, and all that launches change anew. The first call
        computes the reference, too, where it is a variant of the workload: it writes to the same
        buffers."""
        if self._checks is None:
            if (variant := self._reference.variant) is not None:
                passed = self._passed
                self._wanted = self._by_variant(variant)
                self._passed = passed
            self._checks = self._output_checks()
        self._refill()
        for name, each in self._poison.items():
            if self._passed.get(name, name) == name:
                each.fill()
            else:
                # What the last launch writes holds the content of another array at the first.
                self.device.fill_bytes(self._buffer(name), BYTE)

    @property
    def _reference(self) -> Any:
        return self.workload.spec.reference

    def _refill(self) -> None:
        self._fills += 1
        for name in self.buffers:
            argument = self.arguments[name]
            target = self._buffer(name)
            if name in self._pristine:
                self.device.copy(self._pristine[name], target)
            elif argument.role != "input" and name in self.content.arrays:
                self.device.upload(target, self.content.arrays[name])
            elif argument.role == "scratch":
                # Not the same twice: nothing may rely on what it holds.
                self.device.fill_bytes(target, BYTE if self._fills % 2 else 0x7B)
            elif argument.role == "output" and name not in self._poison:
                self.device.fill_bytes(target, BYTE)

    def check(self) -> Finding:
        """Compare every output with the reference, relative to its largest expected value."""
        if said := self._untouched.complaint():
            return Finding(0.0, 0.0, said)
        if self._own.compares:
            found, expected = self._downloaded(), dict(self._wanted)
            said = self._own.compared(self.names, self.content, found, expected)
            return Finding(0.0, 0.0, said)
        # The output that comes nearest to its limit stands for all.
        worst = Finding(0.0, 0.0)
        nearest = -1.0
        assert self._checks is not None  # poison comes first
        for name, checks in self._checks.items():
            for output in checks:
                limit = self._reference.tolerance_for(output.dtype)
                difference = output.difference(limit)
                error = output.expected.relative(difference)
                # A NaN compares false, so it is wrong.
                if not error <= limit:
                    poison = self._poison.get(name)
                    said = wrong_element(name, output, poison, difference.index, error, limit)
                    return Finding(error, limit, said)
                if (share := error / limit if limit else 0.0) > nearest:
                    nearest, worst = share, Finding(error, limit)
        return worst

    def _downloaded(self) -> Outputs:
        found = {}
        for name, argument in self.arguments.items():
            if argument.is_written:
                found[name] = np.empty(self._shape(name), argument.dtype(self.names))
                self.device.download(self.buffers[name], found[name])
        return found

    def _shape(self, name: str) -> tuple[int, ...]:
        if name in self.content.arrays:
            return self.content.arrays[name].shape
        return named_shape(self.workload.folder, self.workload.spec, name, self.names)

    def _output_checks(self) -> dict[str, list[OutputCheck]]:
        """Checks of every output that is compared; several of one whose elements are structs.
        Raises UserError when the reference holds NaN that is not meant, or verifies nothing."""
        spec = self.workload.spec
        checks: dict[str, list[OutputCheck]] = {}
        for name, values in self._wanted.items():
            if not self._reference.allow_nan and (place := nan_in(values)) is not None:
                message = f"is NaN at {name}[{place}]: say allow_nan: true if that is meant"
                raise self._mistake("reference", message)
            dtype = self.arguments[name].dtype(self.names)
            whole = self.device, self.memory, self.buffers[name], dtype
            fields = dtype.names or (None,)
            checks[name] = [
                OutputCheck(*whole, values if field is None else values[field], field)
                for field in fields
            ]
            if self.arguments[name].role == "output":
                with np.errstate(all="ignore"):
                    expected = np.ma.getdata(values).astype(dtype)
                self._poison[name] = Poison(self.device, self.memory, self.buffers[name], expected)
        if not checks and not self._own.compares:
            raise self._mistake("reference", "gives None for every output: nothing is verified")
        only_inout = all(self.arguments[name].role == "inout" for name in checks)
        if checks and only_inout and unchanged(self._wanted, self.content.arrays):
            listed = ", ".join(checks)
            where = f"reference at {assigned(self.problem)}"
            raise self._mistake(where, f"leaves {listed} {UNCHANGED}")
        assert spec.reference is not None
        return checks

    def _by_variant(self, variant: str) -> Outputs:
        spec = self.workload.spec
        neutral = spec.neutral
        own = {name: value for name, value in self.names.items() if name in spec.tunables}
        work = self.launch({"variant": variant, **neutral, **own})
        self._refill()
        for each in work.launches:
            self.device.launch(each)
        return self._downloaded()

    def _mistake(self, key: str, message: str) -> UserError:
        return UserError(self.workload.folder / SPEC_FILE, key, message)
