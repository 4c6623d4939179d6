"""Where figures of the paper contradict each other: computed from its tables and its text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from launchwise.experiment.published import Records, facts_of
from launchwise.report import wording
from launchwise.report.blocks import Block
from launchwise.report.fields import of_texts
from launchwise.workloads.spec import Spec

Line = tuple[str, str, str, str]
"""Subject, one figure, the other, and what follows."""


def contradictions(published: Mapping[str, Records], spec: Spec) -> Iterator[Block]:
    """One table; nothing where the published tables are missing."""
    times, facts = published.get("times", []), facts_of(published)
    if not times:
        return
    problem = {"batch": 1, "tokens": int(facts["tokens"]), "given": "embeddings"}
    flop = float(spec.value(spec.work.flop, {**problem, "memory": "pinned"}))
    rows = [*_of_times(times, facts, flop), *_of_claims(times, facts)]
    titles = ("subject", "here", "there", "conflict")
    yield of_texts("Contradictions in the paper", titles, rows, role="")


def _of_times(times: Records, facts: Mapping[str, str], flop: float) -> Iterator[Line]:
    cases = float(facts["cases"])
    for record in times:
        name, one = record["implementation"], float(record["one_case_ms"])
        rate = flop / (one * 1e-3)
        if not record["total_s"]:
            yield (
                name,
                f"{record['one_case_ms']} ms for one review ({record['device']}, table 2)",
                f"{wording.number(flop / 1e6, 4)} MFLOP per review",
                f"{wording.number(rate / 1e12)} TFLOP/s: a misprint, or the mean of a large batch",
            )
            continue
        mean = 1e3 * float(record["total_s"]) / cases
        rates = ""
        if name.startswith("CPU"):
            whole = flop * cases / float(record["total_s"])
            rates = f", {wording.number(rate / 1e9)} and {wording.number(whole / 1e9)} GFLOP/s"
        yield (
            name,
            f"{wording.number(one, 4)} ms for one review (table 2)",
            f"{wording.number(mean)} ms per review of {wording.count(cases)} (table 1)",
            f"{wording.number(one / mean, 2)} times apart{rates}",
        )


def _of_claims(times: Records, facts: Mapping[str, str]) -> Iterator[Line]:
    by_name = {record["implementation"]: record for record in times}
    cpu = by_name["CPU (C++ with Eigen)"]
    ours = [record for name, record in by_name.items() if name.startswith("CUDA")]
    ones = [float(record["one_case_ms"]) for record in ours]
    one = float(cpu["one_case_ms"])
    yield (
        "Speed-up for one review",
        f"{facts['speed_up_claimed']} times (sections 1, 2, 6.2 and 7.1)",
        f"{wording.number(one / max(ones))} (naive) to {wording.number(one / min(ones))} times "
        "(streams) by table 2",
        "500 is the slowest of the three; the text names the fastest beside it (section 2)",
    )
    yield (
        "Speed-up for all reviews",
        f"{facts['speed_up_all_claimed']} times (section 7.1)",
        f"{by_name['CUDA naive']['speed_up']} times (table 1)",
        "the same figure, rounded down",
    )
    torch = [float(by_name[f"PyTorch on {name}"]["one_case_ms"]) for name in ("a CPU", "MPS")]
    yield (
        "Slower than PyTorch",
        f"{facts['slower_than_pytorch_least']} to {facts['slower_than_pytorch_most']} times "
        "(section 7.2)",
        f"{wording.number(min(ones) / max(torch))} to {wording.number(max(ones) / min(torch))} "
        "times (table 2)",
        "across two machines, and from the two doubtful times above",
    )
    yield (
        "Gain by shared memory",
        f"{facts['gain_shared_all_percent']} and {facts['gain_shared_one_percent']} % of the time "
        "(sections 6.1 and 6.2)",
        f"about {facts['gain_shared_conclusions_percent']} % (section 7.1); "
        f"{facts['gain_shared_usage_percent']} % use of shared memory and "
        f"{facts['gain_coalescing_percent']} % coalescing (section 2)",
        "three readings of two figures",
    )
    yield (
        "Reviews tested",
        f"{facts['reviews_tested']} (section 5.1.1)",
        f"{wording.count(float(facts['cases']))} (section 6.1)",
        f"and {wording.count(float(facts['reviews_trained']))} trained of a set of "
        f"{wording.count(float(facts['reviews_of_the_data_set']))}",
    )
