"""Functions of a compiled build that the CPU device calls: two for each kernel."""

from __future__ import annotations

from collections.abc import Iterable

from launchwise.base.storage import digest
from launchwise.cpu.source import Kernel
from launchwise.workloads.builds import Build, split_kernel


def entry_name(build: Build, kernel: str) -> str:
    """Name, an identifier of C, by which a launch finds a kernel of a build."""
    own = split_kernel(kernel)[0].split("::")[-1]
    exact = own == kernel
    return build.symbol(own) if exact else f"{build.symbol(own)}_{digest(kernel)}"


def entries(build: Build, kernels: list[Kernel], waits: str) -> str:
    """Source text of the functions that run a kernel and that tell its parameters. Kernels that
    share a name, in several namespaces or as instantiations of a template, have none by this name
    alone."""
    lines = ['extern "C" char *make_stacks() { return launchwise_cpu::make_stacks(); }']
    launched = {entry_name(build, text) for text in build.kernels} | set(build.kernels)
    by_name: dict[str, list[Kernel]] = {}
    for kernel in kernels:
        # Those of a file that nothing launches may be overloaded: their names alone mean no one.
        if not kernel.template and (not launched or kernel.name in launched):
            by_name.setdefault(kernel.name, []).append(kernel)
    for name, same in by_name.items():
        if len({(kernel.scope, kernel.arguments) for kernel in same}) == 1:
            lines += _entry(name, f"{name}{same[0].arguments}", same[0], waits)
    for text in build.kernels:
        meant = _meant(build, text, kernels)
        if meant is not None and entry_name(build, text) not in by_name:
            arguments = text[text.index("<") :] if "<" in text else ""
            lines += _entry(entry_name(build, text), f"{meant.name}{arguments}", meant, waits)
    return "\n".join(["", *lines, ""])


def _meant(build: Build, text: str, kernels: Iterable[Kernel]) -> Kernel | None:
    """The kernel that ``inner::gemm<64, float>`` names; None if none or several."""
    *spaces, own = split_kernel(text)[0].split("::")
    named = {
        (kernel.scope, kernel.template): kernel
        for kernel in kernels
        if kernel.name == build.symbol(own)
        and not kernel.arguments
        and kernel.template == ("<" in text)
        and list(kernel.scope[len(kernel.scope) - len(spaces) :]) == spaces
    }
    return next(iter(named.values())) if len(named) == 1 else None


def _entry(name: str, expression: str, kernel: Kernel, waits: str) -> list[str]:
    path = "".join(f"{space}::" for space in kernel.scope)
    marker = f'# {kernel.place.line} "{_quoted(kernel.place.file)}"'
    # Template arguments may name what the kernel's own namespace holds.
    pointer = f"launchwise_entry_{name}"
    before = " ".join(f"namespace {space} {{" for space in kernel.scope)
    return [
        marker,
        f"{before} static constexpr auto {pointer} = &{expression}; {'}' * len(kernel.scope)}",
        marker,
        f'extern "C" int run_{name}(void **arguments, const launchwise_cpu::Request *request) '
        f"{{ return launchwise_cpu::run<launchwise_cpu::Waits::{waits}>"
        f"({path}{pointer}, arguments, request); }}",
        marker,
        f'extern "C" unsigned describe_{name}(unsigned *parameters) '
        f"{{ return launchwise_cpu::describe({path}{pointer}, parameters); }}",
    ]


def _quoted(file: str) -> str:
    return file.replace("\\", "\\\\").replace('"', '\\"')
