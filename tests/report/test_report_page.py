"""The page: complete, valid, self-contained, the same twice, and standing up to gaps."""

import dataclasses
import json
import posixpath
import re
import zipfile
from html.parser import HTMLParser
from importlib import resources

import numpy as np
import plotly.graph_objects as go
import pytest
from recomputing.pages import unpacked

from launchwise.report import wording
from launchwise.report.answer import rule
from launchwise.report.pages import card_ratios
from launchwise.report.site import assemble, writing
from launchwise.report.site.rendering import embedded
from launchwise.report.site.rendering import packed as packed_
from tests.support.report_pages import RUN, files_of, html_of, page_of, words
from tests.support.report_study import study
from tests.support.shown import rows_of


class Outline(HTMLParser):
    """Ids, links, headings and what a page would load."""

    def __init__(self):
        super().__init__()
        self.ids = []
        self.links = []
        self.loads = []
        self.headers = 0
        self.headers_with_scope = 0

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        if given.get("id"):
            self.ids.append(str(given["id"]))
        if tag == "a":
            self.links.append(str(given.get("href")))
        if tag in ("script", "img", "iframe", "source") and given.get("src"):
            self.loads.append(str(given["src"]))
        if tag == "link":
            self.loads.append(str(given.get("href")))
        if tag == "th":
            self.headers += 1
            self.headers_with_scope += given.get("scope") in ("col", "row", "colgroup")


def outline(page):
    # plotly.js holds markup inside its own texts: leave the scripts out.
    found = Outline()
    found.feed(re.sub(r"<script.*?</script>", "", page, flags=re.DOTALL))
    return found


@pytest.fixture(scope="module")
def files():
    return files_of(study())


@pytest.fixture(scope="module")
def page():
    return page_of(study())


def whole(path, link):
    """A link of a page, below the report's folder; a script's source likewise."""
    target, _, fragment = link.partition("#")
    found = posixpath.normpath(posixpath.join(posixpath.dirname(path), target)) if target else path
    return f"{found}#{fragment}" if fragment else found


def test_pages_load_and_link_to_nothing_but_the_report():
    files = files_of(study(name="one"), study(name="two"))
    pages = {path: text for path, text in files.items() if path.endswith(".html")}
    every = {"index.html", "gpus.html", "one/index.html", "two/index.html"}
    assert {*pages} == every
    outlines = {path: outline(text) for path, text in pages.items()}
    there = {*files, *(f"{path}#{name}" for path, one in outlines.items() for name in one.ids)}
    assert {"one/index.html#one-answer", "two/index.html#two-answer"} <= there
    for path, text in pages.items():
        # What is chosen on a page stands behind the name of a part.
        links = {whole(path, link).partition("#compare?")[0] for link in outlines[path].links}
        assert links <= there, path
        # Every page leads to every other page of the whole report, and names itself without a way.
        assert every - {path} <= links
        assert path not in links
        assert 'aria-current="page"' in text
        icon, *styles = outlines[path].loads
        assert icon == "data:,"
        scripts = re.findall(r'<script[^>]+src="([^"]*)"', text)
        assert {whole(path, each) for each in (*styles, *scripts)} <= there
        # The front page is complete by itself.
        assert bool(styles) == bool(scripts) == (path != "index.html")
        assert "@import" not in text.split("</style>")[0]


def test_the_pages_of_a_study_link_to_its_doi_and_no_other_page_does():
    made = study()
    known = made.settings.model_copy(update={"doi": "10.5281/zenodo.15364124"})
    pages = html_of(dataclasses.replace(made, settings=known))
    link = '<a href="https://doi.org/10.5281/zenodo.15364124">doi:10.5281/zenodo.15364124</a>'
    for path, text in pages.items():
        assert text.count(link) == (1 if path.startswith("tiny/") else 0)
    assert "doi.org" not in page_of(made)


def test_the_front_page_says_which_gain_must_be_sure():
    said = "Where a gain of 1.05 is not sure, the answer is the usual choice."
    careful = dataclasses.replace(RUN, least_gain=1.05)
    found = [assemble.front_page(assemble.Report([study()], run), []) for run in (RUN, careful)]
    assert [said in str(page.sections[0]) for page in found] == [False, True]


def test_sections_of_a_study_that_share_an_id_are_no_report(monkeypatch):
    again = {**assemble.PARTS, "again": assemble.PARTS["rows"]}
    monkeypatch.setattr(assemble, "PARTS", again)
    with pytest.raises(ValueError, match="sections share an id: tiny-rows"):
        files_of(study())


def test_the_archive_holds_the_files_and_is_the_same_twice(tmp_path):
    folder = tmp_path / "report"
    (folder / "one").mkdir(parents=True)
    (folder / "index.html").write_text("front")
    (folder / "one" / "index.html").write_text("study")
    for name in ("a.zip", "b.zip"):
        writing.pack(folder, ["one/index.html", "index.html"], tmp_path / name)
    assert (tmp_path / "a.zip").read_bytes() == (tmp_path / "b.zip").read_bytes()
    with zipfile.ZipFile(tmp_path / "a.zip") as packed:
        assert packed.namelist() == ["report/index.html", "report/one/index.html"]
        assert packed.read("report/one/index.html") == b"study"


