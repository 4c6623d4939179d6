"""Runs a rule's script: log file, one-line errors, exit code."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from launchwise.base.errors import UserError, out_of
from launchwise.base.storage import own_place

log = logging.getLogger("launchwise")


@contextmanager
def running(snakemake: Any) -> Iterator[logging.Logger]:
    """Log to the rule's log file and to the terminal.

    A :class:`UserError`, too little memory and too deep nesting are logged in one line and end the
    process with exit code 1. Any other exception is logged with its traceback and raised again.
    """
    log.handlers = []
    log.setLevel(logging.INFO)
    log.propagate = False
    log.addHandler(in_lines(logging.StreamHandler(sys.stderr)))
    try:
        if snakemake.log:
            path = own_place(snakemake.log[0])
            log.addHandler(in_lines(logging.FileHandler(path, mode="w", encoding="utf-8")))
        yield log
    except UserError as error:
        log.error("launchwise: %s", error)
        raise SystemExit(1) from None
    except (MemoryError, RecursionError) as error:
        log.error("launchwise: %s", out_of(error))
        raise SystemExit(1) from None
    except Exception:
        log.exception("internal error in launchwise; please report it")
        raise


def in_lines(handler: logging.Handler) -> logging.Handler:
    """The handler, as the log of a stage is written: the first letter of the level, the message."""
    handler.setFormatter(logging.Formatter("%(levelname).1s %(message)s"))
    handler.setLevel(logging.INFO)
    return handler
