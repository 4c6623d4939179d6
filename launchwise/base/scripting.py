"""The thin layer between a rule's script and the library: log file, one-line errors, exit code."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from launchwise.base.errors import UserError

log = logging.getLogger("launchwise")


@contextmanager
def running(snakemake: Any) -> Iterator[logging.Logger]:
    """Log to the rule's log file and to the terminal; end on a user's error in one line.

    Anything else is logged with its traceback and raised on.
    """
    handlers: list[logging.Handler] = [logging.StreamHandler(sys.stderr)]
    if snakemake.log:
        handlers.append(logging.FileHandler(snakemake.log[0], mode="w", encoding="utf-8"))
    for handler in handlers:
        handler.setFormatter(logging.Formatter("%(levelname).1s %(message)s"))
        handler.setLevel(logging.INFO)
    log.handlers = handlers
    log.setLevel(logging.INFO)
    log.propagate = False
    try:
        yield log
    except UserError as error:
        log.error("launchwise: %s", error)
        raise SystemExit(1) from None
    except Exception:
        log.exception("internal error in launchwise; please report it")
        raise
