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
    for one in materials:
        table = ledger.table("times", f"results/times/*/{one.name}.parquet")
        for gpu in one.gpus:
            path = f"sweeps/{gpu}/{one.settings.workload}.parquet"
            columns = [*one.spec.key_columns, "time_ms", "status", "relative_error"]
            sweep = pd.read_parquet(one.results / path, columns=columns)
            pairs = one.table(f"pairs/{gpu}/{one.name}.parquet")
            ran = _with_later(pairs, one, gpu)
            if ran is not None:
                sweep["time_ms"] = _undisturbed(sweep, ran, one.spec.key_columns)
            _times(one, gpu, sweep, ran, table)
            if pairs is not None and one.answers:
                _usual(one, pairs, ledger.table("times", f"results/pairs/*/{one.name}.parquet"))


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


def _times(
    one: Material, gpu: str, sweep: pd.DataFrame, pairs: pd.DataFrame | None, table: Table
) -> None:
    """Times of one GPU. Of each problem the configurations that ran in pairs have their paired
    ratios to the usual choice, at the median of (time in the sweep x gain) over those with at least
    ten elevenths of the largest gain; others have the sweep's time."""
    own = one.swept[one.swept["gpu"] == gpu].reset_index(drop=True)
    row = sweep.iloc[own["sweep_row"].to_numpy()].reset_index(drop=True)
    table.same(f"{gpu}, statuses", list(own["status"]), list(row["status"]))
    table.rounded(f"{gpu}, times of the sweep", own["sweep_ms"], list(row["time_ms"]), DIGITS)
    judged = row["time_ms"].where(own["status"].isin(TIMED))
    basis = pd.Series("sweep", index=own.index).where(judged.notna(), "")
    if pairs is not None:
        keys = one.spec.key_columns
        # What ran alone has no rounds.
        compared = pairs[pairs["gain"].notna() & (pairs["rounds"] > 0)]
        known = compared[[*keys, "gain"]]
        gain = own[keys].merge(known, on=keys, how="left")["gain"].where(judged.notna())
        # Of all that ran, whether or not the study takes it for a candidate.
        ran = known.merge(sweep[sweep["status"].isin(TIMED)], on=keys)
        ran = ran[ran["gain"] >= ran.groupby(one.problem)["gain"].transform("max") * 10 / 11]
        levels = (ran["time_ms"] * ran["gain"]).groupby([ran[name] for name in one.problem])
        level = own[one.problem].merge(
            levels.median().rename("level").reset_index(), on=one.problem, how="left"
        )["level"]
        judged = (level / gain).where(gain.notna(), judged)
        basis = basis.mask(gain.notna(), "pairs")
        limits = own[keys].merge(_rounds(compared, one), on=keys, how="left")
        for name in ("rounds_low_ms", "rounds_high_ms"):
            table.rounded(f"{gpu}, {name}", own[name], list(level * limits[name]), DIGITS)
    shown = own["time_ms"].where(own["status"].isin(TIMED))
    table.rounded(f"{gpu}, judged times", shown, list(judged), DIGITS)
    table.same(f"{gpu}, basis", list(own["basis"].where(shown.notna(), "")), list(basis))


def _undisturbed(sweep: pd.DataFrame, pairs: pd.DataFrame, keys: list[str]) -> pd.Series:
    """Times of a sweep; where the median errs by more than a tenth, or 1.5 interquartile ranges of
    logarithms beyond the sweep's upper quartile, that of the row by which the configuration came
    into its pairs."""
    earlier = sweep[keys].merge(pairs[[*keys, "sweep_ms"]], on=keys, how="left")["sweep_ms"]
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
    return pd.DataFrame(found)[[*one.spec.key_columns, "rounds_low_ms", "rounds_high_ms"]]


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
