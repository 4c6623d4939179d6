"""Describe one live GPU: attributes and measured ceilings."""

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

from launchwise.base.errors import UserError
from launchwise.base.scripting import log, running
from launchwise.base.typed import validated
from launchwise.experiment.settings import Gpu
from launchwise.gpus.profile import GpuProfile, write_profile
from launchwise.measuring.cards import free_card, selects

if TYPE_CHECKING:
    from snakemake.script import snakemake


def main(name: str, entry: Gpu, arch: str, output: str) -> None:
    """Describe a free card that fits ``entry`` and write the profile to ``output``."""
    wanted = f"{entry.device or 'a card'} of {arch}"
    with free_card(name, selects(arch, entry.device), wanted) as card:
        job = {
            "name": name,
            "card": card.mark,
            "driver": card.driver,
            "slice_sms": entry.slice_sms,
        }
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
    write_profile(output, validated(GpuProfile, json.loads(done.stdout.splitlines()[-1]), name))


if __name__ == "__main__":
    with running(snakemake):
        main(
            snakemake.wildcards.gpu,
            Gpu.model_validate(snakemake.params.entry),
            snakemake.params.arch,
            snakemake.output[0],
        )
