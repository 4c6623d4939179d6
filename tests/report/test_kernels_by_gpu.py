"""Every kernel on every GPU: one set of problems a kernel, and what each figure is made of."""

import dataclasses

import numpy as np
import pytest

from launchwise.gpus.datasheets import Price
from launchwise.report.blocks import Fold, Table
from launchwise.report.front import index_page
from launchwise.report.front.index_page import FEWEST_PROBLEMS, column, section
from tests.support.report_pages import html_of, visible
from tests.support.report_study import TIMES_MS, study


def fastest_ms(gpu, problems):
    return np.array([min(TIMES_MS[gpu, n]) for n in problems])


def test_speeds_are_means_over_the_problems_that_both_have():
    made = study()
    found = column(made, {})
    assert found is not None
    sizes = [problem[0] for problem in found.problems]
    common = {n for gpu, n in TIMES_MS if gpu == "big"} & {
        n for gpu, n in TIMES_MS if gpu == "big.sm4"
    }
    # The slice has no place unless it measured all that the whole card did.
    wanted = {n for gpu, n in TIMES_MS if gpu == "big"}
    assert set(sizes) == wanted
    assert ("big.sm4" in found.places) == (common == wanted)
    assert found.places["big"].speed == 1
    for gpu, place in found.places.items():
        ratios = fastest_ms("big", sizes) / fastest_ms(gpu, sizes)
        assert place.speed == pytest.approx(np.exp(np.log(ratios).mean()))
        assert place.time_ms == pytest.approx(np.exp(np.log(fastest_ms(gpu, sizes)).mean()))
        assert place.runs_per_euro is None


def test_runs_per_euro_follow_from_price_and_time():
    price = Price(euro=None, euro_per_hour=3.6, date="2026-01-01", source="a list")
    found = column(study(), {"big": price})
    assert found is not None
    assert found.places["big"].runs_per_euro == pytest.approx(1e6 / found.places["big"].time_ms)


def test_energy_is_of_the_problems_that_all_whole_cards_have_it_of():
    made = study()
    sweeps = {
        gpu: rows.assign(energy_j=2e-3 * rows["time_ms"]) for gpu, rows in made.sweeps.items()
    }
    found = column(dataclasses.replace(made, sweeps=sweeps, _known={}), {})
    assert found is not None
    place = found.places["big"]
    assert place.energy_j == pytest.approx(2e-3 * place.time_ms)
    assert found.with_energy == found.problems
    largest = {gpu: rows["n"].max() for gpu, rows in sweeps.items()}
    holes = {
        gpu: rows.assign(energy_j=rows["energy_j"].where(rows["n"] < largest[gpu]))
        for gpu, rows in sweeps.items()
    }
    found = column(dataclasses.replace(made, sweeps=holes, _known={}), {})
    assert found is not None
    # Of one problem alone no mean is given.
    assert found.with_energy == []
    assert found.places["big"].energy_j is None


def test_a_kernel_of_one_gpu_is_not_there():
    assert section([study(gpus=("big",))], {}) is None
    assert column(study(gpus=("big",)), {}) is None


def test_what_others_measured_is_folded(monkeypatch):
    monkeypatch.setattr(index_page, "_is_imported", lambda one: one.study.name == "theirs")
    both = section([study(), study(name="theirs")], {})
    assert both is not None
    assert [type(block) for block in both.blocks[:2]] == [Table, Fold]


def test_the_front_page_shows_it_with_links_to_the_rows():
    made = study()
    page = html_of(made)["index.html"]
    found = column(made, {})
    assert found is not None
    assert "Every kernel on every GPU" in visible(page)
    assert f"{len(found.problems)} problem" in visible(page)
    assert 'href="gpus.html#compare?study=tiny&amp;gpus=whole&amp;beside=big"' in page
    assert FEWEST_PROBLEMS > 1
