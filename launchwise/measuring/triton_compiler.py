"""Triton as the compile stage calls it: a cubin per build, without a GPU and without PyTorch.

A ``.py`` source of a variant has a ``@triton.jit`` function. A process per group of builds imports
Triton, since LLVM may abort: this module, too. It reads one JSON object from standard input and
answers with a JSON line for Triton itself, then one for each build. What it compiled is kept by
Triton's own cache, by the content of source, options and Triton itself.
"""

from __future__ import annotations

import contextlib
import importlib.util
import inspect
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from launchwise.base.errors import UserError
from launchwise.base.storage import user_cache, why_not_written
from launchwise.measuring.bundle import Apart, Compiled, CompilerMissing
from launchwise.workloads.builds import NONE, Build, constant
from launchwise.workloads.declared.own_functions import import_from
from launchwise.workloads.sources import INSTALL, MISSING, NO_LIMIT, OPTIONS, REGISTERS, source_text

_STACK = re.compile(r"REG:(?P<registers>\d+) STACK:(?P<stack>\d+)")
_ENTRY = re.compile(r"\.entry\s+\w+\s*\((?P<parameters>[^)]*)\)")
SCRATCH = ("global_scratch_size", "profile_scratch_size")


class Refused(Exception):
    """A build that cannot be compiled, or not launched as it is; the message says why."""


def main() -> None:
    """The process: answer what standard input asks."""
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
    # What the user's code prints is no answer.
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    asked = json.load(sys.stdin)

    def answer(said: Mapping[str, Any]) -> None:
        answers.write(json.dumps(said) + "\n")
        answers.flush()

    if said := _missing():
        return answer({"missing": said})
    import triton

    answer({"release": triton.__version__})
    folder = Path(asked["folder"])
    for build in asked["builds"]:
        try:
            entry = compiled(folder, build, asked["arch"], Path(asked["scratch"]))
        except Refused as refused:
            answer({"refused": str(refused)})
            continue
        answer({"kernel": entry})


def _missing() -> str:
    """What a build needs that Triton lacks; '' if nothing."""
    try:
        import triton
    except ImportError as error:
        return f"cannot be imported: {error}"
    release = getattr(triton, "__version__", "?")
    try:
        from triton.backends.compiler import GPUTarget  # noqa: F401
        from triton.compiler import ASTSource
        from triton.compiler import compile as _  # noqa: F401
        from triton.runtime.jit import JITFunction  # noqa: F401
    except ImportError as error:
        return f"{release} lacks what launchwise calls: {error}"
    for name in ("constexprs", "attrs"):
        if name not in inspect.signature(ASTSource).parameters:
            return f"{release} lacks what launchwise calls: ASTSource takes no {name}"
    return ""


def compiled(folder: Path, build: Mapping[str, Any], arch: str, scratch: Path) -> dict[str, Any]:
    """Entry of a build in the index of a bundle, without its cubin, which is written beside it.

    ``scratch``: folder that gets the cubin, ``<key of the build>.cubin``.
    Raises Refused with file and line where Triton names them.
    """
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    function = _function(folder, build["source"], build["kernel"])
    defines = dict(build["defines"])
    signature, constants, attributes, given = _specialisation(function, defines)
    options = {name: int(defines[name]) for name in OPTIONS if name in defines}
    if options.get(REGISTERS) == NO_LIMIT:
        del options[REGISTERS]
    source = ASTSource(fn=function, signature=signature, constexprs=constants, attrs=attributes)
    target = GPUTarget("cuda", int(re.sub(r"\D", "", arch)), 32)
    try:
        made = triton.compile(source, target=target, options=options)
    except Exception as error:
        raise Refused(_told(error, folder / build["source"])) from error
    metadata = made.metadata
    for name in SCRATCH:
        if size := getattr(metadata, name, 0):
            message = (
                f"it needs {size} B of scratch memory ({name}), which launchwise does not give"
            )
            raise Refused(f"triton: {build['kernel']}: {message}")
    if "vprintf" in made.asm["ptx"]:
        message = "prints (device_print) in a function that it calls, and cannot be timed"
        raise Refused(f"triton: {build['kernel']} {message}")
    parameters = _ENTRY.search(made.asm["ptx"])
    assert parameters is not None
    hidden = parameters["parameters"].count(".param") - len(given)
    cubin = scratch / f"{build['key']}.cubin"
    cubin.write_bytes(made.asm["cubin"])
    launch = {
        "threads": 32 * metadata.num_warps,
        "shared_bytes": metadata.shared,
        "ctas": metadata.num_ctas,
        "arguments": given,
        "null_pointers": hidden,
    }
    return {"symbol": metadata.name, **_resources(cubin), "launch": launch}


def _function(folder: Path, source: str, name: str) -> Any:
    """The ``JITFunction`` of a file, without decorators that choose configurations."""
    try:
        module = import_from(folder, source.removesuffix(".py").replace("/", "."))
    except UserError as error:
        raise Refused(f"triton: {Path(error.where).name}: {error.key} {error.message}") from error
    from triton.runtime.jit import JITFunction

    found = getattr(module, name)
    while not isinstance(found, JITFunction):
        found = found.fn  # Of triton.autotune and triton.heuristics.
    return found


