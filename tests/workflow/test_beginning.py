"""What a run says before its first job."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest

from launchwise.workflow.telling import estimated_s, spoken, tell_beginning


class Learnt:
    """Studies of one unit of work each, or of many."""

    names = ("small", "large")

    works: ClassVar[dict[str, int]] = {"small": 10**6, "large": 10**8}

    def processes(self, study: str) -> int:
        return 2


class Measured:
    """Sweeps of an hour, in two shards."""

    def shards(self, gpu: str, workload: str) -> int:
        return 2

    def seconds(self, gpu: str, workload: str) -> float:
        return 3600.0


SHARD = SimpleNamespace(gpu="a", workload="w")


def estimate(*jobs: tuple[str, Any], cores: int = 2) -> float:
    studies: Any = Learnt()
    cluster: Any = Measured()
    return estimated_s(jobs, studies, cluster, cores)


def test_larger_studies_take_longer_and_more_cores_help() -> None:
    small, large = estimate(("learn_small", None)), estimate(("learn_large", None))
    assert 0 < small < large / 5
    both = (("learn_small", None), ("learn_large", None))
    assert estimate(*both, cores=1) > 1.9 * estimate(*both, cores=2)
    # One job has no more than its own processes.
    assert estimate(*both, cores=64) == large


def test_shards_of_a_sweep_take_an_hour_together_on_one_card() -> None:
    assert estimate(("sweep", SHARD), ("sweep", SHARD)) == pytest.approx(3600, rel=0.01)


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(21, "20 seconds"), (89, "90 seconds"), (91, "2 minutes"), (5_000, "84 minutes")],
)
def test_times_are_said_roughly(seconds: float, said: str) -> None:
    assert spoken(seconds) == said
    assert spoken(40_000) == "11 hours"


@pytest.mark.parametrize(
    ("rules", "quiet", "remote", "lines"),
    [
        (["learn_large", "report"], (), False, 2),
        (["learn_large", "report"], ("all",), False, 0),
        (["learn_large", "report"], (), True, 0),
        (["learn_small"], (), False, 0),
    ],
)
def test_two_lines_before_a_run_that_takes_a_while(
    rules: list[str],
    quiet: tuple[str, ...],
    remote: bool,
    lines: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    jobs = [SimpleNamespace(rule=SimpleNamespace(name=rule), wildcards=None) for rule in rules]
    dag = SimpleNamespace(needrun_jobs=lambda: jobs)
    output = SimpleNamespace(quiet=set(quiet))
    workflow = SimpleNamespace(local_exec=not remote, output_settings=output, dag=dag)
    studies: Any = Learnt()
    cluster: Any = Measured()
    tell_beginning(workflow, studies, cluster, 2)
    said = capsys.readouterr().err.splitlines()
    assert len(said) == lines
    if said:
        assert "about 30 seconds on 2 cores; to read meanwhile: first answers soon, in " in said[0]
        assert "Ctrl-C keeps all that is done" in said[1]
