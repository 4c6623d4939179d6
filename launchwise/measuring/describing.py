"""Profiles of this machine's cards: measured, and kept per card and driver."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import subprocess
import sys

from launchwise.base.errors import UserError
from launchwise.base.places import ROOT
from launchwise.base.storage import digest, digest_files, user_cache, write_json
from launchwise.base.typed import validated
from launchwise.gpus.profile import GpuProfile
from launchwise.measuring.cards import Card

log = logging.getLogger("launchwise")

MEASURING = "launchwise/cuda/ceilings*"
"""Files that decide what a ceiling means, from the root of the project."""


def measured_profile(name: str, card: Card, slice_sms: int | None) -> GpuProfile:
    """Attributes and measured ceilings of a card that this process holds.

    Raises
    ------
    UserError
        With the last words of the process that measures.
    """
    job = {"name": name, "card": card.mark, "driver": card.driver, "slice_sms": slice_sms}
    done = subprocess.run(
        [sys.executable, "-m", "launchwise.cuda.describe"],
        input=json.dumps(job),
        capture_output=True,
        text=True,
        env={**os.environ, "CUDA_VISIBLE_DEVICES": card.uuid},
        check=False,
    )
    if done.returncode:
        raise UserError("describe", name, (done.stderr.strip().splitlines() or ["died"])[-1])
    # Ceilings that could not be measured, and why.
    for line in done.stderr.splitlines():
        log.warning("%s", line)
    return validated(GpuProfile, json.loads(done.stdout.splitlines()[-1]), name)


def kept_or_measured_profile(name: str, card: Card, slice_sms: int | None) -> GpuProfile:
    """:func:`measured_profile`, kept for this card, slice and driver in the user's cache.

    Raises
    ------
    UserError
        See :func:`measured_profile`.
    """
    means = digest_files(ROOT.glob(MEASURING))
    path = user_cache() / "profiles" / f"{digest([card.uuid, card.driver, slice_sms, means])}.json"
    with contextlib.suppress(OSError, ValueError, UserError):
        kept = json.loads(path.read_text(encoding="utf-8"))
        return validated(GpuProfile, {**kept, "name": name}, path)
    found = measured_profile(name, card, slice_sms)
    # Where nothing can be kept it is measured again.
    with contextlib.suppress(UserError):
        write_json(path, found.model_dump(mode="json"))
    return found
