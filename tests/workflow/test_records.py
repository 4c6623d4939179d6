"""Results without Snakemake's record of how they were made."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest
from snakemake.persistence import PersistenceBase
from snakemake.workflow import Workflow

from launchwise.workflow.records import HOOKED, Records, require_records, told


@dataclass(frozen=True)
class Job:
    name: str
    output: tuple[str, ...]
    rule: Any = field(default=None, compare=False)


def job(name: str, *output: str) -> Job:
    return Job(name, output, SimpleNamespace(name=name))


class Store:
    """What Snakemake has records of."""

    def __init__(self, *known: str) -> None:
        self.known = set(known)

    def has_metadata(self, job: Job) -> bool:
        return self.known >= set(job.output)

    def params_changed(self, job: Job, file: str | None = None) -> str:
        return ""


def test_a_result_without_a_record_counts_as_changed() -> None:
    store: Any = Store("results/a", "results/b")
    records = Records(store, once=())
    known, half = job("known", "results/a"), job("half", "results/a", "results/c")
    assert store.has_metadata(known)
    assert not store.params_changed(known)
    assert store.has_metadata(half)
    assert store.params_changed(half)
    assert store.params_changed(half) | store.params_changed(known)
    assert set(store.params_changed(half)) == set(half.output)
    assert [*records.outdated] == [half]
    store.known.add("results/c")  # It was made meanwhile.
    assert not store.params_changed(half)


def test_a_blind_test_stays() -> None:
    store = Store()
    records = Records(store, once={"freeze"})
    frozen = job("freeze", "results/blind/g/s.frozen.json")
    assert not store.has_metadata(frozen)
    assert not store.params_changed(frozen)
    (line,) = told(records, touched=False)
    assert "results/blind/g/s.frozen.json" in line
    assert "never repeated" in line


def test_files_outside_the_results_are_left_to_snakemake() -> None:
    store = Store()
    records = Records(store, once=())
    assert not store.has_metadata(job("record", "data/recorded/g/w.parquet"))
    assert told(records, touched=False) == []


@pytest.mark.parametrize(("touched", "said"), [(True, "accepted as"), (False, "--touch")])
def test_one_line_names_some_and_counts_the_rest(touched: bool, said: str) -> None:
    store = Store()
    records = Records(store, once=())
    for number in range(8):
        store.has_metadata(job(f"rule{number}", f"results/{number}"))
    (line,) = told(records, touched)
    assert said in line
    assert "results/0, results/1, results/2 and 5 other results" in line
    assert "\n" not in line


def test_a_job_of_a_run_asks_nothing() -> None:
    workflow = SimpleNamespace(is_main_process=False)
    require_records(workflow, once=())
    assert vars(workflow) == {"is_main_process": False}


def test_snakemake_has_what_is_hooked() -> None:
    kinds = {"workflow": Workflow, "persistence": PersistenceBase}
    missing = [
        f"{kinds[what].__name__}.{name}"
        for what, names in HOOKED.items()
        for name in names
        if not hasattr(kinds[what], name)
    ]
    assert not missing, f"launchwise.workflow.records: Snakemake has no {', '.join(missing)}"


def test_another_snakemake_is_left_alone() -> None:
    changed = SimpleNamespace(is_main_process=True)
    require_records(changed, once=())
    assert vars(changed) == {"is_main_process": True}
    built = []
    half = SimpleNamespace(
        is_main_process=True,
        _prepare_dag=lambda: None,
        _build_dag=lambda: built.append(1),
        persistence=SimpleNamespace(),
    )
    require_records(half, once=())
    half._prepare_dag()
    half._build_dag()
    assert built == [1]
