"""``scripts/sweep.py`` as Snakemake runs it, on a made-up card whose measuring process is ours."""

from __future__ import annotations

import dataclasses
import logging
import runpy
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from samples import ROOT, profile
from snakemake.iocontainers import Namedlist
from supervising import Supervisor, finished

import launchwise.measuring.cards
import launchwise.measuring.shard
from launchwise.gpus.profile import write_profile
from launchwise.measuring.bundle import write_bundle
from launchwise.measuring.cards import Card
from launchwise.measuring.journal import read_journal
from launchwise.measuring.shard import Shard
from launchwise.tables.files import read_table
from launchwise.tables.measurements import measurement_schema

CARD = Card(index=0, uuid="GPU-none", device_name="Made-up GPU", arch="sm_90", driver="none")


def sweep_script(shard: Shard, journal: Path, output: Path, shards: int = 1) -> Callable[[], int]:
    """What runs the script for ``shard``; returns its exit code. Its log is ``output`` + .log. To
    be called in a process of its own: it changes what the script imports."""

    def run() -> int:
        folder = journal.parent
        bundle = folder / "bundle.cubins"
        index = {"arch": CARD.arch, "toolkit": "none", "fingerprint": "none"}
        write_bundle(bundle, {**index, "cubins": [], "builds": {}}, {})
        write_profile(folder / "profile.json", profile(shard.labels["gpu"], sms=2))
        launchwise.measuring.cards.cards = lambda: [CARD]
        launchwise.measuring.shard.Shard = _ours(shard)  # type: ignore[assignment, misc]
        # Locks of made-up cards are no business of other processes.
        launchwise.measuring.cards.LOCKS = folder
        logging.getLogger("launchwise").handlers.clear()
        snakemake = SimpleNamespace(
            rule="sweep",
            input=Namedlist(
                fromdict={"bundle": str(bundle), "profile": str(folder / "profile.json")}
            ),
            output=Namedlist([str(output)]),
            log=[str(journal.with_suffix(".log"))],
            threads=1,
            resources={},
            wildcards=Namedlist(fromdict={"gpu": shard.labels["gpu"]}),
            params=Namedlist(
                fromdict={
                    "folder": str(shard.folder),
                    "slice_sms": None,
                    "problems": shard.problems,
                    "blocks": [],
                    "extends": None,
                    "method": shard.method.model_dump(mode="json"),
                    "seed": shard.seed,
                    "journal": str(journal),
                    "shards": shards,
                }
            ),
        )
        try:
            runpy.run_path(
                str(ROOT / "scripts" / "sweep.py"),
                init_globals={"snakemake": snakemake},
                run_name="__main__",
            )
        except SystemExit as end:
            return int(end.code or 0)
        return 0

    return run


def _ours(shard: Shard) -> Callable[..., Shard]:
    """The script's shard with the measuring process, and what it needs, of ``shard``."""

    def make(**fields: Any) -> Shard:
        return dataclasses.replace(
            Shard(**fields),
            command=shard.command,
            environment=shard.environment,
            job={**fields["job"], **shard.job},
            gpu_facts=shard.gpu_facts,
        )

    return make


def stage(shard: Shard, folder: Path, output: Path | None = None) -> Supervisor:
    """The stage's script; its journal is ``folder/j``, its log ``folder/j.log``."""
    target = output or folder / "sweep.parquet"
    return Supervisor(sweep_script(shard, folder / "j", target), folder / "said")


def last_words(folder: Path) -> str:
    """The last line of the stage's log; it must not have ended with a traceback."""
    assert not (folder / "said").exists(), (folder / "said").read_text()
    return (folder / "j.log").read_text().splitlines()[-1]


def finished_stage(
    shard: Shard, folder: Path, kept: list[bytes], output: Path | None = None
) -> list[dict[str, Any]]:
    """Rows of a stage that has run to its end, its table held against its journal."""
    rows = finished(shard, folder / "j", kept, fingerprint_of(folder / "j"))
    schema = measurement_schema(shard.spec)
    table = read_table(output or folder / "sweep.parquet", schema)
    columns = [*shard.spec.key_columns, "status", "measured_at"]
    found = sorted(table[columns].itertuples(index=False, name=None))
    assert found == sorted(tuple(row[name] for name in columns) for row in rows)
    return rows


def fingerprint_of(path: Path) -> str:
    """What the first line of a journal says."""
    header, _ = read_journal(path)
    assert header is not None
    return str(header["fingerprint"])
