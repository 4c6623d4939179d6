"""The acoustic study's own sections, on measurements and recorded runs that are known."""

import dataclasses
import json
import shutil
from pathlib import Path

import pandas as pd

from kernels.acoustic.studies.acoustic_tile import claims, paper_tables, recipe
from kernels.acoustic.studies.acoustic_tile.section import sections as own
from launchwise.experiment.published import facts_of
from launchwise.report.blocks import Fold
from launchwise.workloads.space import baseline
from tests.support.report_pages import page_of
from tests.support.report_study import settings, study
from tests.support.shown import blocks_of, notes, tables, texts

KERNEL = Path(__file__).resolve().parents[1]
FOLDER = KERNEL / "studies" / "acoustic_tile"
PROBLEM = {"n": 256, "dtype": "float64", "order": 2}


def measured(*rows):
    """A study whose GPU ``big`` has these rows of the first problem of table 1, and no other."""
    plain = study(("big",), "acoustic_tile", FOLDER, KERNEL)
    shape = plain.sweeps["big"].iloc[0].to_dict()
    neutral = baseline(plain.spec)
    given = [{**shape, **PROBLEM, **neutral, "status": "ok", **row} for row in rows]
    parts = {"train": {"n": [512]}, "test": {"n": [256]}}
    split = {"kind": "problems", "title": "x", **parts}
    return dataclasses.replace(
        plain,
        sweeps={"big": pd.DataFrame(given)},
        settings=settings(workload="acoustic", splits={"sizes": split}),
    )


LINEAR = {"variant": "linear", "time_ms": 2.0}


def program(time_ms, i, j, k, **more):
    tile = {"tile_i": i, "tile_j": j, "tile_k": k}
    return {"variant": "openmp", **tile, "time_ms": time_ms, **more}


def walked(time_ms, tx, ty, tz, **more):
    return {"variant": "omp_tile", "tx": tx, "ty": ty, "tz": tz, "time_ms": time_ms, **more}


def block(time_ms, bx, by, bz):
    return {"variant": "block3d", "bx": bx, "by": by, "bz": bz, "time_ms": time_ms}


def first_row(table):
    return [cell.text for cell in table.rows[0].cells]


def test_table_one_has_our_best_and_what_their_tile_reaches(published):
    # Printed 8 x 1 x 4: x is the last number.
    data = measured(
        LINEAR,
        walked(1.6, 1, 2, 4),
        walked(4.0, 4, 1, 8),
        walked(1.0, 8, 1, 4),
        block(0.5, 32, 2, 1),
        block(8.0, 4, 1, 8),
    )
    table = paper_tables.best_tiles(data, published, "big")
    assert first_row(table)[:6] == ["A100", "256", "float64", "2", "8×1×4", "0.1489"]
    assert first_row(table)[6:] == ["4×1×8", "2.00", "0.50", "1×2×32", "4.00", "0.25"]
    assert [cell.text for cell in table.rows[1].cells[6:]] == ["–"] * 6
    assert len(table.rows) == 18


def test_a_tile_that_was_launched_once_has_no_speed_up_and_is_never_the_best(published):
    data = measured(LINEAR, walked(1.6, 1, 2, 4), walked(1.0, 4, 1, 8, status="slow"))
    cells = paper_tables.best_tiles(data, published, "big").rows[0].cells
    assert [cell.text for cell in cells[6:9]] == ["4×2×1", "1.25", "–"]
    assert cells[8].detail == "one launch"
    assert not cells[7].detail


def test_speed_ups_of_tiles_compare_rows_of_the_sweep(published):
    # In pairs untiled loops took 1.2 ms; the walked tiles were in none.
    paired = {**LINEAR, "time_ms": 1.2, "sweep_ms": 2.0, "basis": "pairs"}
    tiles = walked(1.6, 1, 2, 4, sweep_ms=1.6, basis="sweep"), block(0.5, 32, 2, 1)
    program_rows = program(4.0, 0, 0, 0), program(2.5, 16, 1, 1)
    others = [{"sweep_ms": row["time_ms"], "basis": "sweep", **row} for row in program_rows]
    rows = paired, tiles[0], {"sweep_ms": 0.5, "basis": "sweep", **tiles[1]}, *others
    sure = {"time_low_ms": float("nan"), "time_high_ms": float("nan"), "error": 0.005}
    data = measured(*({**sure, **row} for row in rows))
    shown = first_row(paper_tables.best_tiles(data, published, "big"))[6:]
    assert (shown[:2], shown[3:5], shown[6:8]) == (
        ["4×2×1", "1.25"],
        ["1×2×32", "4.00"],
        ["16×1×1", "1.60"],
    )


