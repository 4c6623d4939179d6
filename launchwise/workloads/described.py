"""The workload of a spec with ``arguments``: buffers, inputs, launches and check, without Python.

Inputs are drawn on the host from the seed of the problem, arguments in their order; outputs are
compared with the reference, element by element.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from launchwise.base.errors import UserError
from launchwise.workloads.arguments import Argument, Fill, Step, parameters_of
from launchwise.workloads.builds import Build
from launchwise.workloads.device import Buffer, Device, closed_on_error
from launchwise.workloads.launches import Launch, LaunchSequence, Runnable
from launchwise.workloads.output_check import OutputCheck, compare_build
from launchwise.workloads.parts import Variant
from launchwise.workloads.references import called, from_file
from launchwise.workloads.spec import Spec
from launchwise.workloads.templates import macro_names, resolved_kernel
from launchwise.workloads.workload import Finding, Session, Workload

Shape = tuple[int, int, int]


class DescribedWorkload(Workload):
    """A workload that its spec describes whole."""

    def build(self, problem: Mapping[str, Any], configuration: Mapping[str, Any]) -> Build:
        """Build tunables of the variant as macros of the same names, and ``macros`` of the spec."""
        spec = self.spec
        variant = spec.variants[str(configuration["variant"])]
        named = macro_names(self.folder, spec, variant)
        macros = {name: configuration[name] for name in named if name in spec.tunables}
        for name, text in spec.macros.items():
            if name in named:
                macros[name] = spec.value(text, problem, configuration)
        kernels = [
            resolved_kernel(spec, kernel, problem, configuration) for kernel in kernels_of(variant)
        ]
        return Build.of(variant.source, macros, dict.fromkeys(kernels))

    def check_builds(self, problem: Mapping[str, Any]) -> list[Build]:
        """Builds that compare large outputs."""
        written = (each for each in self.spec.arguments.values() if each.is_written)
        builds = (
            compare_build(each.dtype(problem), nbytes_of(self.spec, each, problem))
            for each in written
        )
        return list(dict.fromkeys(build for build in builds if build is not None))

    def check_reference(self, device: Device, problem: Mapping[str, Any], seed: int) -> str:
        """Nothing to compare: inputs and reference are made on the host alone.

        How a device compares is checked by each session (see
        :class:`launchwise.workloads.output_check.OutputCheck`).
        """
        return ""

    def open(
        self, device: Device, problem: Mapping[str, Any], layout: Hashable, seed: int
    ) -> Session:
        """Draw the inputs of a problem and put them on the device."""
        return DescribedSession(self, device, problem, seed)


def kernels_of(variant: Variant) -> list[str]:
    """Names of a variant's ``__global__`` functions."""
    return list(dict.fromkeys(step.kernel for step in steps_of(variant)))


def steps_of(variant: Variant) -> list[Step]:
    """Kernels of a variant, in order."""
    if variant.kernels or variant.kernel is None:
        return variant.kernels
    known = {name: getattr(variant, name) for name in ("block", "grid", "shared_bytes")}
    return [Step(kernel=variant.kernel, arguments=variant.arguments, **known)]


