"""Published tables and what their run times mean: read, checked, one line per mistake."""

import pytest
import yaml

from launchwise.base.errors import UserError
from launchwise.experiment.published import RUN_TIMES, RunTime, read_run_times, read_tables
from launchwise.gpus.datasheets import CARDS_FILE, read_cards
from launchwise.workloads.spec import load_spec
from tests.support.samples import ROOT

CARDS = ("a100", "rtx2080super")
STUDIES = sorted(path.parents[1] for path in ROOT.glob(f"kernels/*/studies/*/{RUN_TIMES}"))

MISTAKES = yaml.safe_load((ROOT / "tests/experiment/data/run_times.yaml").read_text())
TABLE, GOOD = MISTAKES["times"], MISTAKES["good"]


def written(folder, text=TABLE, **changes):
    """A study with one series: :data:`GOOD`, but for ``changes``."""
    (folder / "published").mkdir()
    (folder / "published" / "times.csv").write_text(text)
    series = {name: value for name, value in {**GOOD, **changes}.items() if value is not None}
    (folder / RUN_TIMES).write_text(yaml.safe_dump({"series": [series]}))
    return folder


def test_each_row_is_a_time_of_a_problem_on_a_card_and_no_file_is_none(tmp_path, stencil_spec):
    assert read_run_times(tmp_path, stencil_spec, CARDS).times == []
    found = read_run_times(written(tmp_path), stencil_spec, CARDS)
    assert found.times[0] == RunTime(
        series="best tiles",
        row=2,
        card="a100",
        problem={"n": 256, "dtype": "float32", "order": 8},
        selection={},
        phases=(),
        runs=None,
        time_ms=500.0,
        source="a paper, table 1",
    )
    assert [(one.row, one.card, one.time_ms) for one in found.times[1:]] == [
        (3, "rtx2080super", 1250.0)
    ]
    # The size of the last row is lost.
    assert found.skipped == {"best tiles": 1}


def test_a_variant_is_one_configuration_but_for_what_is_free(tmp_path, stencil_spec):
    named = {"dtype": "float32", "order": 8, "variant": "block3d", "row_padding": 1, "by": 2}
    columns = {**GOOD["columns"], "bx": "tile"}
    study = written(tmp_path, values=named, columns=columns, free=["bz"], runs=4)
    first = read_run_times(study, stencil_spec, CARDS).times[0]
    every = stencil_spec.tunables["bz"].values
    assert first.selection == {
        **{"variant": ["block3d"], "row_padding": [1]},
        **{"by": [2], "bx": [16], "bz": every},
    }
    assert first.runs == 4


def test_rows_may_be_chosen_by_their_texts(tmp_path, stencil_spec):
    found = read_run_times(written(tmp_path, only={"card": ["A100"]}), stencil_spec, CARDS)
    assert [one.card for one in found.times] == ["a100"]
    assert found.skipped == {"best tiles": 0}


@pytest.mark.parametrize(("changes", "said"), MISTAKES["series"])
def test_a_mistake_is_one_line(tmp_path, stencil_spec, changes, said):
    with pytest.raises(UserError) as refused:
        read_run_times(written(tmp_path, **changes), stencil_spec, CARDS)
    assert said.replace("SERIES", "run_times.yaml: series.0") in str(refused.value)


@pytest.mark.parametrize(("old", "new", "said"), MISTAKES["table"])
def test_a_cell_that_does_not_fit_is_named(tmp_path, stencil_spec, old, new, said):
    study = written(tmp_path, TABLE.replace(old, new, 1))
    with pytest.raises(UserError) as refused:
        read_run_times(study, stencil_spec, CARDS)
    assert str(refused.value).startswith(str(study / "published" / "times.csv"))
    assert said in str(refused.value)


def test_tables_without_run_times_are_checked_too(tmp_path):
    study = written(tmp_path)
    assert len(read_tables(study)["times"]) == 3
    (study / "published" / "facts.csv").write_text("fact,loss_percent,source\nx,3 %,a paper\n")
    with pytest.raises(UserError, match=r"facts.csv: row 2.loss_percent: must be a number in perc"):
        read_tables(study)


@pytest.mark.parametrize("study", STUDIES, ids=lambda path: path.name)
def test_the_times_of_the_papers_are_read(study):
    spec, cards = load_spec(study.parents[1]), read_cards(ROOT / CARDS_FILE)
    found = read_run_times(study, spec, cards)
    titles = {one.series for one in found.times}
    assert titles == {one.title for one in found.series}
    assert len({(one.series, one.row) for one in found.times}) == len(found.times)
