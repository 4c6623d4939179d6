"""Weka's J48 by its command line: a table of examples in, a tree and its answers out."""

from __future__ import annotations

import re
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np

OPEN = ("--add-opens", "java.base/java.lang=ALL-UNNAMED")
"""What Weka's own loader asks of Java 16 and newer."""

_PREDICTED = re.compile(r"^ *\d+ +\S+ +(\d+):", re.MULTILINE)
_LEAVES = re.compile(r"Number of Leaves\s*:\s*(\d+)")
_WRONG = re.compile(
    r"Error on training data.*?Incorrectly Classified Instances\s+\S+\s+(\S+) *%", re.S
)


@dataclass(frozen=True)
class Examples:
    """Weighted examples.

    ``features``: float64, shape (examples, features).
    ``classes``: numbers of the classes from 0, int64, shape (examples,).
    ``weights``: float64, shape (examples,).
    ``count``: number of classes.
    """

    features: np.ndarray
    classes: np.ndarray
    weights: np.ndarray
    count: int

    def part(self, rows: np.ndarray) -> Examples:
        """Some of them."""
        return Examples(self.features[rows], self.classes[rows], self.weights[rows], self.count)

    def arff(self) -> str:
        """As a file that Weka reads."""
        names = [f"@attribute f{column} numeric" for column in range(self.features.shape[1])]
        listed = ",".join(f"c{number}" for number in range(self.count))
        lines = ["@relation examples", *names, f"@attribute class {{{listed}}}", "@data"]
        table = zip(self.features.tolist(), self.classes, self.weights.tolist(), strict=True)
        for values, number, weight in table:
            lines.append(",".join([*map(repr, values), f"c{number}", f"{{{weight!r}}}"]))
        return "\n".join(lines) + "\n"


@dataclass(frozen=True)
class J48:
    """Weka's classifier.

    ``java``, ``jar``: the program and Weka's archive.
    ``minimum``, ``confidence``: options ``-M`` and ``-C``.
    """

    java: str
    jar: Path
    minimum: float = 2.0
    confidence: float = 0.25

    @property
    def version(self) -> str:
        """Release of Weka."""
        return self._run("weka.core.Version").strip()

    def tree(self, train: Examples) -> dict[str, float]:
        """``leaves`` and ``training_error_percent`` of the tree of some examples."""
        with tempfile.TemporaryDirectory(prefix="launchwise-weka-") as scratch:
            path = Path(scratch, "train.arff")
            path.write_text(train.arff())
            said = self._classify(path, path)
        leaves, wrong = _LEAVES.search(said), _WRONG.search(said)
        if leaves is None or wrong is None:
            raise SystemExit(f"J48 says neither leaves nor errors: {said[:300]}")
        return {"leaves": int(leaves[1]), "training_error_percent": float(wrong[1])}

    def predicted(self, train: Examples, test: Examples) -> np.ndarray:
        """Class of each of ``test`` by the tree of ``train``: int64, shape (examples,)."""
        with tempfile.TemporaryDirectory(prefix="launchwise-weka-") as scratch:
            paths = [Path(scratch, name) for name in ("train.arff", "test.arff")]
            for path, table in zip(paths, (train, test), strict=True):
                path.write_text(table.arff())
            said = self._classify(paths[0], paths[1], "-p", "0")
        found = np.array([int(number) - 1 for number in _PREDICTED.findall(said)])
        if len(found) != len(test.classes):
            raise SystemExit(f"J48 answers {len(found)} of {len(test.classes)} rows")
        return found

    def _classify(self, train: Path, test: Path, *more: str) -> str:
        how = ["-C", str(self.confidence), "-M", f"{self.minimum:g}", *more]
        name = "weka.classifiers.trees.J48"
        return self._run(name, "-t", str(train), "-T", str(test), *how)

    def _run(self, name: str, *words: str) -> str:
        command = [self.java, *OPEN, "-cp", str(self.jar), name, *words]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode or "exception" in done.stderr.lower():
            raise SystemExit(f"{name}: {done.stderr.strip()[:300]}")
        return done.stdout