class DescribedSession(Session):
    """One problem on one device."""

    def __init__(
        self, workload: Workload, device: Device, problem: Mapping[str, Any], seed: int
    ) -> None:
        super().__init__(workload, device, problem, seed)
        spec = workload.spec
        self.arguments = spec.arguments
        self.inputs = drawn(workload.folder, spec, problem, seed)
        """Name to content, of every array that the kernel reads."""
        self.working_set_bytes = int(spec.value(spec.work.bytes, problem))
        self._outputs: dict[str, OutputCheck] | None = None
        self._constants: set[Build] = set()
        with closed_on_error(self):
            self.buffers = dict(self._allocated())

    def _allocated(self) -> Iterator[tuple[str, Buffer]]:
        """A buffer of every array that does not lie in constant memory."""
        for name, argument in self.arguments.items():
            if argument.is_array and argument.constant is None:
                if argument.is_read:
                    yield name, self.memory.upload(self.inputs[name])
                else:
                    yield (
                        name,
                        self.memory.take(nbytes_of(self.workload.spec, argument, self.problem)),
                    )

    def launch(self, configuration: Mapping[str, Any]) -> Runnable:
        """Kernels of a configuration, with grids, blocks and arguments."""
        spec = self.workload.spec
        variant = spec.variants[str(configuration["variant"])]
        build = self.workload.build(self.problem, configuration)
        self._fill_constants(build)
        steps = steps_of(variant)
        launches = tuple(self._launch(build, step, configuration) for step in steps)
        if len(launches) == 1:
            return launches[0]
        main = next((number for number, step in enumerate(steps) if step.main), 0)
        return LaunchSequence(launches, main)

    def _launch(self, build: Build, step: Step, configuration: Mapping[str, Any]) -> Launch:
        spec = self.workload.spec
        block, grid = (
            tuple(int(spec.value(text, self.problem, configuration)) for text in sizes)
            for sizes in (step.block, step.grid)
        )
        values = [
            self._argument(name, configuration)
            for name in parameters_of(step.arguments, self.arguments)
        ]
        shared = int(spec.value(step.shared_bytes, self.problem, configuration))
        kernel = resolved_kernel(spec, step.kernel, self.problem, configuration)
        return Launch(build, kernel, _sizes(grid), _sizes(block), tuple(values), shared)

    def _argument(self, name: str, configuration: Mapping[str, Any]) -> Any:
        argument = self.arguments[name]
        if argument.value is None:
            return self.buffers[name]
        value = self.workload.spec.value(argument.value, self.problem, configuration)
        return argument.dtype(self.problem).type(value)

    def _fill_constants(self, build: Build) -> None:
        """Copy inputs to the constant memory of a build: each has its own."""
        if build in self._constants:
            return
        for name, argument in self.arguments.items():
            if argument.constant is not None:
                place = self.device.constant(build, argument.constant)
                if place.nbytes < self.inputs[name].nbytes:
                    raise UserError(
                        self.workload.folder / build.source,
                        argument.constant,
                        f"has {place.nbytes} bytes, {name} needs {self.inputs[name].nbytes}",
                    )
                self.device.upload(place, self.inputs[name])
        self._constants.add(build)

    def poison(self) -> None:
        """Set every bit of the outputs; fill buffers that are read and written again.

        The first call computes the reference, too: a variant of the workload writes it to the same
        buffers.
        """
        if self._outputs is None:
            self._outputs = dict(self._output_checks())
        self._poison()

    def _poison(self) -> None:
        for name, argument in self.arguments.items():
            if argument.role == "output":
                self.device.fill_bytes(self.buffers[name], 0xFF)
            elif argument.role == "inout":
                self.device.upload(self.buffers[name], self.inputs[name])

    def check(self) -> Finding:
        """Compare every output with the reference, relative to its largest expected value."""
        reference = self.workload.spec.reference
        assert reference is not None  # the spec was checked
        # The output that comes nearest to its limit stands for all.
        worst = Finding(0.0, 0.0)
        nearest = -1.0
        assert self._outputs is not None  # poison comes first
        for name, output in self._outputs.items():
            limit = reference.tolerance_for(self.arguments[name].dtype(self.problem))
            difference = output.difference(limit)
            error = output.expected.relative(difference)
            # A NaN compares false, so it is wrong.
            if not error <= limit:
                return Finding(error, limit, _said(name, output, difference.index, error, limit))
            if (share := error / limit if limit else 0.0) > nearest:
                nearest, worst = share, Finding(error, limit)
        return worst

    def _output_checks(self) -> Iterator[tuple[str, OutputCheck]]:
        for name, values in self._reference().items():
            dtype = self.arguments[name].dtype(self.problem)
            yield name, OutputCheck(self.device, self.memory, self.buffers[name], dtype, values)

    def _reference(self) -> dict[str, np.ndarray]:
        spec, reference = self.workload.spec, self.workload.spec.reference
        assert reference is not None
        if reference.variant is not None:
            return self._by_variant(reference.variant)
        if reference.file is not None:
            found = from_file(self.workload.folder, reference.file, self.problem, self.inputs)
        else:
            found = called(spec, self.problem, self.inputs)
        outputs = [name for name, each in self.arguments.items() if each.is_written]
        where = reference.call or reference.file
        if len(found) != len(outputs):
            message = f"{where} gives {len(found)} arrays, the kernel writes {', '.join(outputs)}"
            raise UserError(self.workload.folder / "spec.yaml", "reference", message)
        checked = {}
        for name, array in zip(outputs, found, strict=True):
            shape = shape_of(spec, self.arguments[name], self.problem)
            if array.size != math.prod(shape):
                message = f"{where} gives shape {array.shape} for {name}, whose shape is {shape}"
                raise UserError(self.workload.folder / "spec.yaml", "reference", message)
            checked[name] = array.reshape(shape)
        return checked

    def _by_variant(self, variant: str) -> dict[str, np.ndarray]:
        """Outputs of a variant at neutral tunables."""
        spec = self.workload.spec
        neutral = {name: one.neutral for name, one in spec.tunables.items()}
        work = self.launch({"variant": variant, **neutral})
        self._poison()
        for each in work.launches:
            self.device.launch(each)
        found = {}
        for name, argument in self.arguments.items():
            if argument.is_written:
                shape = shape_of(spec, argument, self.problem)
                found[name] = np.empty(shape, argument.dtype(self.problem))
                self.device.download(self.buffers[name], found[name])
        return found


