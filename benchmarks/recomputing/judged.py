"""The judged times themselves, beside the sweeps and pairs that they are judged from.

And the pairs: what they call usual is what the product calls so.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from recomputing.comparing import Ledger, Table
from recomputing.material import TIMED, Material

DIGITS = 12


def compare(materials: Sequence[Material], ledger: Ledger) -> None:
    """Compare every judged time of a sweep's candidates."""
    ran: dict[tuple[str, str], pd.DataFrame] = {}
    for one in materials:
        table = ledger.table("times", f"results/times/*/{one.name}.parquet")
        for gpu in one.gpus:
            workload = one.settings.workload
            if (workload, gpu) not in ran:
                alike = [each for each in materials if each.settings.workload == workload]
                ran[workload, gpu] = _ran(alike, gpu)
            columns = [*one.spec.key_columns, "time_ms", "status", "relative_error"]
            path = one.results / f"sweeps/{gpu}/{workload}.parquet"
            sweep, known = pd.read_parquet(path, columns=columns), ran[workload, gpu]
            if len(known):
                sweep["time_ms"] = _undisturbed(sweep, known, one.spec.key_columns)
                known = _on_one_level(known, sweep, one)
            _times(one, gpu, sweep, known, table)
            pairs = one.table(f"pairs/{gpu}/{one.name}.parquet")
            if pairs is not None and one.answers:
                _usual(one, pairs, ledger.table("times", f"results/pairs/*/{one.name}.parquet"))


def _ran(alike: Sequence[Material], gpu: str) -> pd.DataFrame:
    """Pairs of all studies of a workload on a GPU, of each the least and most time in a round; what
    ran alone has none."""
    found = [pd.DataFrame()]
    for number, one in enumerate(alike):
        pairs = one.table(f"pairs/{gpu}/{one.name}.parquet")
        pairs = _with_later(pairs, one, gpu) if gpu in one.gpus else None
        if pairs is not None:
            pairs = pairs[pairs["gain"].notna() & (pairs["rounds"] > 0)]
            found.append(_rounds(pairs, one).assign(contest=number))
    return pd.concat(found, ignore_index=True)


def _on_one_level(ran: pd.DataFrame, sweep: pd.DataFrame, one: Material) -> pd.DataFrame:
    """Rows of pairs with judged times.

    Logarithms of gains in all contests of a problem are those of speeds plus a number of each
    contest, in the least squares; times have the level at which those with at least ten elevenths
    of the greatest speed have it in the sweep, in the median (``slow`` ones where all are). Times
    near ``at``, the logarithm of a contest's fastest, are multiplied by ``factor``.
    """
    rows = ran.drop(columns="sweep_ms").merge(
        sweep.loc[sweep["status"].isin(TIMED), [*one.spec.key_columns, "time_ms", "status"]],
        on=one.spec.key_columns,
        suffixes=("_there", ""),
    )
    rows["one"] = rows.groupby(one.spec.key_columns).ngroup()
    found = []
    for _, own in rows.groupby(one.problem):
        at = pd.factorize(own["contest"])[0]
        logs, size = np.log(own["gain"].to_numpy()), at.max() + 1
        matrix, right = np.zeros((size, size)), np.zeros(size)
        for alike in own.reset_index().groupby("one").indices.values():
            matrix[np.ix_(at[alike], at[alike])] += np.eye(len(alike)) - 1 / len(alike)
            right[at[alike]] += logs[alike] - logs[alike].mean()
        gains = np.exp(logs - (np.linalg.pinv(matrix) @ right)[at])
        speed = np.exp(pd.Series(np.log(gains)).groupby(own["one"].to_numpy()).transform("mean"))
        level = _level(own, speed.to_numpy())
        own = own.assign(speed=speed.to_numpy(), level=level, unit=level / (gains / own["gain"]))
        for contest in range(size):
            part = own[at == contest]
            its = gains[at == contest]
            first = part["time_ms"].to_numpy()[its.argmax()]
            found.append(part.assign(factor=level / _level(part, its), at=np.log(first)))
    return pd.concat(found).sort_values("contest", kind="stable")


def _level(rows: pd.DataFrame, speeds: np.ndarray) -> float:
    slow = (rows["status"] == "slow").to_numpy()
    counted = ~slow | slow.all()
    near = counted & (speeds >= speeds[counted].max() * 10 / 11)
    return float(np.median((rows["time_ms"].to_numpy() * speeds)[near]))


def _with_later(pairs: pd.DataFrame | None, one: Material, gpu: str) -> pd.DataFrame | None:
    """Pairs of the sweep's problems, and those of a recorded blind test of problems that were swept
    since and are in no other pairs."""
    path = one.results.parent / f"data/recorded/{gpu}/blind/{one.name}.pairs.parquet"
    if not path.is_file():
        return pairs
    tested, known = pd.read_parquet(path), one.swept[one.swept["gpu"] == gpu]
    swept = set(known[one.problem].itertuples(index=False, name=None))
    if pairs is not None:
        swept -= set(pairs[one.problem].itertuples(index=False, name=None))
    keys = tested[one.problem].itertuples(index=False, name=None)
    later = tested[[key in swept for key in keys]]
    return pairs if later.empty else pd.concat([pairs, later], ignore_index=True)