def test_gains_of_the_program_are_over_its_own_loops(published):
    rows = [
        LINEAR,
        program(4.0, 0, 0, 0),
        program(3.2, 8, 1, 4),
        program(2.5, 16, 1, 1),
        program(1.0, 64, 1, 1, status="slow"),
        # Without its own loops, no gain.
        program(1.0, 2, 1, 1, n=512),
    ]
    data = measured(*rows)
    beside = paper_tables.best_tiles(data, published, "big")
    # Printed 8 x 1 x 4; no row of omp_tile and of blocks.
    assert first_row(beside)[6:] == ["–"] * 6 + ["16×1×1", "1.60", "1.25"]
    assert beside.columns[-1].group == "ours, the program in C"


def test_single_launches_of_printed_tiles_are_counted(published):
    def said(data):
        fold = blocks_of(own(data, published)[1], Fold)[0]
        return notes(fold.blocks)[0]

    assert "single launch" not in said(measured(LINEAR, walked(1.0, 4, 1, 8)))
    once = measured(LINEAR, walked(1.6, 1, 2, 4), walked(1.0, 4, 1, 8, status="slow"))
    assert said(once).endswith("1 tile of theirs left out: a single launch.")


def test_single_launches_among_the_training_rows_of_the_recipe_are_counted(published):
    # 512 is the size to train on, and the recipe has walked tiles and untiled loops alone.
    rows = [walked(1.0, 1, 2, 4, n=512, status="slow"), walked(1.0, 4, 1, 8, n=512)]
    others = [{**block(1.0, 4, 1, 8), "n": 512, "status": "slow"}]
    others.append(walked(1.0, 1, 2, 4, status="slow"))
    found = own(measured(LINEAR, *rows, *others), published)[0]
    assert " 1 of 2 training rows were stopped after one launch" in " ".join(notes(found))
    assert "one launch" not in " ".join(notes(own(measured(LINEAR), published)[0]))


def test_problems_that_were_measured_after_the_recipe_ran_are_told(published):
    data = measured(LINEAR, walked(1.0, 1, 2, 4), walked(1.0, 1, 2, 4, order=8))

    def told(problems):
        known = json.loads((FOLDER / recipe.FILE).read_text())
        run = known["runs"][recipe.GLOBAL]
        one = run["gpus"]["h100"]
        run["gpus"] = {"big": {**one, "oracle": {**one["oracle"], "problems": problems}}}
        made = recipe.blocks(data, known, published["results"], facts_of(published))
        return " ".join(notes(made))

    assert "The run had 1 of the 2 problems on big that have rows today." in told(1)
    assert "The run had" not in told(2)


def test_test_problems_without_rows_are_told(published):
    # Two of six types and orders of the only test size.
    rows = LINEAR, walked(1.0, 1, 2, 4, order=8), program(4.0, 0, 0, 0)
    said = claims.differences(measured(*rows), published)[-1]
    of = "with rows of {} kernel on big"
    every, theirs = of.format("any"), of.format("the paper's")
    assert said == f"Of 6 test problems: 2 {every} and 1 {theirs}."


def test_every_feature_of_the_paper_is_one_of_ours(published):
    data = measured(LINEAR)
    known = {*data.spec.features, *next(iter(data.profiles.values())).features()}
    ours = [record["ours"] for record in published["features"]]
    assert len(ours) == len(set(ours)) == 11
    assert set(ours) <= known


def test_the_recorded_recipe_stands_beside_the_paper(published):
    data = measured(LINEAR)
    sliced = data.profiles["big"].model_copy(
        update={"sms": data.profiles["big"].whole_card_sms - 1}
    )
    data = dataclasses.replace(data, profiles=data.profiles | {"h200.sm16": sliced})
    beside, found = own(data, published)
    assert [section.id for section in (beside, found)] == [
        "acoustic_tile-recipe",
        "acoustic_tile-paper",
    ]
    run = json.loads((FOLDER / recipe.FILE).read_text())["runs"][recipe.PAPERS]
    (table,) = tables(beside)
    groups = [group for group, _ in table.groups][1:]
    assert groups[:3] == [
        "paper, RTX 2080 Super: 60 problems",
        "paper, V100: 114 problems",
        "h100, C with OpenMP: 30 problems",
    ]
    assert not any(group.startswith("h200.sm16") for group in groups)
    assert table.rows[0].cells[0].text == "J48"
    assert table.rows[-1].cells[0].text == "best tile of each problem"
    tree = next(row for row in table.rows if row.cells[0].text == "regression tree")
    assert [cell.text for cell in tree.cells[1:5]] == ["86.67", "1.17", "89.77", "1.11"]
    assert tree.cells[6].text == f"{run['gpus']['h100']['tree']['improvement_coefficient']:.3f}"


