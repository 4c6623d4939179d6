"""Preprocessed CUDA C++ for g++: what stands for __shared__, what is refused, entry functions."""

from __future__ import annotations

import bisect
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property

from launchwise.base.storage import digest
from launchwise.cpu.other_code import other_code
from launchwise.cuda_text.declarations import items
from launchwise.cuda_text.syntax import declarators, parse
from launchwise.workloads.builds import Build, split_kernel

REFUSED = {
    r"\b(?:asm|__asm__|__asm)\b": "inline PTX (asm)",
    r"\bwmma\s*::|\bnvcuda\b|\b__w?mma_\w+": "tensor cores (wmma)",
    r"\b__pipeline_\w+|\bmemcpy_async\b|\bcuda\s*::\s*pipeline\b": "asynchronous copies",
    r"\bcuda\s*::\s*\w+": "libcu++ (cuda::)",
    r"\btex(?:1D|2D|3D|Cubemap)\w*\s*[<(]|\bcudaTextureObject_t\b|\btexture\s*<": "textures",
    r"\bsurf(?:1D|2D|3D)\w*\s*[<(]|\bcudaSurfaceObject_t\b": "surfaces",
    r"<<<": "a launch in the source (<<<>>>)",
    r"\bcuda[A-Z]\w*\s*\(": "a call of the CUDA runtime",
    r"\b__cluster_dims__\b|\bcluster_group\b|\bthis_cluster\b": "thread block clusters",
    r"\bgrid_group\b|\bthis_grid\b": (
        "a group of the whole grid (its sync() fails on a GPU, too: no launch is cooperative)"
    ),
    r"\b__(?:ballot|any|all|shfl|shfl_up|shfl_down|shfl_xor)\s*\(": (
        "a warp operation without _sync, which CUDA 9 has replaced"
    ),
    r"\b__(?:v\w+[24]|dp[24]a\w*)\s*\(": "a SIMD instruction on packed integers",
}
"""Pattern in the preprocessed text of the user's files to the name of what the CPU cannot run."""

LIBRARIES = "cub|thrust|cutlass|cute"

REFUSED |= {
    rf"\b(?:{LIBRARIES})\s*::|\bnamespace\s+(?:{LIBRARIES})\b|"
    r"\b(?:curand|cublas|cufft|cusparse|cusolver|cudnn|nvtx)\w+": "a library of CUDA's",
    r"\b__nv_fp8\w*|\b__nv_fp4\w*|\b__nv_fp6\w*": "floating-point numbers of 8 bits and less",
}

HEADERS = {
    r"cuda_fp[468]\.h": "floating-point numbers of 8 bits and less",
    r"mma\.h": "tensor cores (wmma)",
    r"cuda_pipeline.*|cooperative_groups/memcpy_async\.h": "asynchronous copies",
    r"cooperative_groups/.*": "these cooperative groups",
    r"cub/.*|thrust/.*|cuda/.*|cutlass/.*|cute/.*": "a library of CUDA's",
    r"(?:curand|cublas|cufft|cusparse|cusolver|cudnn|nvtx|nvToolsExt|nvml)[\w/]*\.h": (
        "a library of CUDA's"
    ),
    r"texture_.*|surface_.*": "textures",
    r"(?:cuda_profiler_api|cudaProfiler|nvrtc|device_functions|device_atomic_functions|sm_\w+|"
    r"cuda_device_runtime_api|driver_types|driver_functions|channel_descriptor|host_defines|"
    r"builtin_types|crt/\w+|math_functions|library_types)\.h": "this header of CUDA's",
}
"""Pattern of a header that is empty on the CPU, for host code, to the name of what it declares."""

_MARKER = re.compile(r'^# (\d+) "((?:[^"\\]|\\.)*)"([ \d]*)$', re.MULTILINE)
_MARKING = re.compile(r"^#.*$", re.MULTILINE)
_SPACE = r"(?:\s|^\#[^\n]*$)"
_ALIGNED = rf"__attribute__{_SPACE}*\(\((?:[^()]|\([^()]*\))*\)\)|alignas{_SPACE}*\([^()]*\)"
_SHARED = re.compile(
    rf"(?P<before>(?:\b(?:extern|static|volatile)\b|{_ALIGNED}|{_SPACE})*)\b__shared__\b",
    re.MULTILINE,
)
_WAITS = re.compile(r"\blaunchwise_cpu::Place\b")


