"""Read hardware counters of the fastest configurations of a study, with Nsight Compute."""

from pathlib import Path

import pandas as pd

from launchwise.base.errors import UserError
from launchwise.base.places import commit, now
from launchwise.base.scripting import log, run
from launchwise.experiment.study import Study
from launchwise.gpus.profile import read_profile
from launchwise.learning.features import Domain
from launchwise.learning.splits import asked_about
from launchwise.measuring.bundle import Bundle
from launchwise.measuring.cards import free_card, selects
from launchwise.measuring.counters import fastest_by, parted, read_counters
from launchwise.tables.files import read_table, write_table
from launchwise.tables.measurements import counters_schema, measurement_schema
from launchwise.workloads.metrics import MEASURED
from launchwise.workloads.spec import load_spec


def main(
    folder: Path,
    entry: Study,
    gpu: str,
    profile: Path,
    slice_sms: int | None,
    bundle: Path,
    sweep: Path,
    seed: int,
    output: Path,
) -> None:
    """Choose the configurations by ``entry.counters``, profile them and write the table."""
    spec, card_profile, asked = load_spec(folder), read_profile(profile, gpu), entry.counters
    assert asked is not None, "the study has no counters section"
    rows = read_table(sweep, measurement_schema(spec))
    domain = Domain.of(entry, spec, {gpu: card_profile})
    wanted = domain.is_candidate(rows) & asked_about(entry, rows) & rows["status"].isin(MEASURED)
    chosen = fastest_by(rows[wanted], spec, asked)
    if chosen.empty:
        raise UserError(sweep, "", "holds no measured candidate of these problems")
    runs = [parted(spec, row) for row in chosen.to_dict("records")]
    log.info("%d configurations", len(runs))
    job = {"folder": str(folder), "bundle": str(bundle), "seed": seed, "slice_sms": slice_sms}
    device = card_profile.device_name
    with free_card(gpu, selects(card_profile.arch, device), device) as card:
        found = read_counters({**job, "runs": runs}, {"CUDA_VISIBLE_DEVICES": card.uuid})
    table = pd.DataFrame(
        {
            **{"gpu": gpu, **run["problem"], **run["configuration"]},
            **{"position": position, "launches": len(launches), **launch},
        }
        for run, launches in zip(runs, found, strict=True)
        for position, launch in enumerate(launches)
    )
    made = Bundle(bundle)
    facts = {
        **{"commit": commit(), "measured_at": now(), "card": card.mark, "driver": card.driver},
        **{"toolkit": made.toolkit, "kernels": made.fingerprint, "counters": asked.model_dump()},
    }
    write_table(output, table, counters_schema(spec), facts)


if __name__ == "__main__":
    run(main)
