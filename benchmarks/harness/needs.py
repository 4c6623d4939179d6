"""Ends a benchmark in one line where the machine lacks what it needs."""

from __future__ import annotations

import importlib
import importlib.util
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

from launchwise.measuring.cards import cards

EXIT_MISSING = 2
DEBIAN = Path("/usr/share/java/weka.jar")
"""Where Debian's package has Weka."""


@contextmanager
def gpu_and_packages() -> Iterator[None]:
    """For a block that imports PyCUDA or the other tool: both, and a GPU, must be there.

    Raises
    ------
    SystemExit
        Status 2, after one line that names the missing part.
    """
    if not cards():
        _end("a GPU, its driver and the gpu extra (make gpu); NVML shows no GPU")
    try:
        yield
    except ImportError as error:
        _end(f"the package {error.name}: {error}")


@contextmanager
def eigen_and_compiler() -> Iterator[None]:
    """For a block that times C++ with Eigen: both must be there.

    Raises
    ------
    SystemExit
        Status 2, after one line that says what to install.
    """
    from kernels.sentiment.host.eigen import NoEigen, library

    try:
        library()
    except NoEigen as error:
        print(f"{Path(sys.argv[0]).name}: {error}", file=sys.stderr)
        raise SystemExit(EXIT_MISSING) from error
    yield


def written_report(folder: Path) -> None:
    """For a benchmark of the report's pages.

    Raises
    ------
    SystemExit
        Status 2, where the folder holds no report.
    """
    if not (folder / "index.html").is_file():
        _end(f"a report in {folder} (snakemake --cores all -- report)")


def weka(jar: Path | None) -> tuple[str, Path]:
    """Java, and the archive of Weka: the one given, Debian's, or that of a package of Python.

    Raises
    ------
    SystemExit
        Status 2, after one line that names the missing part and what to install.
    """
    java = shutil.which("java")
    if java is None:
        _end("Java: apt-get install default-jre-headless")
    package = importlib.util.find_spec("weka")
    folders = (package and package.submodule_search_locations) or ()
    known = [*([jar] if jar else []), *(Path(each, "lib", "weka.jar") for each in folders), DEBIAN]
    found = next((path for path in known if path.is_file()), None)
    if found is None or (jar and found != jar):
        _end(f"Weka's weka.jar ({jar or 'none found'}): apt-get install weka, or pip install "
             "python-weka-wrapper3, or --jar FILE")  # fmt: skip
    return java, found


def coverage() -> Any:
    """The package coverage.

    Raises
    ------
    SystemExit
        Status 2, after one line, where it is missing.
    """
    try:
        return importlib.import_module("coverage")
    except ImportError as error:
        _end(f"the package {error.name}: {error}")


def _end(missing: str) -> NoReturn:
    print(f"{Path(sys.argv[0]).name} needs {missing}", file=sys.stderr)
    raise SystemExit(EXIT_MISSING)
