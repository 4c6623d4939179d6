"""Generate JSON schemas and reference pages from the typed models and the command line.

Writes ``schemas/*.schema.json`` and ``docs/reference/*.md``; ``--check`` only says which of them
are stale. Each page begins with an example from ``docs/reference/examples``.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from docs.generator.generating import generated, stale_files
from docs.generator.markdown import COMMAND
from launchwise.base.errors import UserError


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the files, or check them; returns 1 and prints one line per stale file or mistake."""
    parser = argparse.ArgumentParser(prog="python -m docs.generator", description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; fail if any is stale")
    asked = parser.parse_args(arguments)
    try:
        files = generated(Path.cwd())
    except UserError as error:
        print(f"launchwise: {error}", file=sys.stderr)
        return 1
    stale = stale_files(files)
    for path in stale:
        if asked.check:
            print(f"launchwise: {path}: is stale; run `{COMMAND}`", file=sys.stderr)
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(files[path], encoding="utf-8")
    return 1 if asked.check and stale else 0


if __name__ == "__main__":
    raise SystemExit(main())
