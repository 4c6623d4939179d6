"""What the page says of times and cards is what the sweeps and profiles hold."""

import dataclasses
import re

import pandas as pd
import pytest

from launchwise.experiment.study import TransferSplit
from launchwise.report import wording
from launchwise.report.answer import rates, rule
from launchwise.report.pages import card_ratios, finder
from launchwise.tables.rows import is_baseline
from launchwise.workloads.spec import load_spec
from tests.support.report_study import settings, study
from tests.support.samples import ROOT
from tests.support.shown import tables


@pytest.fixture(scope="module")
def made():
    """A study on a card and a slice of it."""
    return study()


def fastest_ms(made, gpu):
    """Problem to the least time of its verified rows, straight from the sweep."""
    rows = made.sweeps[gpu]
    ok = rows[rows["status"].isin(["ok", "slow"])]
    found = ok.groupby(made.problem_columns)["time_ms"].min()
    return {key if isinstance(key, tuple) else (key,): time for key, time in found.items()}


def test_the_lookup_launches_a_template_with_its_arguments(made):
    spec = load_spec(ROOT / "tests" / "strangers" / "tiled_gemm")
    (launch,) = finder.launches(dataclasses.replace(made, spec=spec, _known={}))["tiles"]
    dtype = ["if", ["==", ["name", "dtype"], "float64"], "double", "float"]
    assert launch["kernel"] == ["gemm", *(["name", name] for name in ("BM", "BN", "BK")), dtype]


def test_the_table_of_best_times_has_the_times_of_the_sweeps_in_ms(made):
    tables_of = tables(rates.compared(made), folded=True)
    (best,) = (one for one in tables_of if one.caption == "Best time of every problem")
    places = {column.title: place for place, column in enumerate(best.columns)}
    assert best.columns[places["time"]].unit == best.columns[places["baseline"]].unit == "ms"
    for row in best.rows:
        cells = [cell.text for cell in row.cells]
        gpu = cells[places["GPU"]]
        names = made.problem_columns
        named = {tuple(map(str, key)): (key, time) for key, time in fastest_ms(made, gpu).items()}
        key, time_ms = named[tuple(cells[places[name]] for name in names)]
        assert cells[places["time"]] == wording.number(time_ms, 4)
        own = made.sweeps[gpu]
        own = own[is_baseline(own, made.spec)].set_index(made.problem_columns)
        default = own.loc[key if len(key) > 1 else key[0], "time_ms"]
        assert cells[places["baseline"]] == wording.number(float(default), 4)


@pytest.mark.parametrize(
    ("split", "words"),
    [
        (None, "on held-out sizes"),
        (TransferSplit(kind="leave_one_gpu_out", title="GPUs"), "trained without the GPU"),
    ],
)
def test_an_answer_says_what_its_model_did_not_see(made, split, words):
    if split:
        settings = made.settings.model_copy(update={"splits": {"sizes": split}})
        made = dataclasses.replace(made, settings=settings, _known={})
    (table,) = tables(rule.sure(made))
    assert table.caption == f"What answers reach, {words}: geometric means"


def test_gpus_that_do_not_differ_beyond_their_interval_are_a_tie(made):
    many = pd.concat(
        [
            rows.assign(n=size, time_ms=rows["time_ms"] * factor)
            for size, factor in zip(range(100, 800, 100), SPREAD, strict=True)
            for rows in [made.sweeps["big"][made.sweeps["big"]["n"] == 102]]
        ]
    )

    def said(factor, step):
        """Of two GPUs whose times differ by a factor, up and down by a step."""
        up_and_down = many["n"].map(lambda n: factor * (1 + step * (-1) ** (n // 100)))
        other = many.assign(gpu="big.sm4", time_ms=many["time_ms"] * up_and_down)
        sweeps = {"big": many, "big.sm4": other}
        sizes = sorted(many["n"].unique().tolist())
        split = {
            "kind": "problems", "title": "x", "train": {"n": sizes[::2]}, "test": {"n": sizes[1::2]}
        }  # fmt: skip
        asked = settings(splits={"sizes": split})
        both = dataclasses.replace(made, sweeps=sweeps, settings=asked, _known={})
        one = card_ratios.of_study(both)["big", "big.sm4"]
        return f"{one.number} ({wording.interval(one.interval)}, {one.counted}{one.verdict})"

    assert re.search(r"1\.00 \((0\.9\d\d|1\.000) to 1\.0\d\d, 7 problems, tie\)", said(1.0, 0.01))
    assert re.search(r" \(0\.9\d\d to 1\.0\d\d, 7 problems, undecided\)", said(1.0, 0.05))
    # 1.5 times the geometric mean of four .95 and three 1.05.
    assert re.search(r"^1\.49 \(1\.4\d\d to 1\.5\d\d, 7 problems\)", said(1.5, 0.05))


SPREAD = (1.0, 1.1, 1.3, 1.2, 0.9, 1.4, 1.05)
