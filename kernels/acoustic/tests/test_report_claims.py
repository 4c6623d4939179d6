"""The paper's conclusions and contradictions, on figures and rows that are known."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from acoustic_pages import FOLDER, KERNEL, LINEAR, measured, program

from kernels.acoustic.studies.acoustic_tile import claims
from launchwise.experiment.published import Records, facts_of
from tests.support.report_study import study


def test_the_gain_of_an_earlier_work_stands_beside_the_largest_here(
    published: dict[str, Records],
) -> None:
    def said(*rows: dict[str, Any]) -> list[str]:
        found = claims.judged(measured(LINEAR, *rows), published, None)
        return [reasons for statement, reasons in found if "2.93 times" in statement]

    assert said() == []
    (reasons,) = said(program(4.0, 0, 0, 0), program(2.5, 16, 1, 1), program(3.0, 4, 1, 1))
    assert "at most big: 1.60." in reasons


def figures(speed: float, improved: float = 50.0, slower: float = 20.0) -> dict[str, float]:
    return {
        "improvement_coefficient": speed,
        "percent_runs_improved": improved,
        "percent_slower": slower,
        "worst_speed_up": 0.5,
    }


def recorded(**gpus: dict[str, Any]) -> dict[str, Any]:
    titles = {"tree": {"title": "regression tree"}, "knn": {"title": "kNN"}}
    models = {**titles, "tree_printed": {"title": "tree, printed"}}
    return {"runs": {claims.GLOBAL: {"models": models, "gpus": gpus}}}


@pytest.mark.parametrize(
    ("tree", "knn", "verdict"),
    [
        ((1.2, 1.3), (1.1, 1.2), "holds with"),
        ((1.2, 1.1), (1.1, 1.2), "holds in part"),
        ((1.0, 1.1), (1.1, 1.2), "does not hold"),
    ],
)
def test_the_best_model_is_judged_on_every_gpu(
    published: dict[str, Records], tree: tuple[float, ...], knn: tuple[float, ...], verdict: str
) -> None:
    # The oracle and models with printed hyper-parameters take no part.
    others = {"oracle": figures(9.0), "tree_printed": figures(8.0)}
    gpus = {
        name: {"tree": figures(tree[at]), "knn": figures(knn[at]), **others}
        for at, name in enumerate(("one", "two"))
    }
    statement, reasons = claims.judged(measured(LINEAR), published, recorded(**gpus))[0]
    assert verdict in statement
    assert f"one: place {1 if tree[0] > knn[0] else 2} of 2" in reasons


@pytest.mark.parametrize(
    ("improved", "slower", "share", "loss"),
    [
        (80.0, 1.0, "more than 75 % on both” holds", "hardly ever loses” holds"),
        (60.0, 9.0, "more than 75 % on both” does not hold", "hardly ever loses” does not hold"),
    ],
)
def test_shares_and_losses_are_judged(
    published: dict[str, Records], improved: float, slower: float, share: str, loss: str
) -> None:
    gpu = {"tree": figures(1.1, improved, slower), "oracle": figures(1.2, 90.0)}
    _, shares, losses, *_ = claims.judged(measured(LINEAR), published, recorded(one=gpu))
    assert share in shares[0]
    assert f"{improved:.1f} % of runs (best tile: 90.0 %)" in shares[1]
    assert loss in losses[0]
    assert "13.33 % (RTX 2080 Super) and 10.23 % (V100)" in losses[1]


def test_a_share_holds_only_where_it_holds_on_every_gpu(published: dict[str, Records]) -> None:
    gpus = {
        name: {"tree": figures(1.1, improved, slower), "oracle": figures(1.2)}
        for name, improved, slower in (("one", 80.0, 1.0), ("two", 60.0, 9.0))
    }
    _, shares, losses, *_ = claims.judged(measured(LINEAR), published, recorded(**gpus))
    assert "does not hold" in shares[0]
    assert "does not hold" in losses[0]


def test_the_papers_program_is_judged_beside_the_tiles_of_our_kernels(
    published: dict[str, Records],
) -> None:
    ours, theirs = (
        {"one": {"tree": figures(1.1, share), "oracle": figures(1.2)}} for share in (60, 80)
    )
    runs = recorded(**ours)["runs"] | {claims.PAPERS: recorded(**theirs)["runs"][claims.GLOBAL]}
    said = [
        statement for statement, _ in claims.judged(measured(LINEAR), published, {"runs": runs})
    ]
    share = "“The tree improves more than 75 % on both” "
    assert [each.removeprefix(share) for each in said if each.startswith(share)] == [
        "does not hold with the tiles of our kernels.",
        "holds with the paper's program.",
    ]


def test_contradictions_follow_from_the_printed_figures(published: dict[str, Records]) -> None:
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


def test_gpus_of_the_paper_that_were_measured_are_named(published: dict[str, Records]) -> None:
    data = study(("big",), "acoustic_tile", FOLDER, KERNEL)
    assert "none of theirs was measured here" in claims.differences(data, published)[-1]
    known = {"big": data.profiles["big"].model_copy(update={"device_name": "Tesla V100-SXM2"})}
    theirs = dataclasses.replace(data, profiles=known)
    assert "of theirs, V100 was measured here" in claims.differences(theirs, published)[-1]
