"""Adapts .venv to its folder after the clone was moved or renamed; the Makefile calls it.

    .venv/bin/python .ci/environment.py .venv

Scripts of an environment begin with the path of its interpreter, and so do the files that activate
it. Writes ``.venv/.place``, by which the Makefile sees a move.
"""

from __future__ import annotations

import re
import sys
import sysconfig
import venv
from pathlib import Path

HEADER = re.compile(
    rb"""\A#!(?:[^\n]*/python[\d.]*|/bin/sh\n'''exec' [^\n]*/python[\d.]*"? "\$0" "\$@"\n' ''')\n"""
)
"""First lines of a script, as pip and uv write them: the second form for long or spaced paths."""

COMMAND = """\
#!/bin/sh
exec "$(dirname "$(readlink -f "$0")")/python" -m launchwise "$@"
"""


def adapt(environment: Path) -> None:
    """Let every script of an environment, and its activation, name the folder that it is in."""
    python = environment / "bin" / "python"
    header = f"#!/bin/sh\n'''exec' \"{python}\" \"$0\" \"$@\"\n' '''\n".encode()
    builder = venv.EnvBuilder()
    # Those that activate it.
    builder.setup_scripts(builder.ensure_directories(str(environment)))
    for path in (environment / "bin").iterdir():
        if path.is_symlink() or not path.is_file():
            continue
        content = path.read_bytes()
        changed = HEADER.sub(lambda _: header, content)
        if changed != content:
            path.write_bytes(changed)
    command = environment / "bin" / "launchwise"
    command.write_text(COMMAND)
    command.chmod(0o755)
    # From the folder of packages to the clone: the same wherever that is.
    packages = Path(sysconfig.get_path("purelib"))
    up = Path(*[".."] * len(packages.relative_to(environment.parent).parts))
    (packages / "launchwise.pth").write_text(f"{up}\n")
    (environment / ".place").write_text(f"{environment}\n")


if __name__ == "__main__":
    adapt(Path(sys.argv[1]).absolute())
