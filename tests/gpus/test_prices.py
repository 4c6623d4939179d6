"""The table of prices: what is read, and one clear line for every mistake."""

import pytest
from samples import ROOT

from launchwise.base.errors import UserError
from launchwise.base.typed import read_yaml
from launchwise.gpus.datasheets import Price, read_prices

CASES = read_yaml(ROOT / "tests/gpus/data/tables.yaml")

HEAD = "gpu,euro,euro_per_hour,date,source\n"
GPUS = ("h200", "a100")


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


@pytest.mark.parametrize(("rows", "message"), CASES["prices"])
def test_a_mistake_is_one_line_with_its_place(tmp_path, rows, message):
    path = written(tmp_path, HEAD + rows)
    with pytest.raises(UserError) as caught:
        read_prices(path, GPUS)
    assert str(caught.value).startswith(f"{path}: {message}")


def test_other_columns_are_refused(tmp_path):
    path = written(tmp_path, HEAD.replace("source", "source,vat"))
    with pytest.raises(UserError, match=r"csv: must have the columns gpu, .*source \(got gpu,"):
        read_prices(path, GPUS)
