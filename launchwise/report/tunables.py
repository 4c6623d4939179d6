"""What each tunable is worth: the time lost where it has one value and all others are free."""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd

from launchwise.report import wording
from launchwise.report.blocks import Block, Column, Fold, Section, Table, Text, table
from launchwise.report.numbers import fixed_losses, fractions, records
from launchwise.report.study import StudyData, remembered


@remembered
def fixed_values(study: StudyData) -> pd.DataFrame:
    """What it costs to give one tunable the same value at every problem.

    Of a variant's own tunables only that variant's rows count, but the loss is against the best of
    all.

    Returns
    -------
    DataFrame
        ``gpu``, ``tunable`` (``variant`` is one, too) and the columns of :func:`fixed_losses`.
        Tunables that were measured with one value only are left out; no columns where all are.
    """
    found = []
    for gpu, rows in fractions(study).groupby("gpu", sort=False):
        for name in study.spec.tunable_columns:
            using = [
                variant
                for variant, declared in study.spec.variants.items()
                if name == "variant" or name in declared.tunables
            ]
            own = rows[rows["variant"].isin(using)]
            if own[name].nunique() < 2:
                continue
            best = own.groupby([*study.problem_columns, name])["fraction"].max()
            found.append(fixed_losses(best).assign(gpu=gpu, tunable=name))
    return pd.concat(found, ignore_index=True) if found else pd.DataFrame()


def tunables(study: StudyData) -> Section | None:
    """The section; None where no tunable has two values."""
    found = fixed_values(study)
    if found.empty:
        return None
    blocks: list[Block] = [
        Text(
            "How much slower the best configuration becomes when a tunable has the same value at "
            "every problem and all others are chosen freely. A tunable whose best single value "
            "loses little need not be tuned. What only some variants have counts with those alone, "
            "against the best of all."
        )
    ]
    for gpu in study.gpus:
        own = found[found["gpu"] == gpu]
        if own.empty:
            continue
        parts = list(_of_gpu(own, gpu))
        blocks += parts if gpu in study.whole else [Fold(f"{gpu}: tunables", parts)]
    return Section(f"{study.name}-tunables", "What each tunable is worth", blocks)


def _of_gpu(found: pd.DataFrame, gpu: str) -> Iterator[Block]:
    columns = [
        Column("tunable", number=False),
        Column("value", group="best single value"),
        Column("problems", group="best single value"),
        Column("time lost", "% (mean)", group="best single value"),
        Column("time lost", "% (worst)", group="best single value"),
        Column("value", group="worst single value"),
        Column("problems", group="worst single value"),
        Column("time lost", "% (mean)", group="worst single value"),
    ]
    rows = []
    for tunable, values in found.groupby("tunable", sort=False):
        # A value that few problems can have is no choice for all of them.
        common = values[values["problems"] == values["problems"].max()]
        best = records(common.nsmallest(1, "loss_percent"))[0]
        worst = records(values.nlargest(1, "loss_percent"))[0]
        rows.append(
            [
                str(tunable),
                *_cells(best),
                wording.fixed(best["worst_loss_percent"], 1),
                *_cells(worst),
            ]
        )
    yield table(f"One value for every problem of {gpu}", columns, rows)
    yield Fold(f"{gpu}: every value of every tunable", [_every_value(found, gpu)])


def _cells(record: dict[str, object]) -> list[str]:
    loss = wording.fixed(record["loss_percent"], 1)
    return [f"{record['value']}", wording.count(record["problems"]), loss]


def _every_value(found: pd.DataFrame, gpu: str) -> Table:
    columns = [
        Column("tunable", number=False),
        Column("value"),
        Column("problems"),
        Column("time lost", "% (mean)"),
        Column("time lost", "% (worst)"),
    ]
    rows = [
        [record["tunable"], *_cells(record), wording.fixed(record["worst_loss_percent"], 1)]
        for record in records(found)
    ]
    return table(f"Values of tunables on {gpu}", columns, rows)
