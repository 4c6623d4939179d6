"""Quality against number of measurements: the figure, the table and the needle index of a study."""

import re
from dataclasses import replace

import pandas as pd
import pytest

from launchwise.learning.curves import ALL_GPUS, LONGEST, RANDOM, SEARCH
from launchwise.report import theme
from launchwise.report.answer.model_tables import learning_curves
from launchwise.report.blocks import Figure, Key, Panel, Section
from launchwise.report.site.rendering import render
from tests.support.report_pages import html_of, visible
from tests.support.report_study import study
from tests.support.shown import blocks_of

REACHED = {"knn": 0.8, "tree": 0.7, "untuned": 0.4, RANDOM: 0.5}
"""Fraction at first choice; each further measurement closes a tenth of what is missing."""


def curves(split="sizes"):
    return pd.DataFrame(
        {
            "study": "tiny",
            "split": split,
            "gpu": gpu,
            "model": model,
            "measured": count,
            "problems": 6,
            "fraction": 1 - (1 - first) * 0.9 ** (count - 1),
            "fraction_p5": 0.1,
        }
        for gpu in (ALL_GPUS, "big")
        for model, first in REACHED.items()
        for count in range(1, LONGEST + 1)
    )


def figure_of(known):
    (figure,) = blocks_of(learning_curves(replace(study(), curves=known)), Figure)
    return figure


def test_the_figure_draws_regret_and_random_order_beside_it():
    figure = figure_of(curves())
    lines = {trace["name"]: trace for trace in figure.panels[0].data}
    assert list(lines) == ["kNN", "regression tree", "random order"]
    assert list(lines["kNN"]["x"]) == list(range(1, LONGEST + 1))
    assert lines["random order"]["y"][0] == 50
    assert lines["kNN"]["y"][:3] == pytest.approx([20, 18, 16.2])
    assert figure.panels[0].layout["yaxis"]["type"] == "log"
    assert [key.label for key in figure.keys] == list(lines)


def test_a_line_ends_where_every_problem_has_its_best():
    best = curves().assign(fraction=lambda rows: rows["fraction"].where(rows["measured"] < 7, 1.0))
    for trace in figure_of(best).panels[0].data:
        assert None not in trace["y"][:6]
        assert set(trace["y"][6:]) == {None}


def test_ten_lines_share_no_colour_and_say_it_by_dash_and_marker_too():
    lines = [theme.line([1], [1], name=str(place), place=place) for place in range(10)]
    assert len({line["line"]["color"] for line in lines}) == 10
    assert len({(line["line"]["dash"], line["marker"]["symbol"]) for line in lines}) == 10
    for line, key in zip(lines, theme.keys(map(str, range(10)), markers=True), strict=True):
        assert (key.colour, key.shape) == (line["line"]["color"], line["line"]["dash"])
        assert key.marker == line["marker"]["symbol"]
    named = [Key(name, "#000", name) for name in theme.SYMBOLS]
    figure = Figure("all", "", "", [Panel("", [], {})], named)
    marks = re.findall("<svg.*?</svg>", render("", "", [Section("all", "", [figure])]), re.DOTALL)
    assert len({*marks}) == len(marks) == len(theme.SYMBOLS)


def test_only_the_page_of_a_study_with_curves_of_its_first_split_has_the_section():
    for known, shown in ((curves(), True), (curves("other"), False), (study().curves, False)):
        page = visible(html_of(replace(study(), curves=known))["tiny/index.html"])
        assert ("Quality against number of measurements" in page) == shown


def test_a_search_ends_before_the_others():
    known = curves()
    search = known[(known["model"] == "knn") & (known["measured"] <= 20)].assign(model=SEARCH)
    figure = figure_of(pd.concat([known, search]))
    lines = {trace["name"]: trace for trace in figure.panels[0].data}
    assert len(lines["search"]["y"]) == LONGEST