def test_ids_are_unique_and_headers_have_a_scope(files):
    headers = 0
    for path, text in files.items():
        if path.endswith(".html"):
            found = outline(text)
            assert len(found.ids) == len(set(found.ids)), path
            assert found.headers == found.headers_with_scope, path
            headers += found.headers
    assert headers > 50


def test_page_does_not_depend_on_the_order_of_rows(page):
    shuffled = study()
    shuffled.evaluation = shuffled.evaluation.sample(frac=1, random_state=1)
    shuffled.sweeps = {
        gpu: sweep.sample(frac=1, random_state=2) for gpu, sweep in shuffled.sweeps.items()
    }
    assert page_of(shuffled) == page


def test_every_panel_is_valid_plotly_and_has_its_element(files):
    drawn = 0
    for path, text in files.items():
        if not path.endswith(".html"):
            continue
        data = json.loads(re.findall(r'id="page-data"[^>]*>(.*?)</script>', text)[0])
        panels = unpacked(data["plots"]) if "plots" in data else {}
        assert ('assets/plotly.js"' in text) == bool(panels)
        for name, panel in panels.items():
            go.Figure(data=panel["data"], layout=panel["layout"])
            assert panel["data"], name
            assert f'id="{name}"' in text
        drawn += len(panels)
    assert drawn >= 3


def test_numbers_reach_the_page(page):
    # The best of the smaller size, 5 ms instead of 4 of the larger; usual: 2 and 8 ms.
    row = ["big", "kNN", "0.894", "1.79", "2", "–", "baseline", "0.500", "1.00"]
    assert row in rows_of(rule.sure(study()), "What answers reach")
    assert "missed" not in page
    # The best of big on its slice: NARROW takes 2.5 times as long there, WIDE is the best.
    assert re.search(r"best of big</th>\s*<td></td>\s*<td>58\.11<", page)


def test_study_without_models_and_without_any_evaluation():
    bare = study()
    bare.evaluation = bare.evaluation[bare.evaluation["role"] != "model"]
    bare.models = {}
    for part in bare.facts["splits"]["sizes"].values():
        part["models"] = {"untuned": part["models"]["untuned"]}
    alone = dataclasses.replace(study(), evaluation=bare.evaluation.iloc[:0], facts={}, _known={})
    pages = [page_of(each) for each in (study(), bare, alone)]
    assert not any("could not be made" in page for page in pages)
    assert ['id="tiny-models"' in page for page in pages] == [True, True, False]


def test_missing_values_are_dashes_not_nan():
    holes = study()
    columns = ["spearman", "absolute_percentage_error", "improved_runs", "improvement"]
    holes.evaluation[columns] = np.nan
    for sweep in holes.sweeps.values():
        sweep["relative_error"] = np.nan
    visible = re.sub(r"<script.*?</script>", "", page_of(holes), flags=re.DOTALL)
    assert not re.search(r"\bnan\b", visible, flags=re.IGNORECASE)


def test_gpu_with_a_single_problem():
    few = study()
    sweep = few.sweeps["big.sm4"]
    few.sweeps = {**few.sweeps, "big.sm4": sweep[sweep["n"] == 102]}
    assert 'id="tiny-transfer"' in page_of(few)
    (row,) = (one for one in card_ratios.one_way(few) if one.gpu == "big")
    assert row.counted == "1 problem"


def test_gpu_whose_baseline_failed():
    broken = study()
    sweep = broken.sweeps["big"]
    linear = sweep["variant"] == "linear"
    sweep.loc[linear, "status"], sweep.loc[linear, "time_ms"] = "failed", np.nan
    rows = files_of(broken)["data/tiny.best.csv"].splitlines()
    # No baseline: the best configuration is still named.
    place = rows[0].split(",").index("baseline (ms)")
    assert [row.split(",")[place] for row in rows[1:] if ",big," in row] == ["", ""]
    assert sum("block3d" in row for row in rows if ",big," in row) == 2


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, "–"), (float("nan"), "–"), (0, "0"), (1234.5, "1230"), (0.012345, "0.0123")],
)
def test_numbers_are_rounded_to_significant_digits(value, text):
    assert wording.number(value) == text


def test_plotly_is_packed_whole_and_its_licence_stays_readable(files):
    packed = files["assets/plotly.js"]
    source = resources.files("plotly").joinpath("package_data", "plotly.min.js").read_text("utf-8")
    licence, text = packed.split("*/", 1)
    assert "Licensed under the MIT license" in licence
    assert text.split('"')[1] == packed_(source, 9)
    assert len(packed) < len(source) / 2


@pytest.mark.parametrize("count", range(9))
def test_what_is_packed_comes_back_and_ends_nothing(count):
    value = ["</script>", '"', [0.25] * count]
    packed = packed_(embedded(value))
    assert unpacked(packed) == value
    assert not set(packed) & set("\"'\\<&`")


def test_words_of_closed_folds_are_not_read():
    inner = "<details><summary>f</summary>g</details>"
    fold = f"<details class='x'><summary>c d</summary>e{inner}h</details>"
    assert words(f"<script>a</script><p>a b</p>{fold}") == 4
    assert words(fold.replace("<details ", "<details open ", 1)) == 5
