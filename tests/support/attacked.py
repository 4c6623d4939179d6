"""Runs ``launchwise`` on hostile files, each time under limits of memory and time.

``python attacked.py MB`` reads one JSON list of words per line and answers each with a line: exit
code (minus the signal that ended it, such as that for too much CPU time) and output. Each may take
as much memory beside that of the loaded libraries. The limit of reading sources is a shorter one.
"""

from __future__ import annotations

import gc
import json
import os
import resource
import sys
import tempfile
from functools import partial

from launchwise.workloads import sources

READING_S = 0.75
CPU_SECONDS = 10 - int(sources.READING_S - READING_S)  # 10 with the users' limit of reading


def main() -> None:
    """Answer what standard input asks."""
    # A fork finds them there: the limits are those of reading, not of loading libraries.
    import launchwise.cli.app
    import launchwise.cli.comparing
    import launchwise.importing.command
    import launchwise.tables.files  # noqa: F401
    from launchwise.cli.check import checking
    from launchwise.cli.new import folder

    for module in (checking, folder):
        module.cpu_limit = partial(sources.cpu_limit, seconds=READING_S)

    gc.freeze()
    for line in sys.stdin:
        print(json.dumps(_attempt(json.loads(line))), flush=True)


def _attempt(words: list[str]) -> list[object]:
    with tempfile.TemporaryFile() as errors:
        pid = os.fork()
        if not pid:
            os.dup2(errors.fileno(), 2)
            os.dup2(errors.fileno(), 1)
            _run(words)
        status = os.waitpid(pid, 0)[1]
        errors.seek(0)
        said = errors.read().decode(errors="replace")
    return [os.waitstatus_to_exitcode(status), said]


def _run(words: list[str]) -> None:
    from launchwise.cli.app import main as launchwise

    code = 1
    try:
        most = (int(sys.argv[1]) << 20) + _mapped_bytes()
        resource.setrlimit(resource.RLIMIT_AS, (most, most))
        resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS))
        code = launchwise(words)
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        sys.stderr.flush()
        os._exit(code)


def _mapped_bytes() -> int:
    with open("/proc/self/statm") as pages:
        return int(pages.read().split()[0]) * resource.getpagesize()


if __name__ == "__main__":
    main()
