"""The front page before the report is done: the first answers of a run."""

import re

import pytest

from launchwise.base.errors import UserError
from launchwise.base.storage import write_sealed_json
from launchwise.exporting.entries import Device, Entry, Stored
from launchwise.exporting.formulas import EXPORTED_FACTS
from launchwise.report.site.reading import SHOWN, write_first_page


def answer(gpu, n, basis="measured", gain=1.25):
    return gpu, n, basis, gain


def stored(answers):
    """What the file of a study's answers holds."""
    gpus = list(dict.fromkeys(gpu for gpu, *_ in answers))
    entries = [
        Entry(gpus.index(gpu), (n,), 0, 0, n / 1000, gain, basis) for gpu, n, basis, gain in answers
    ]
    return Stored(
        workload="stencil",
        parameters=("n",),
        commits=(),
        least_gain=None,
        devices=tuple(Device(gpu, (gpu,), (0,) * len(EXPORTED_FACTS)) for gpu in gpus),
        configurations=({"variant": "block3d", "bx": 32},),
        candidates=(),
        features=(),
        entries=tuple(entries),
    ).model_dump()


class Run:
    """Files of a run whose report is not done."""

    def __init__(self, folder):
        self.report = folder / "report" / "index.html"
        self.archive, self.lookup = folder / "report.zip", folder / "lookup"

    def answered(self, study, *answers):
        write_sealed_json(self.lookup / f"{study}.json", stored(answers))

    def written(self):
        return write_first_page(self.report, self.archive, self.lookup)

    @property
    def rows(self):
        """Cells of the page's tables, row by row."""
        rows = re.findall("<tr.*?</tr>", self.report.read_text(encoding="utf-8"), re.DOTALL)
        cells = [re.findall("<t[dh].*?</t[dh]>", row, re.DOTALL) for row in rows if "<td" in row]
        return [[re.sub("<[^>]*>", "", cell).strip() for cell in row] for row in cells]


@pytest.fixture
def run(tmp_path):
    return Run(tmp_path)


def test_it_appears_with_the_first_study_that_has_answers(run):
    assert not run.written()
    run.answered("empty")
    assert not run.written()
    assert not run.report.exists()
    run.answered("tiles", answer("h200", 200), answer("h200", 300, "within", None))
    assert run.written()
    assert run.rows == [
        ["n=200", "block3d bx=32", "measured", "0.200", "1.25"],
        ["n=300", "block3d bx=32", "expected", "0.300", "–"],
    ]
    assert "of 1 study." in run.report.read_text(encoding="utf-8")
    run.answered("streams", answer("h100", 400))
    # What another job makes anew is gone for a moment.
    (run.lookup / "vanished.json").symlink_to("nowhere.json")
    assert run.written()
    assert [row[0] for row in run.rows] == ["n=400", "n=200", "n=300"]


def test_it_shows_answers_of_one_gpu_evenly_apart(run):
    run.answered("tiles", *(answer(gpu, n) for gpu in ("h100", "h200") for n in range(1, 41)))
    assert run.written()
    assert [row[0] for row in run.rows] == [f"n={n}" for n in range(1, 41, 5)]
    assert len(run.rows) == SHOWN
    assert "h100; 40 of 80 answers" in run.report.read_text(encoding="utf-8")


def test_a_complete_report_stays(run):
    run.answered("tiles", answer("h200", 200))
    run.report.parent.mkdir()
    run.report.write_text("the whole report", encoding="utf-8")
    run.archive.touch()
    assert not run.written()
    assert run.report.read_text(encoding="utf-8") == "the whole report"


@pytest.mark.parametrize("text", ["{", "[]", '{"answers": []}'])
def test_a_damaged_file_of_answers_is_refused_in_one_line(run, text):
    run.lookup.mkdir()
    (run.lookup / "tiles.json").write_text(text, encoding="utf-8")
    with pytest.raises(UserError) as caught:
        run.written()
    assert str(run.lookup / "tiles.json") in str(caught.value)
    assert not run.report.exists()
