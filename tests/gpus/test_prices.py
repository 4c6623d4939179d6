"""The table of prices: what is read, and one clear line for every mistake."""

import pytest

from launchwise.base.errors import UserError
from launchwise.gpus.datasheets import Price, read_prices

HEAD = "gpu,euro,euro_per_hour,date,source\n"
GPUS = ("h200", "a100")
MUST = "must have the columns gpu, euro, euro_per_hour, date, source"


def written(folder, text):
    path = folder / "prices.csv"
    path.write_text(text)
    return path


def test_prices_are_read_by_gpu(tmp_path):
    text = HEAD + 'h200,,3.5,2026-11-01,"a cloud, list price"\na100,9000,,2026-10-02,a shop\n'
    assert read_prices(written(tmp_path, text), GPUS) == {
        "h200": Price(euro_per_hour=3.5, date="2026-11-01", source="a cloud, list price"),
        "a100": Price(euro=9000.0, date="2026-10-02", source="a shop"),
    }


def test_a_known_card_that_the_settings_lack_may_have_a_price(tmp_path):
    path = written(tmp_path, HEAD + "t4,,1,2026-11-01,x\nh200,,3,2026-11-01,x\n")
    assert [*read_prices(path, GPUS, ("t4",))] == ["h200"]
    with pytest.raises(UserError, match="line 2: unknown GPU 't4'"):
        read_prices(path, GPUS)
    strange = written(tmp_path, HEAD + "t4,,-1,2026-11-01,x\n")
    with pytest.raises(UserError, match="line 2: euro_per_hour"):
        read_prices(strange, GPUS, ("t4",))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (HEAD.strip() + ",vat\n", f"{MUST} (got gpu,"),
        (HEAD + "h200,,3,2026-11-01,x\nh20,,3,2026-11-01,x\n", "line 3: unknown GPU 'h20', did"),
        (
            HEAD + "h200,,-3,2026-11-01,x\n",
            "line 2: euro_per_hour: must be greater than 0 (got '-3')",
        ),
        (
            HEAD + "h200,cheap,,2026-11-01,x\n",
            "line 2: euro: must be a valid number, unable to parse",
        ),
        (HEAD + "h200,inf,,2026-11-01,x\n", "line 2: euro: must be a finite number (got 'inf')"),
        (HEAD + "h200,,,2026-11-01,x\n", "line 2: must state euro, euro_per_hour or both"),
        (HEAD + "h200,,3,November,x\n", "line 2: date: must be a valid date"),
        (HEAD + "h200,,3,2026-11-01, \n", "line 2: source: is missing"),
        (HEAD + 2 * "h200,,3,2026-11-01,x\n", "line 3: h200 is given twice"),
    ],
)
def test_a_mistake_is_one_line_with_its_place(tmp_path, text, message):
    path = written(tmp_path, text)
    with pytest.raises(UserError) as caught:
        read_prices(path, GPUS)
    assert str(caught.value).startswith(f"{path}: {message}")