def _times(one: Material, gpu: str, sweep: pd.DataFrame, ran: pd.DataFrame, table: Table) -> None:
    """Times of one GPU. Configurations that ran in pairs have those of :func:`_on_one_level`,
    others the sweep's, times the factor of the contest whose fastest is nearest in the sweep."""
    own = one.swept[one.swept["gpu"] == gpu].reset_index(drop=True)
    row = sweep.iloc[own["sweep_row"].to_numpy()].reset_index(drop=True)
    table.same(f"{gpu}, statuses", list(own["status"]), list(row["status"]))
    table.rounded(f"{gpu}, times of the sweep", own["sweep_ms"], list(row["time_ms"]), DIGITS)
    judged = row["time_ms"].where(own["status"].isin(TIMED))
    basis = pd.Series("sweep", index=own.index).where(judged.notna(), "")
    if len(ran):
        anchors = ran.drop_duplicates([*one.problem, "contest"])[[*one.problem, "at", "factor"]]
        there = row[one.problem].assign(log=np.log(judged)).reset_index()
        there = there.merge(anchors, on=one.problem)
        there["away"] = (there["log"] - there["at"]).abs()
        nearest = there.sort_values("away", kind="stable").drop_duplicates("index")
        factor = nearest.set_index("index")["factor"].reindex(own.index).fillna(1.0)
        keys = one.spec.key_columns
        known = own[keys].merge(ran.drop_duplicates(keys), on=keys, how="left")
        paired_ms = (known["level"] / known["speed"]).where(judged.notna())
        basis = basis.mask(paired_ms.notna(), "pairs")
        judged = paired_ms.fillna(judged * factor)
        for name in ("rounds_low_ms", "rounds_high_ms"):
            limits = known["unit"] * known[name]
            table.rounded(f"{gpu}, {name}", own[name], list(limits), DIGITS)
    shown = own["time_ms"].where(own["status"].isin(TIMED))
    table.rounded(f"{gpu}, judged times", shown, list(judged), DIGITS)
    table.same(f"{gpu}, basis", list(own["basis"].where(shown.notna(), "")), list(basis))


def _undisturbed(sweep: pd.DataFrame, pairs: pd.DataFrame, keys: list[str]) -> pd.Series:
    """Times of a sweep; where the median errs by more than a tenth, or 1.5 interquartile ranges of
    logarithms beyond the sweep's upper quartile, that of the row by which the configuration came
    into its pairs."""
    known = pairs[[*keys, "sweep_ms"]].dropna().drop_duplicates(keys)
    earlier = sweep[keys].merge(known, on=keys, how="left")["sweep_ms"]
    logs = np.log(sweep["relative_error"].where(sweep["relative_error"] > 0))
    low, high = logs.quantile(0.25), logs.quantile(0.75)
    disturbed = logs > min(np.log(0.1), high + 1.5 * (high - low))
    return sweep["time_ms"].mask(disturbed & earlier.notna(), earlier)


def _rounds(pairs: pd.DataFrame, one: Material) -> pd.DataFrame:
    """Least and most time of each row over that of the problem's fastest in one of at least six
    rounds, in times of the usual choice."""
    found = []
    for _, rows in pairs.groupby(one.problem):
        listed = rows.to_dict("records")
        best = max(listed, key=lambda row: row["gain"])
        for row in listed:
            alike = len(row["times_ms"]) == len(best["times_ms"]) >= 6
            ratios = row["times_ms"] / best["times_ms"] / best["gain"] if alike else [float("nan")]
            found.append({**row, "rounds_low_ms": min(ratios), "rounds_high_ms": max(ratios)})
    columns = [*one.spec.key_columns, "gain", "sweep_ms", "rounds_low_ms", "rounds_high_ms"]
    return pd.DataFrame(found, columns=columns)


def _usual(one: Material, pairs: pd.DataFrame, table: Table) -> None:
    """Each row called usual in pairs is the product's usual choice, and has the gain 1."""
    usual = pairs["roles"].str.split("+").map(lambda roles: "usual" in roles).astype(bool)
    keys = pairs.loc[usual, one.spec.key_columns].itertuples(index=False, name=None)
    for key, gain in zip(keys, pairs.loc[usual, "gain"].tolist(), strict=True):
        case, configuration = key[: len(one.case)], key[len(one.case) :]
        place = " ".join(map(str, case))
        if case in one.answers:
            usual_now = one.whole_configuration(one.answers[case]["usual"])
            table.same(f"{place}, usual choice", list(configuration), list(usual_now))
        if pd.notna(gain):
            table.rounded(f"{place}, gain of the usual choice", [gain], [1.0], DIGITS)
