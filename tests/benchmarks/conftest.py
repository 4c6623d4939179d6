"""Makes the package that benchmarks share importable, as it is for a script in their folder."""

from __future__ import annotations

import sys

from samples import ROOT

sys.path.insert(0, str(ROOT / "benchmarks"))
