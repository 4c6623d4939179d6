"""Best time of every problem of a study on every GPU, with what the GPU comparison shows of it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import pandas as pd

from launchwise.gpus.machine import Machine, full_tensor_gflops
from recomputing.material import Material, between_visits, records

LIMITS = ("gain_low", "gain_high")
LEAST_PUBLISHED, SHARE = 10, 0.9
"""Fewest published times of an interval of predictions, and the share of them that it holds."""


@dataclass(frozen=True)
class Entry:
    """A problem on a GPU; None where something is unknown. Times are in ms, energies in J."""

    gpu: str
    basis: str
    problem: tuple[Any, ...]
    best_ms: float
    error: float | None
    baseline_ms: float | None
    least_ms: float
    gain: float | None = None
    gain_low: float | None = None
    gain_high: float | None = None
    energy_j: float | None = None
    baseline_energy_j: float | None = None


NUMBERS = tuple(each.name for each in fields(Entry)[3:])  # in the order of the page's data


def entries(one: Material) -> list[Entry]:
    """Measured problems, then predicted ones."""
    return [*_measured(one), *_predicted(one)]


def _measured(one: Material) -> list[Entry]:
    """The fastest candidate of each problem. The gain is that of the sweep's fastest in pairs that
    the usual choice and this one were in.
    Energies are those of the rows of the fastest and of the baseline."""
    swept = pd.concat([_conditions(one, gpu) for gpu in one.gpus], ignore_index=True)
    best = one.best.merge(swept, on=["gpu", "sweep_row"], how="left")
    start = one.timed[one.timed["is_baseline"]].merge(swept, on=["gpu", "sweep_row"], how="left")
    of_start = {tuple(row[name] for name in one.case): row for row in records(start)}
    gains = _gains(one)
    found = []
    for row in records(best):
        case = tuple(row[name] for name in one.case)
        own, gain = of_start.get(case, {}), gains.get(case, {})
        found.append(
            Entry(
                gpu=row["gpu"],
                basis="measured",
                problem=case[1:],
                best_ms=row["time_ms"],
                error=between_visits(row),
                baseline_ms=_known(own.get("time_ms")),
                least_ms=least_ms(one, row),
                **{name: _known(gain.get(name)) for name in ("gain", "gain_low", "gain_high")},
                energy_j=_known(row["swept_j"]),
                baseline_energy_j=_known(own.get("swept_j")),
            )
        )
    return found


def _conditions(one: Material, gpu: str) -> pd.DataFrame:
    """Energy of each row of a sweep, with its number."""
    path = one.results / f"sweeps/{gpu}/{one.settings.workload}.parquet"
    rows = pd.read_parquet(path, columns=["energy_j"])
    return pd.DataFrame({"gpu": gpu, "sweep_row": rows.index, "swept_j": rows["energy_j"]})


def _gains(one: Material) -> dict[tuple[Any, ...], dict[str, Any]]:
    found = {}
    for gpu in one.gpus:
        pairs = one.table(f"pairs/{gpu}/{one.name}.parquet")
        if pairs is None:
            continue
        known = with_limits(one, pairs)
        known = known[known["gain"].notna()]
        roles = known["roles"].str.split("+")
        usual = known.loc[roles.map(lambda each: "usual" in each), one.case]
        named = known.merge(one.best[one.spec.key_columns])[one.case]
        both = {*usual.itertuples(index=False, name=None)} & {
            *named.itertuples(index=False, name=None)
        }
        best = known[roles.map(lambda each: "best" in each) & (known["rounds"] > 0)]
        for row in records(best):
            case = tuple(row[name] for name in one.case)
            if case in both:
                found[case] = row
    return found


def with_limits(one: Material, pairs: pd.DataFrame) -> pd.DataFrame:
    """Pairs with 95 % intervals of gains that hold another visit: at least 1.96 errors of judged
    ratios; of the usual choice over itself there are none."""
    errors = one.judged.loc[~one.judged["blind"], [*one.spec.key_columns, "ratio_error"]]
    both = pairs[one.spec.key_columns].merge(errors, on=one.spec.key_columns, how="left")
    factors = np.exp(1.96 * both["ratio_error"].to_numpy()) ** (pairs["gain"] != 1)
    low, high = LIMITS
    wide = {low: pairs["gain"] / factors, high: pairs["gain"] * factors}
    return pairs.assign(
        **{low: np.fmin(pairs[low], wide[low]), high: np.fmax(pairs[high], wide[high])}
    )


def least_ms(one: Material, row: dict[str, Any]) -> float:
    """Time that no run of a problem can beat, ms. The longest of: all its bytes through L2 (where a
    launch of the row's variant does several runs at once, its share of the launch's); those
    that exceed L2 at the memory's rate; its FLOP at the highest rate of the problem's type and of
    the types that the kernels' costs name, which tensor cores have at the highest clock where that
    is known. On top a launch, of a graph or of the host, whichever is shorter."""
    profile, work = one.profiles[row["gpu"]], one.spec.work
    machine = Machine.of(profile)
    problem = {name: row[name] for name in one.problem}
    moved, flop, precision = (
        one.spec.formulas.value(text, problem) for text in (work.bytes, work.flop, work.precision)
    )
    for kernel in one.spec.cost.kernels.values() if one.spec.cost else ():
        if kernel.least_bytes is not None and row.get("variant") in (kernel.variants or ()):
            share, both = (
                one.spec.formulas.value(text, problem)
                for text in (kernel.launches, kernel.least_bytes)
            )
            moved = share * both
    phases = one.spec.cost.phases().values() if one.spec.cost else ()
    uses = {use for phase in phases for use in getattr(phase, "uses", ())}
    types = {use.removesuffix("_flop") for use in uses if use.endswith("_flop")} | {precision}
    rates = [max(getattr(machine, name), full_tensor_gflops(profile, name)) for name in types]
    longest = max(
        moved / machine.l2_gbs,
        max(moved - profile.l2_bytes, 0) / profile.memory_bandwidth_gbs,
        flop / max(rates),
    )
    return float(longest / 1e6 + min(machine.launch_us, machine.host_launch_us) / 1e3)


def _predicted(one: Material) -> list[Entry]:
    """The lookup's answers on datasheet-only GPUs that have a time."""
    found = []
    for row in one.answers.values():
        time = row["time_ms"]
        if row["gpu"] not in one.described or time is None:
            continue
        known = {"gpu": row["gpu"], "variant": row["configuration"]["variant"], **row["problem"]}
        gain = row["improvement"]
        found.append(
            Entry(
                gpu=row["gpu"],
                basis="predicted",
                problem=tuple(row["problem"][name] for name in one.problem),
                best_ms=time,
                error=None,
                baseline_ms=None if gain is None else gain * time,
                least_ms=least_ms(one, known),
            )
        )
    return found


def _known(value: Any) -> float | None:
    return None if value is None or not math.isfinite(value) else float(value)


def spread_of(materials: Sequence[Material]) -> tuple[float, int] | None:
    """Factor within which 90 % of published whole runs lie of what trees predict; how many. The
    least of their own factors that as large a share does not exceed, its hundredths rounded up;
    None of fewer than ten."""
    found = [
        table
        for one in materials
        if (table := one.table(f"predictions/{one.name}.published.parquet")) is not None
        if one.described and len(table)
    ]
    if not found:
        return None
    rows = pd.concat(found, ignore_index=True)
    rows = rows[(rows["predictor"] == "learnt") & (rows["phases"] == "") & (rows["runs"] > 0)]
    if len(rows) < LEAST_PUBLISHED:
        return None
    ratio = (rows["predicted_ms"] / rows["published_ms"]).to_numpy(dtype=float)
    factors = sorted(np.maximum(ratio, 1 / ratio))
    return math.ceil(100 * factors[math.ceil(SHARE * (len(factors) - 1))]) / 100, len(rows)