def test_without_a_recorded_recipe_or_the_paper_there_is_nothing(published, tmp_path):
    folder = tmp_path / "acoustic_tile"
    shutil.copytree(FOLDER, folder)
    (folder / recipe.FILE).unlink()
    assert own(dataclasses.replace(measured(LINEAR), folder=folder), published) == []
    assert own(measured(LINEAR), {}) == []


def test_the_page_has_the_paper_beside_it():
    found = page_of(study(name="acoustic_tile", folder=FOLDER, kernel=KERNEL))
    assert 'id="acoustic_tile-paper"' in found
    assert "is inconsistent: coefficient 0.78 with 76.9 % improved" in found
    assert "the mean of run time over time of the baseline, which is below 1 where" in found
    assert "at least 0.769" in found
    assert "repeats XGBoost" in found
    gap = "\u202f"
    assert f"13{gap}816 - 1{gap}701 = 12{gap}115 runs left, not the 12{gap}117" in found


def figures(speed, improved=50.0, slower=20.0):
    return {
        "improvement_coefficient": speed,
        "percent_runs_improved": improved,
        "percent_slower": slower,
        "worst_speed_up": 0.5,
    }


def recorded(**gpus):
    return {"runs": {recipe.GLOBAL: {"gpus": gpus}}}


def test_conclusions_are_counted_over_kernels_and_gpus(published):
    # The oracle takes no part; nor do models with printed hyper-parameters.
    ours = {"tree": figures(1.2), "knn": figures(1.1), "oracle": figures(9.0)}
    printed = {"tree_printed": figures(7.0), "knn_printed": figures(8.0)}
    first = {**ours, **printed, "tree": figures(1.2, 80.0, 1.0)}
    second = {**ours, **printed, "knn": figures(1.3)}
    runs = recorded(one=first, two=second)
    runs["runs"][recipe.PAPERS] = recorded(one=first)["runs"][recipe.GLOBAL]
    table = claims.judged(measured(LINEAR), published, runs)
    assert [column.title for column in table.columns[2:]] == [
        *("one, C with OpenMP", "one, CUDA", "two, CUDA", "holds on")
    ]
    assert [row[2:] for row in texts(table)] == [
        ["1 of 2", "1 of 2", "2 of 2", "2 of 3"],
        ["80.0", "80.0", "50.0", "2 of 3"],
        ["1.0 %; 0.50×", "1.0 %; 0.50×", "20.0 %; 0.50×", "2 of 3"],
    ]
    assert [row[1] for row in texts(table)][-1] == "13.33 and 10.23 % of runs not faster"


def test_contradictions_follow_from_the_printed_figures(published):
    said = "\n".join(row["conflict"] for row in published["contradictions"])
    said = said.replace("\N{NARROW NO-BREAK SPACE}", " ").replace("\N{NO-BREAK SPACE}", " ")
    facts, results = facts_of(published), published["results"]
    runs, fit = int(facts["training_runs"]), int(facts["combinations_that_fit"])
    assert f"over {fit} combinations are {runs / fit:.2f} tiles each" in said
    left = runs - int(facts["runs_removed"])
    assert f"= {left:,} runs left".replace(",", " ") in said
    assert left != int(facts["runs_left_as_printed"])
    points, order = int(facts["drawn_points"]), int(facts["drawn_order"])
    assert f"{points} points are radius {(points - 1) // 6}, which is order 16" in said
    assert f"order {order} has {3 * order + 1} points" in said
    improved = {(row["gpu"], row["model"]): float(row["improved_percent"]) for row in results}
    best = max(results, key=lambda row: float(row["improved_percent"]))
    hits, of = round(float(best["improved_percent"]) / 100 * int(best["runs"])), int(best["runs"])
    assert f"{hits} of {of}, which is {100 * hits / of:.0f} of 100" in said
    pair = improved["rtx2080super", "knn"], improved["rtx2080super", "tree"]
    assert f"kNN improves more runs, {pair[0]} against {pair[1]} %" in said
    assert improved["v100", "tree"] == max(v for (gpu, _), v in improved.items() if gpu == "v100")