def _sizes(values: tuple[int, ...]) -> Shape:
    x, y, z = values
    return x, y, z


def shape_of(spec: Spec, argument: Argument, problem: Mapping[str, Any]) -> tuple[int, ...]:
    """Shape of an array for a problem."""
    return tuple(int(spec.value(text, problem)) for text in argument.shape or [])


def nbytes_of(spec: Spec, argument: Argument, problem: Mapping[str, Any]) -> int:
    """Bytes of an array for a problem."""
    return math.prod(shape_of(spec, argument, problem)) * argument.dtype(problem).itemsize


def drawn(folder: Path, spec: Spec, problem: Mapping[str, Any], seed: int) -> dict[str, np.ndarray]:
    """Content of every array that a kernel reads, drawn from ``seed``.

    Raises
    ------
    UserError
        When a ``.npy`` file is missing or does not fit.
    """
    generator = np.random.default_rng(seed)
    return {
        name: _content(folder, argument, shape_of(spec, argument, problem), problem, generator)
        for name, argument in spec.arguments.items()
        if argument.is_read
    }


def _content(
    folder: Path,
    argument: Argument,
    shape: tuple[int, ...],
    problem: Mapping[str, Any],
    generator: np.random.Generator,
) -> np.ndarray:
    dtype, fill = argument.dtype(problem), argument.fill or "uniform"
    if isinstance(fill, Fill):
        if fill.file is not None:
            return _from_file(folder, fill.file, shape, dtype)
        if fill.value is not None:
            return np.full(shape, fill.value, dtype)
        if fill.normal is not None:
            return generator.normal(*fill.normal, shape).astype(dtype)
        assert fill.uniform is not None
        return generator.uniform(*fill.uniform, shape).astype(dtype)
    if fill == "zeros":
        return np.zeros(shape, dtype)
    if fill == "iota":
        return np.arange(math.prod(shape)).reshape(shape).astype(dtype)
    if fill == "normal":
        return generator.standard_normal(shape).astype(dtype)
    if dtype.kind == "f":
        return generator.uniform(-1, 1, shape).astype(dtype)
    return generator.integers(0, 100, shape).astype(dtype)


def _from_file(folder: Path, name: str, shape: tuple[int, ...], dtype: np.dtype[Any]) -> np.ndarray:
    path = folder / name
    try:
        content = np.load(path, allow_pickle=False)
    except (OSError, ValueError) as error:
        raise UserError(path, "", f"is no .npy file of numbers: {error}") from error
    if not content.size:
        raise UserError(path, "", "is empty")
    return np.resize(content, shape).astype(dtype)


def _said(name: str, output: OutputCheck, index: int, error: float, limit: float) -> str:
    """Complaint about an output, with its worst element."""
    place = ", ".join(map(str, np.unravel_index(index, output.expected.shape)))
    return (
        f"{name}[{place}] is {output.read(index, 1)[0]:.6g}, expected "
        f"{output.expected.flat[index]:.6g}: off by {error:.3g} of the largest value "
        f"(allowed {limit:.3g})"
    )