def _specialisation(
    function: Any, defines: Mapping[str, str]
) -> tuple[dict[str, str], dict[tuple[int], Any], dict[tuple[int], Any], list[int]]:
    """Signature, constants and attributes as Triton takes them, and places of the arguments. Of the
    arguments of a launch, constants (the integer 1, ``None``) are none of the kernel."""
    signature: dict[str, str] = {}
    constants: dict[tuple[int], Any] = {}
    attributes: dict[tuple[int], Any] = {}
    given: list[int] = []
    arguments = 0
    for place, parameter in enumerate(function.params):
        name = parameter.name
        signature[name] = "constexpr"
        if parameter.is_constexpr:
            constants[(place,)] = constant(defines[name]) if name in defines else parameter.default
            continue
        kind, _, aligned = defines[name].partition(":")
        if kind in ("1", NONE):
            constants[(place,)] = 1 if kind == "1" else None
        else:
            signature[name] = kind
            given.append(arguments)
            if aligned:
                attributes[(place,)] = [["tt.divisibility", int(aligned)]]
        arguments += 1
    return signature, constants, attributes, given


def _resources(cubin: Path) -> dict[str, int]:
    """Registers and bytes of the stack (spilled registers); Triton's shared memory is dynamic."""
    import triton

    program = Path(triton.__file__).parent / "backends" / "nvidia" / "bin" / "cuobjdump"
    command = [str(program), "-res-usage", str(cubin)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError as error:
        raise Refused(f"triton: cuobjdump: {error}") from error
    found = _STACK.search(done.stdout)
    if found is None:
        raise Refused(f"triton: cuobjdump tells no registers: {done.stderr.strip()[:200]}")
    return {
        "registers": int(found["registers"]),
        "spill_bytes": int(found["stack"]),
        "shared_bytes": 0,
    }


def _told(error: BaseException, path: Path) -> str:
    """What Triton says against a build, in one line, with the line of the file if it names one."""
    place = path.name
    while found := _place(error, path):
        place = found
        if error.__cause__ is None or not _place(error.__cause__, path):
            break
        error = error.__cause__
    said = getattr(error, "error_message", None) or str(error) or type(error).__name__
    first = next((line.strip() for line in said.splitlines() if line.strip()), said)
    return f"triton failed: {place}: {first}"


def _place(error: BaseException, path: Path) -> str:
    """File and line that a CompilationError is about, which counts from its function's first."""
    source, node = getattr(error, "src", None), getattr(error, "node", None)
    if source is None or node is None:
        return ""
    for file in (path, *sorted(path.parent.glob("*.py"))):
        before, function, _ = source_text(file).partition(source.strip())
        if function:
            return f"{file.name}:{len(before.splitlines()) + node.lineno}"
    return ""


CACHE = "TRITON_CACHE_DIR"
"""Variable of Triton with the folder of its cache; the user's own value stays."""


@cache
def release() -> str:
    """Release of the Triton that is installed. Raises CompilerMissing with what to install."""
    return _release(*_answers(Path(), [], "", ""))


def compile_builds(folder: Path, builds: list[Build], arch: str) -> tuple[str, Compiled]:
    """Compile builds of Triton for an architecture, such as ``sm_90``, one after the other. A build
    that ends the process twice (LLVM aborts) is refused, and the next ones go on in another. Once
    is not enough: a request to stop that is sent to all processes ends it, too. Returns the release
    of Triton, and the outcome. Raises CompilerMissing with what to install."""
    installed, ended = "", ""
    refused: dict[str, str] = {}
    apart: list[Apart] = []
    remaining = list(builds)
    with tempfile.TemporaryDirectory(prefix="launchwise-triton-") as name:
        while remaining:
            answers, last = _answers(folder, remaining, arch, name)
            installed = _release(answers, last)
            for build, answer in zip(remaining, answers[1:], strict=False):
                if "refused" in answer:
                    refused[build.key] = answer["refused"]
                    continue
                member = f"{build.key}.cubin"
                kernels = {build.kernels[0]: {"cubin": member, **answer["kernel"]}}
                apart.append(Apart(build, member, Path(name, member).read_bytes(), kernels))
            remaining = remaining[len(answers) - 1 :]
            if remaining and remaining[0].key == ended:
                died = remaining.pop(0)
                refused[ended] = f"triton failed: {died.source}: its process ended: {last}"
            elif remaining:
                ended = remaining[0].key
    return installed, Compiled([], refused, apart)


def _release(answers: list[dict[str, Any]], last: str) -> str:
    first = answers[0] if answers else {"missing": f"cannot be started: {last}"}
    if "missing" in first:
        raise CompilerMissing(f"triton {first['missing']}: {INSTALL}")
    return str(first["release"])


def _kept(scratch: str) -> Path:
    """Where Triton keeps what it compiled; a full or read-only home costs speed alone."""
    folder = user_cache() / "triton"
    with contextlib.suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
    return Path(scratch) if why_not_written(folder) is not None else folder


def _answers(
    folder: Path, builds: list[Build], arch: str, scratch: str
) -> tuple[list[dict[str, Any]], str]:
    """Answers of a process until its end, and the last line that it said beside them."""
    if importlib.util.find_spec("triton") is None:
        raise CompilerMissing(MISSING)
    listed = [
        {"key": one.key, "source": one.source, "kernel": one.kernels[0], "defines": one.defines}
        for one in builds
    ]
    asked = {"folder": str(folder.resolve()), "arch": arch, "scratch": scratch, "builds": listed}
    environment = {CACHE: str(_kept(scratch)), **os.environ}
    # A kernel that the interpreter runs has nothing to compile.
    environment.pop("TRITON_INTERPRET", None)
    done = subprocess.run(
        [sys.executable, "-m", __name__],
        input=json.dumps(asked),
        capture_output=True,
        text=True,
        errors="replace",
        env=environment,
        check=False,
    )
    said = done.stderr.strip().splitlines()
    last = said[-1].strip() if said else f"code {done.returncode}"
    return [json.loads(line) for line in done.stdout.splitlines()], last


if __name__ == "__main__":
    main()
