"""Faults planted in the library, one at a time: which of them the tests notice.

    python benchmarks/mutants.py OUTPUT.json --listed benchmarks/mutants.json
    COVERAGE_CORE=ctrace pytest --cov=launchwise --cov-context=test --cov-report= tests/learning ...
    python benchmarks/mutants.py benchmarks/results/mutants.json --coverage .coverage

Plants the listed mistakes, each with the harm that it does and the tests that should notice it, or
draws mutants evenly from packages of the library, by a seed. Each is written into a copy of the
project, and its tests are run there until one fails: those of the list, or those that ran its line;
lines of a module's top level count as run by every test of the module.
``benchmarks/survivors.yaml`` says why a survivor does not matter; where others are left, the status
is 1.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from harness.command_line import arguments, write_result
from harness.mutating import Mutant, mutants, sources
from harness.needs import packages
from harness.projects import ROOT, git

from launchwise.base.storage import read_json
from launchwise.base.typed import read_yaml

PACKAGES = ("exporting", "importing", "learning", "measuring", "report", "workloads")
REASONS = Path(__file__).with_name("survivors.yaml")
SECONDS = 300.0  # time after which tests are stopped: a mutant that hangs is noticed

LIST = Path(__file__).with_name("mutants.json")  # its first is the smallest size


class Covering:
    """Tests that ran a line, those first that run few lines: they are quick and to the point."""

    def __init__(self, file: Path) -> None:
        with packages():
            coverage = import_module("coverage")
        data = coverage.CoverageData(str(file))
        data.read()
        self._lines: dict[str, dict[int, set[str]]] = {}
        self._sizes: Counter[str] = Counter()
        for name in data.measured_files():
            by_line = data.contexts_by_lineno(name)
            path = name[name.rindex("launchwise/") :]
            found = {line: {_test(each) for each in by_line[line] if each} for line in by_line}
            self._lines[path] = {line: tests for line, tests in found.items() if tests}
            self._sizes.update(test for tests in found.values() for test in tests)

    def of(self, mutant: Mutant) -> list[str]:
        """Tests of a mutant's lines, or of its module."""
        lines = self._lines.get(mutant.path, {})
        first, last = mutant.lines
        wanted = lines if mutant.at_import else range(first, last + 1)
        found = {test for line in wanted for test in lines.get(line, ())}
        return sorted(found, key=lambda test: (self._sizes[test], test))


def _test(context: str) -> str:
    return context.rpartition("|")[0]  # a parameter may hold the sign, too


def drawn(root: Path, places: list[str], count: int, seed: int) -> list[Mutant]:
    """As many mutants of each file or folder, in random order."""
    dice = random.Random(seed)
    found = []
    for number, place in enumerate(places):
        every = [
            one for path, text in sources(root, [place]).items() for one in mutants(path, text)
        ]
        wanted = count // len(places) + (number < count % len(places))
        found += dice.sample(every, min(wanted, len(every)))
    dice.shuffle(found)
    return found


def described(mutant: Mutant, root: Path) -> dict[str, Any]:
    """Where a mutant stands in the copy ``root``, and what it changes."""
    text = (root / mutant.path).read_text()
    begin = text.rfind("\n", 0, mutant.begin) + 1
    return {
        **{"file": mutant.path, "line": mutant.line, "column": mutant.begin - begin + 1},
        **{"text": text.splitlines()[mutant.line - 1].strip(), "old": mutant.old},
        "new": mutant.new,
    }


def identity(row: Mapping[str, Any]) -> tuple[Any, ...]:
    """What tells a mutant from others, wherever its line moves."""
    return tuple(row[name] for name in ("file", "column", "text", "old", "new"))


def outcome(
    mutant: Mutant, tests: list[str], root: Path, most: int, unsound: set[str]
) -> dict[str, Any]:
    """What becomes of a mutant in the copy ``root``: ``noticed``, ``survived`` or ``not run``. A
    test that fails without the mutant, too, joins the ``unsound`` and says nothing."""
    began = time.monotonic()
    file = root / mutant.path
    text = file.read_text()
    while True:
        chosen = [test for test in tests if test not in unsound][:most]
        found: dict[str, Any] = {"tests": len(tests), "tests_run": len(chosen)}
        if not chosen:
            return {**found, "outcome": "not run"}
        file.write_text(mutant.of(text))
        try:
            noticed_by = first_failure(chosen, root)
        finally:
            file.write_text(text)
        if noticed_by not in chosen or not first_failure([noticed_by], root):
            break
        unsound.add(noticed_by)
    found["seconds"] = round(time.monotonic() - began, 1)
    return {**found, "outcome": "noticed" if noticed_by else "survived", "by": noticed_by}


