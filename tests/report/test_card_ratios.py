"""Ratios of GPUs: their problems and intervals, one number per pair on every page."""

import dataclasses
import re

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from launchwise.report.blocks import MISSING
from launchwise.report.numbers import winners
from launchwise.report.pages import card_ratios
from launchwise.report.pages.card_ratios import ALL, KERNEL, mean_ratio, of_kernels, of_study
from launchwise.report.pages.index_page import sections
from tests.support.gpu_ratios import statements, wrong
from tests.support.report_pages import files_of, repacked, write
from tests.support.report_study import known_spec, settings, study, sweep, swept_study
from tests.support.samples import STENCIL
from tests.support.shown import tables

SIZES = [102, 152, 202, 252, 302, 352]
ERROR = 0.01
rng = np.random.default_rng(3)
GAINS = {n: float(np.exp(rng.normal(0.2, 0.1))) for n in SIZES}
"""Size to the time on ``old`` over that on ``new``."""


def rows_of(gpu, times, **columns):
    """Three configurations of each size; the fastest takes the size's time."""
    first = sweep(known_spec(STENCIL), "big").iloc[:3]
    parts = [
        first.assign(gpu=gpu, n=n, time_ms=np.array([2.0, 1.0, 1.5]) * time)
        for n, time in times.items()
    ]
    made, reach = pd.concat(parts, ignore_index=True), np.exp(1.96 * ERROR)
    # Configurations of a problem differ less than all of them do from another visit.
    limits = {"time_low_ms": made["time_ms"] / reach, "time_high_ms": made["time_ms"] * reach}
    return made.assign(error=ERROR / 4, basis="sweep", **limits, **columns)


def sweeps_of(gains, **columns):
    new = {n: n / 100 for n in gains}
    return {
        "new": rows_of("new", new, **columns),
        "old": rows_of("old", {n: gain * new[n] for n, gain in gains.items()}, **columns),
        "new.sm4": rows_of("new.sm4", {n: 2 * new[n] for n in list(gains)[:3]}),
    }


def cards(name="tiny", gains=GAINS, sweeps=None, **columns):
    """A study of two whole cards and a slice of one, which measured three of the sizes."""
    sizes = {"n": list(gains)}
    made = swept_study(STENCIL, name, sizes, sizes, sweeps or sweeps_of(gains, **columns))
    new = made.profiles["new"]
    old = new.model_copy(update={"device_name": "Old", "name": "old"})
    profiles = {**made.profiles, "old": old}
    return dataclasses.replace(made, profiles=profiles, table=None, _known={})


def without(sweeps, gpu, n):
    """Sweeps whose GPU lacks a configuration that is not the fastest of a size."""
    rows = sweeps[gpu]
    least = rows.groupby("n")["time_ms"].transform("min")
    gone = (rows["n"] == n) & (rows["variant"] == "block3d") & (rows["time_ms"] > least)
    assert gone.sum() == 1
    return {**sweeps, gpu: rows[~gone].reset_index(drop=True)}


def test_each_pair_has_the_problems_that_both_measured():
    found = of_study(cards())
    assert {pair: each.count for pair, each in found.items()} == {
        ("new", "old"): 6, ("old", "new"): 6, ("new", "new.sm4"): 3, ("new.sm4", "new"): 3,
        ("old", "new.sm4"): 3, ("new.sm4", "old"): 3,
    }  # fmt: skip
    one, turned = found["new", "old"], found["old", "new"]
    logs = np.log(list(GAINS.values()))
    assert one.ratio == pytest.approx(np.exp(logs.mean()))
    assert (turned.ratio, *turned.interval) == pytest.approx(
        (1 / one.ratio, 1 / one.interval[1], 1 / one.interval[0])
    )
    # Student's t, and the level of either visit on top, which six problems share.
    width = np.hypot(stats.t.ppf(0.975, 5) * stats.sem(logs), 1.96 * ERROR * 2**0.5)
    assert one.interval == pytest.approx(np.exp([logs.mean() - width, logs.mean() + width]))
    assert found["new", "new.sm4"].interval is None


def test_a_problem_that_one_card_measured_in_part_does_not_count():
    sweeps = without(sweeps_of(GAINS), "old", 202)
    assert of_study(cards(sweeps=sweeps))["new", "old"].count == 5
    # Unless it could not have measured the rest.
    made = cards(sweeps=sweeps)
    weak = made.profiles["old"].model_copy(update={"max_threads_per_block": 64})
    weak = dataclasses.replace(made, profiles={**made.profiles, "old": weak}, _known={})
    assert of_study(weak)["new", "old"].count == 6


def test_larger_errors_make_no_card_slower():
    sweeps = sweeps_of(GAINS)
    made = cards(sweeps={**sweeps, "old": sweeps["old"].assign(error=0.3, time_low_ms=1e-9)})
    # The usual choice takes twice as long, so that no table names it, though nothing is sure.
    assert (winners(made)["best_ms"] == winners(made)["surest_ms"]).all()
    logs = np.log(list(GAINS.values()))
    found = of_study(made)["new", "old"]
    assert found.ratio == pytest.approx(np.exp(logs.mean()))
    assert found.interval[1] > of_study(cards())["new", "old"].interval[1]


def test_one_problem_has_the_errors_of_its_two_times():
    found = of_study(cards(gains={102: 1.2}))["new", "old"]
    assert found.interval == pytest.approx(
        1.2 * np.exp([-1.96 * 2**0.5 * ERROR, 1.96 * 2**0.5 * ERROR])
    )