class Refused(Exception):
    """The source uses something that the CPU device cannot run; the message names file and line."""


@dataclass(frozen=True)
class Place:
    """A line of a file; ``system`` for headers of the compiler and of the CPU device."""

    file: str
    line: int
    system: bool

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


@dataclass(frozen=True)
class Kernel:
    """A ``__global__`` function."""

    name: str
    arguments: str  # template arguments of an explicit instantiation, with `<>`
    scope: tuple[str, ...]  # named namespaces around it, the outermost first
    template: bool  # whether it is a template, which cannot be launched without arguments
    place: Place = field(compare=False)


@dataclass
class Source:
    """Output of the preprocessor for one translation unit."""

    text: str
    host_names: frozenset[str] = frozenset()
    _arrays: int = field(default=0, init=False)

    @cached_property
    def _markers(self) -> list[tuple[int, int, str, bool]]:
        return [
            (found.end() + 1, int(found[1]), found[2], "3" in found[3].split())
            for found in _MARKER.finditer(self.text)
        ]

    def place(self, position: int) -> Place:
        """File and line of a character of the text."""
        index = bisect.bisect_right(self._markers, position, key=lambda marker: marker[0]) - 1
        if index < 0:
            return Place("cuda_on_cpu.h", 1, True)
        start, line, file, system = self._markers[index]
        return Place(unquoted(file), line + self.text.count("\n", start, position), system)

    @property
    def files(self) -> set[str]:
        named = {unquoted(file) for _, _, file, system in self._markers if not system}
        return {file for file in named if file.startswith("/") and not file.startswith("/usr/")}

    @cached_property
    def _of_user(self) -> tuple[str, list[int], list[int]]:
        """Text of the user's files; where its pieces begin in the whole text, and in itself."""
        starts, pieces, places, total = list[int](), list[str](), list[int](), 0
        ends = [marker[0] for marker in self._markers[1:]] + [len(self.text)]
        # What a macro of a system header stands for is marked as the system's, in the user's file.
        users = {file for _, _, file, system in self._markers if not system}
        for (start, _, file, _), end in zip(self._markers, ends, strict=True):
            if file in users and start < end:
                starts.append(start)
                places.append(total)
                # A piece ends with the line of the next marker, which is no code.
                pieces.append(_MARKING.sub(lambda line: " " * len(line[0]), self.text[start:end]))
                total += end - start
        return "".join(pieces), starts, places

    def needed(self, kernels: Iterable[str]) -> Source:
        """The same source with blanks for what no launch needs; its lines stay where they are.
        ``kernels``: those that are launched; without any, all of them."""
        own, starts, places = self._of_user
        names, kept, done = set[str](), list[str](), 0
        for begin, stop, name in other_code(own, kernels):
            names.add(name)
            first = bisect.bisect_right(places, begin) - 1
            for index in range(first, bisect.bisect_left(places, stop)):
                shift = starts[index] - places[index]
                end = places[index + 1] if index + 1 < len(places) else len(own)
                at, to = shift + max(begin, places[index]), shift + min(stop, end)
                kept += [self.text[done:at], re.sub(r"(?m)^(?!#).+$", "", self.text[at:to])]
                done = to
        return Source("".join([*kept, self.text[done:]]), frozenset(names - {""}))

    @property
    def waits(self) -> bool:
        return _WAITS.search(self.text) is not None

    def check(self) -> None:
        """Refuse what the CPU cannot run. Raises Refused for the first such construct outside of
        system headers."""
        found = []
        for pattern, name in REFUSED.items():
            for match in re.finditer(pattern, self.text):
                place = self.place(match.start())
                if not place.system and not self._in_literal(match.start()):
                    found.append((match.start(), f"{place}: the CPU device cannot run {name}"))
                    break
        if found:
            raise Refused(min(found)[1])

    def _in_literal(self, position: int) -> bool:
        line = self.text[self.text.rfind("\n", 0, position) + 1 : position]
        return line.startswith("#") or len(re.findall(r'(?<!\\)"', line)) % 2 == 1

    def kernels(self) -> list[Kernel]:
        """The kernels of the source, and the explicit instantiations of templates."""
        own, starts, places = self._of_user
        found: dict[Kernel, None] = {}
        for item in items(parse(own)):
            named = item.declarator
            if item.is_kernel and item.is_function and named.node is not None:
                at = named.node.start_byte
                index = bisect.bisect_right(places, at) - 1
                place = self.place(at - places[index] + starts[index])
                scope = tuple(filter(None, item.scope))
                found[Kernel(named.name, named.given, scope, item.is_template, place)] = None
        return list(found)

    def translated(self) -> str:
        """The text as g++ compiles it. Raises Refused for a declaration of shared memory in a form
        that is not known."""
        pieces, done = [], 0
        declared = "__shared__" in self.text  # the pattern takes long where there is none
        for match in _SHARED.finditer(self.text) if declared else ():
            end = self._statement_end(match.end())
            pieces.append(self.text[done : match.start()])
            pieces.append(self._shared(match, self.text[match.end() : end], self.place(end)))
            done = end + 1
        text = "".join([*pieces, self.text[done:]])
        text = re.sub(r"\b__(?:global|device|host|managed)__\b", "", text)
        text = re.sub(r"\bstatic\s+__constant__|__constant__\s+static\b|\b__constant__\b", "", text)
        plain, named = r"(?<![\w(])__noinline__\b", "__attribute__((noinline))"
        return re.sub(plain, named, text)

    def _statement_end(self, position: int) -> int:
        depth = 0
        for match in re.finditer(r"[{};]", self.text[position : position + 20000]):
            depth += {"{": 1, "}": -1}.get(match[0], 0)
            if match[0] == ";" and depth == 0:
                return position + match.start()
        raise Refused(f"{self.place(position)}: __shared__ begins no declaration")

    def _shared(self, match: re.Match[str], declaration: str, end: Place) -> str:
        """A declaration of shared memory, as one of static memory: poisoned, between fences."""
        whole = re.sub(r"(?m)^#.*$", " ", f"{match['before']} {declaration}")
        aligned, words = re.findall(_ALIGNED, whole), re.sub(_ALIGNED, " ", whole).split()
        bare = " ".join(word for word in words if word not in ("extern", "static"))
        nodes = parse(f"{bare};").children
        names = [one.node for one in declarators(nodes[0]) if one.node] if nodes else []
        if not names or len(names) != len(declarators(nodes[0])):
            place = self.place(match.end())
            raise Refused(f"{place}: this form of a __shared__ declaration is not known")
        text, lines = bare, list[str]()
        for node in reversed(names):
            self._arrays += 1
            kind, name = f"launchwise_type_{self._arrays}", bare[node.start_byte : node.end_byte]
            text = text[: node.start_byte] + kind + text[node.end_byte :]
            if "extern" in words:
                memory = f"reinterpret_cast<{kind} &>(launchwise_cpu::dynamic_shared)"
                lines.append(f"static {kind} &{name} = {memory};")
                continue
            fenced, added = (f"launchwise_{each}_{self._arrays}" for each in ("fenced", "added"))
            lines += [
                *aligned,
                f"static launchwise_cpu::Fenced<{kind}> {fenced};",
                f"static {kind} &{name} = {fenced}.array;",
                f"static const bool {added} = "
                f'launchwise_cpu::add_shared("{name}", (void *)&{name}, sizeof({name}));',
            ]
        return f' typedef {text}; {" ".join(lines)}\n# {end.line} "{end.file}"\n'


def unquoted(name: str) -> str:
    """A file's name as the preprocessor writes it in a marker, with its own bytes."""
    plain = re.sub(r"\\([\\\"])", r"\1", name)
    raw = re.sub(r"\\([0-7]{3})", lambda code: chr(int(code[1], 8)), plain)
    return raw.encode("latin-1").decode(errors="replace") if raw != plain else plain


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
    file = kernel.place.file.replace("\\", "\\\\").replace('"', '\\"')
    marker = f'# {kernel.place.line} "{file}"'
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