def planted(
    covering: Mapping[Mutant, list[str]], most: int, copies: Sequence[Path]
) -> list[dict[str, Any]]:
    """A row per mutant, several at a time, each in a copy of its own."""
    idle: SimpleQueue[Path] = SimpleQueue()
    for copy in copies:
        idle.put(copy)
    unsound: set[str] = set()

    def plant(mutant: Mutant) -> dict[str, Any]:
        root = idle.get()
        try:
            row = described(mutant, root)
            row |= outcome(mutant, covering[mutant], root, most, unsound)
        finally:
            idle.put(root)
        place = f"{mutant.path}:{mutant.line}"
        print(row["outcome"], place, mutant.old, "->", mutant.new, flush=True)
        return row

    with ThreadPoolExecutor(len(copies)) as workers:
        return list(workers.map(plant, covering))


def cloned(root: Path) -> Path:
    """A copy of the project, for mutants."""
    git(ROOT, "clone", "--quiet", "--shared", str(ROOT), str(root))
    return root


def listed(root: Path, rows: Iterable[Mapping[str, Any]]) -> dict[Mutant, list[str]]:
    """The mutants of a list, each with its tests. Ends where a text is not there, or twice."""
    found = {}
    for row in rows:
        text = (root / row["file"]).read_text()
        if (count := text.count(row["old"])) != 1:
            raise SystemExit(f"{row['file']}: stands there {count} times: {row['old']}")
        begin = text.index(row["old"])
        line = text.count("\n", 0, begin) + 1
        place = (line, (line, line), begin, begin + len(row["old"]))
        found[Mutant(row["file"], *place, row["old"], row["new"], False)] = row["tests"]
    return found


def first_failure(tests: list[str], root: Path) -> str:
    """The first test that fails, or how pytest ended; '' where all pass."""
    try:
        done = run_tests(["-x", *tests], root)
    except subprocess.TimeoutExpired:
        return "time"
    if done.returncode == 0:
        return ""
    lines = done.stdout.splitlines()
    failed = [line for line in lines if line.startswith(("FAILED ", "ERROR "))]
    # A name may hold blanks; a message follows it.
    named = [line.partition(" ")[2].partition(" - ")[0] for line in failed]
    return named[0] if named else f"pytest's status {done.returncode}"


def run_tests(words: list[str], root: Path) -> subprocess.CompletedProcess[str]:
    """Run pytest in the copy ``root``."""
    environment = {**os.environ, "PYTHONPATH": str(root), "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *words],
        cwd=root,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=SECONDS,
    )


def insist_on(tests: Iterable[str], root: Path) -> None:
    """End where the copy lacks tests: what cannot be run would seem to fail."""
    done = run_tests(["--collect-only", *sorted(set(tests))], root)
    if done.returncode:
        raise SystemExit(f"tests of the coverage are missing:\n{done.stdout}{done.stderr}")


def explained(rows: list[dict[str, Any]]) -> None:
    """Add the ``reason`` of survivors that :data:`REASONS` knows."""
    known = {identity(one): one["reason"] for one in read_yaml(REASONS)}
    for row in rows:
        if row["outcome"] != "noticed" and identity(row) in known:
            row["reason"] = known[identity(row)]


def main() -> None:
    """Draw, plant and count."""
    parser = arguments(__doc__)
    parser.add_argument("--coverage", type=Path, help="data of coverage.py with tests as contexts")
    parser.add_argument("--mutants", type=int, default=150, help="how many are drawn")
    parser.add_argument("--most-tests", type=int, default=200, help="tests of a mutant at most")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--listed", type=Path, help="a list of mutants, in place of drawn ones")
    parser.add_argument("--workers", type=int, default=1, help="mutants at a time")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        copies = [cloned(Path(folder, str(number))) for number in range(given.workers)]
        if given.smallest:
            covering = listed(copies[0], read_json(LIST)[:1])
        elif given.listed is not None:
            covering = listed(copies[0], read_json(given.listed))
        else:
            if given.coverage is None:
                parser.error("--coverage or --listed is needed")
            folders = [f"launchwise/{package}" for package in PACKAGES]
            known = Covering(given.coverage)
            chosen = drawn(copies[0], folders, given.mutants, given.seed)
            covering = {one: known.of(one) for one in chosen}
        insist_on((test for tests in covering.values() for test in tests), copies[0])
        rows = planted(covering, given.most_tests, copies)
    explained(rows)
    counts = Counter(row["outcome"] for row in rows)
    open_ones = [row for row in rows if row["outcome"] != "noticed" and "reason" not in row]
    counted = {"mutants": len(rows), "unexplained": len(open_ones), **counts}
    write_result(given.output, {"seed": given.seed, **counted, "rows": rows})
    print(counted)
    raise SystemExit(1 if open_ones else 0)


if __name__ == "__main__":
    main()