@pytest.mark.parametrize("count", [6, 40])
def test_intervals_hold_the_true_ratio_in_95_of_100_draws(count):
    drawn = np.random.default_rng(0)
    held = 0
    for _ in range(1000):
        # All times of a visit move together.
        logs = 0.1 + drawn.normal(0, 0.1, count) + drawn.normal(0, 0.1)
        low, high = mean_ratio(logs, np.full(count, 0.1))[1]
        held += low < np.exp(0.1) < high
    assert 935 <= held <= 975


def test_a_kernel_counts_once_whatever_number_of_studies_it_has():
    slow = {n: 3.0 for n in SIZES[:2]}
    other = cards("other", {**slow, 402: 3.0})
    # Its own candidates are slower by far, but for one size of its own.
    sweeps = {gpu: rows.assign(time_ms=9 * rows["time_ms"]) for gpu, rows in other.sweeps.items()}
    other = dataclasses.replace(other, sweeps=sweeps, _known={})
    (kernel,) = (
        each
        for each in of_kernels([cards(), other])
        if (each.over, each.gpu, each.other) == (KERNEL, "new", "old")
    )
    # What one of the two alone measured would mix their candidates.
    assert kernel.count == 2
    assert kernel.ratio == pytest.approx(stats.gmean([GAINS[n] for n in SIZES[:2]]))
    apart = list(of_kernels([cards(), cards("apart", {402: 3.0})]))
    (alone,) = (each for each in apart if (each.gpu, each.other) == ("new", "old"))
    assert alone.count == 7
    assert alone.ratio == pytest.approx(stats.gmean([*GAINS.values(), 3.0]))
    spec = known_spec(STENCIL).model_copy(update={"workload": "another"})
    third = dataclasses.replace(cards("third", dict.fromkeys(SIZES, 2.0)), spec=spec, _known={})
    (every,) = (
        each
        for each in of_kernels([cards(), other, third])
        if (each.over, each.gpu, each.other) == (ALL, "new", "old")
    )
    assert every.count == 2
    assert every.ratio == pytest.approx(np.sqrt(kernel.ratio * 2.0))
    assert every.interval is None


def test_what_a_host_timed_on_one_gpu_gives_no_ratio_of_cards():
    sweeps = sweeps_of(GAINS)
    of_host = np.where(sweeps["old"]["n"] == 202, "host", "events")
    sweeps["old"] = sweeps["old"].assign(timer=of_host)
    found = of_study(cards(sweeps=sweeps))
    logs = np.log([gain for n, gain in GAINS.items() if n != 202])
    assert found["new", "old"].count == 5
    assert found["new", "old"].ratio == pytest.approx(np.exp(logs.mean()))
    # Nor to the GPUs that events timed.
    assert found["new", "new.sm4"].count == 2
    hosted = cards(timer="host")
    assert of_study(hosted) == {}
    front = tables(*sections([cards("other"), hosted]))[0]
    shown = [row.cells[-1] for row in front.rows]
    assert [cell.detail for cell in shown if cell.text == MISSING] == ["host timed, too"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The report of two kernels, one of them with two studies."""
    spec = known_spec(STENCIL).model_copy(update={"workload": "another"})
    third = dataclasses.replace(cards("third", dict.fromkeys(SIZES, 1.5)), spec=spec, _known={})
    third = dataclasses.replace(third, settings=settings(workload="another", title="Third"))
    made = [cards(), cards("other", timer="host"), third, study(name="of_slices")]
    return write(files_of(*made), tmp_path_factory.mktemp("ratios"))


def test_every_page_gives_the_same_ratio_of_two_gpus(folder):
    found = list(statements(folder))
    pages = {each.page for each in found}
    assert {"index.html", "gpus.html", "tiny/index.html", "third/index.html"} < pages
    assert {"tiny.gpus.js", "third.gpus.js"} < pages
    assert not {"other/index.html", "other.gpus.js"} & pages
    assert wrong(folder) == []


@pytest.mark.parametrize(
    ("page", "before"),
    [
        ("index.html", r"new / old.*?all kernels</a></th>\s*(?:<td[^>]*>[^\d]*)*?<td>"),
        ("gpus.html", r"new over old.*?all kernels.*?<td[^>]*>"),
        ("tiny/index.html", r"new over old</th>\s*<td>"),
        ("data/tiny.gpus.js", r'"ratios":\[\[\d+,\d+,false,\d,'),
    ],
)
def test_a_ratio_that_differs_is_found(folder, tmp_path, page, before):
    write(
        {
            path.relative_to(folder).as_posix(): path.read_text(encoding="utf-8")
            for path in folder.rglob("*")
            if path.is_file()
        },
        tmp_path,
    )
    pattern = re.compile(rf"({before})\d+\.\d+", flags=re.DOTALL)

    def change(text):
        assert pattern.search(text)
        return pattern.sub(r"\g<1>7.77", text, count=1)

    text = (tmp_path / page).read_text(encoding="utf-8")
    spoilt = repacked(text, change) if page.endswith(".js") else change(text)
    (tmp_path / page).write_text(spoilt, encoding="utf-8")
    assert [each.page for each in wrong(tmp_path)] == [page.removeprefix("data/")]


def test_the_file_holds_each_pair_of_each_study_once(folder):
    rows = pd.read_csv(folder / card_ratios.TABLE)
    assert not rows.duplicated(["over", "name", "gpu", "other"]).any()
    assert set(rows["over"]) == {"study", "kernel", "all kernels"}
