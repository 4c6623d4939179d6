"""Datasheet-only GPUs: lookup, exports and ``recommend`` ask the same model."""

import json
from dataclasses import replace

import pandas as pd
import pytest
from described_gpus import gpus_in_hosts
from stencil import copying_stencil, slice_of_card, sweep
from studies import entry, fit_product

from launchwise.cli.recommending import as_text
from launchwise.exporting.building import SUGGESTIONS, UNMEASURED, answer_table
from launchwise.exporting.entries import named_answers
from launchwise.exporting.exports import wisdom_text
from launchwise.exporting.languages import cpp_header, python_module
from launchwise.importing.device_names import cuda_names
from launchwise.learning.answering import answers
from launchwise.learning.answers import UNKNOWN_LINK
from launchwise.learning.features import Domain
from launchwise.learning.final import read_final
from launchwise.learning.splits import Case
from launchwise.report.pages import finder
from launchwise.workloads.spec import load_spec
from tests.support.report_study import sized_study

GPUS, SIZES = ("card", "card.sm16"), (200, 256, 300, 400, 512)


def measured_card(gpu):
    """A card or a slice whose link to the host was measured."""
    found = slice_of_card(gpu)
    link = {"to_device_gbs": 50.0, "to_host_gbs": 40.0}
    return found.model_copy(update={"ceilings": found.ceilings.model_copy(update=link)})


@pytest.fixture(scope="module")
def kernel(tmp_path_factory):
    return copying_stencil(tmp_path_factory.mktemp("kernels"))


def swept(spec, gpu):
    parts = [sweep(spec, SIZES, gpu, memory=memory) for memory in ("device", "pinned")]
    return pd.concat(parts, ignore_index=True)


@pytest.fixture(scope="module")
def final(kernel, tmp_path_factory):
    """A product, asked about a T4 whose host is unknown and about one in a known host."""
    domain = Domain(load_spec(kernel), {gpu: measured_card(gpu) for gpu in GPUS})
    sweeps = {gpu: swept(domain.spec, gpu) for gpu in GPUS}
    chosen = entry("committee", members="lightgbm, knn, best_on_average, nearest_size")
    folder = tmp_path_factory.mktemp("final") / "tiles"
    fit_product(folder, domain, sweeps, chosen)
    profiles = gpus_in_hosts({"t4": ("t4", None), "t4.pcie": ("t4", 12.0)})
    return read_final(folder, replace(domain, profiles={**domain.profiles, **profiles}))


DESCRIBED = ("t4", "t4.pcie")


@pytest.fixture(scope="module")
def table(final):
    return answer_table(final, "tiles", DESCRIBED)


def test_the_table_and_the_page_hold_what_the_model_answers(kernel, final, table):
    entries = [each for each in named_answers(table.stored) if each["gpu"] in DESCRIBED]
    assert 0 < len(entries) <= 2 * UNMEASURED
    cases = [Case(each["gpu"], each["problem"]) for each in entries]
    known = replace(table, off="within 3.1 times")
    assert "within 3.1 times" in known.no_limits != table.no_limits
    for door in (cpp_header(known), python_module(known), known.plain()["no_limits"]):
        assert known.no_limits in door
    for shown, answer in zip(entries, answers(final, cases, SUGGESTIONS), strict=True):
        first = answer.suggestions[0]
        # The cards that were held out say nothing about the error on another one.
        assert all(one.gain_interval is None for one in answer.suggestions)
        assert all(one.interval_ms is None for one in answer.suggestions)
        assert shown["configuration"] == first.configuration
        assert (shown["time_ms"], shown["gain"], shown["basis"]) == (
            first.expected_ms, first.gain, "new_gpu"
        )  # fmt: skip
        said = known.answer(shown["gpu"], shown["problem"])
        assert said.suggestions == answer.suggestions[:1]
        timed = said.suggestions[0].expected_ms is not None
        assert said.why.endswith(known.no_limits) is timed
        text = as_text(said, final.spec)
        assert ("ms, within 3.1 times" in text) is timed
        tuned = first.gain is not None and not first.is_usual
        assert ("usual choice, limits not known" in text) is tuned
    # What a judge may choose was chosen on a GPU that was learnt from.
    learnt, others = (
        {entry.choice for entry in table.entries if (entry.device < len(GPUS)) is known}
        for known in (True, False)
    )
    assert {*table.stored.candidates} <= learnt
    assert others - learnt
    described = {gpu: final.domain.profiles[gpu] for gpu in DESCRIBED}
    made = sized_study(
        kernel, "tiles", "t", [*SIZES], {gpu: swept(load_spec(kernel), gpu) for gpu in GPUS}
    )
    drawn = finder.data(replace(made, described=described, table=table))
    datasheet = drawn["bases"].index(finder.WORDS["datasheet"])
    own = [one for one in drawn["entries"] if drawn["gpus"][one[0]] in DESCRIBED]
    assert {basis for _, _, basis, *_ in own} == {datasheet}
    chosen = [dict(drawn["configurations"][entry[3]]["values"]) for entry in own]
    assert chosen == [each["configuration"] for each in entries]


def test_a_card_is_found_by_what_cuda_calls_it(final, table):
    table = table.named_by(cuda_names())
    problem = next(one["problem"] for one in named_answers(table.stored) if one["gpu"] == "t4")
    found = table.answer("Tesla T4", problem)
    assert found == table.answer("t4", problem)
    assert (found.gpu, found.basis) == ("t4", "new_gpu")
    # Measured ones keep the name that CUDA gave.
    assert table.devices[0].cuda_names == (
        final.domain.profiles[table.devices[0].name].device_name,
    )
    assert table.answer("NVIDIA B200", problem).basis == "usual"
    lines = [json.loads(line) for line in wisdom_text(table).splitlines()[1:]]
    assert "Made-up GPU" in {line["environment"]["device_name"] for line in lines}


def test_nothing_is_expected_of_copies_over_an_unknown_link(final, table):
    every = [each["problem"] for each in named_answers(table.stored)]
    problems = [each for each in every if each["memory"] == "pinned"][:6]
    resident = next(each for each in every if each["memory"] == "device")
    assert answers(final, [Case("t4", resident)])[0].suggestions[0].expected_ms is not None
    for gpu in ("t4", "t4.pcie", "card"):
        for answer in answers(final, [Case(gpu, problem) for problem in problems]):
            first = answer.suggestions[0]
            assert (first.expected_ms is None) == (gpu == "t4")
            assert (first.gain is None) == (gpu == "t4")
            assert (UNKNOWN_LINK in answer.why) == (gpu == "t4")
            if gpu == "t4":
                assert first.interval_ms is None
                assert first.gain_interval is None
                assert first.improvement is None
    # No gain is sure there.
    for answer in answers(final, [Case("t4", problem) for problem in problems], least_gain=0.5):
        assert answer.suggestions[0].is_usual
