"""Figures computed from recorded blind tests and recorded pairs."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from contextlib import chdir
from functools import cache
from typing import Any

import numpy as np
import pandas as pd

from docs.generator.recorded_data import KERNELS, RECORDED, RESULTS, ROOT
from launchwise.base.robust import EQUAL
from launchwise.base.storage import read_json
from launchwise.base.typed import read_yaml
from launchwise.cli.words import read_experiment
from launchwise.experiment.experiment import Experiment
from launchwise.experiment.method import Confirmation
from launchwise.exporting.building import apart as visits_apart
from launchwise.gpus.profile import read_profile
from launchwise.learning.blind import check_measured_after, read_frozen, score, summarise
from launchwise.learning.features import Domain
from launchwise.learning.merit import geometric_mean
from launchwise.report.answer.in_pairs import relative
from launchwise.tables.files import read_table
from launchwise.tables.measurements import (
    fastest_of_sweep,
    measurement_schema,
    pairs_schema,
    peers_schema,
    with_role,
)
from launchwise.tables.rows import row_numbers
from launchwise.tables.times import PAIRS, with_judged_limits
from launchwise.workflow.bringing import judged_of_studies
from launchwise.workloads.spec import Spec, load_spec
from launchwise.workloads.usual import usual_configuration

NARROW = 0.01  # Half the width of a gain's interval, relative to the gain, at which pairs end
EXPERTS = "expert_product_tile"  # A study whose figures stand apart


@cache
def _workloads() -> dict[str, str]:
    paths = sorted(KERNELS.glob("*/studies/*/study.yaml"))
    return {path.parent.name: path.parents[2].name for path in paths}


def _tested(gpu: str) -> list[str]:
    """Studies with a recorded blind test on a GPU."""
    paths = sorted((RECORDED / gpu / "blind").glob("*.sweep.parquet"))
    return [name for path in paths if (name := path.name.split(".")[0]) != EXPERTS]


@cache
def blind() -> dict[str, Any]:
    """Recorded blind tests of the H200, scored anew: study to its figures, and ``all``."""
    return _blind("h200", _tested("h200"))


@cache
def blind_new_gpu() -> dict[str, Any]:
    """Recorded blind tests of the H100, when no study had a row of it; as :func:`blind`. ``range``
    holds least and most over the studies of what is a fraction of the best."""
    found = _blind("h100", _tested("h100"))
    names = ("fraction_geometric_mean", "best_of_5", "best_of_20")
    of_studies = [each for name, each in found.items() if name != "all"]
    spans = {name: [each[name] for each in of_studies] for name in names}
    return {
        **found,
        "studies": len(of_studies),
        "range": {name: {"least": min(each), "most": max(each)} for name, each in spans.items()},
    }


@cache
def blind_experts() -> dict[str, Any]:
    """Recorded blind tests of products of experts, by GPU; answers learnt from rows of the GPU."""
    return {gpu: _blind(gpu, [EXPERTS])[EXPERTS] for gpu in ("h100", "h200")}


@cache
def experts_beside_pytorch() -> dict[str, Any]:
    """Recorded pairs of products of experts beside PyTorch, eager: its time over the fastest. By
    GPU ``dense`` (one expert), ``grouped`` (several, bfloat16) and ``float16`` (several experts,
    which PyTorch multiplies one after the other): problems, how many of them ended its process,
    least and median of the others."""
    spec = load_spec(KERNELS / "expert_product")
    found: dict[str, Any] = {}
    for gpu in ("h100", "h200"):
        path = RECORDED / gpu / f"{EXPERTS}.peers.parquet"
        peers = read_table(path, peers_schema(spec))
        dense, half = peers["experts"] == 1, peers["dtype"] == "float16"
        parts = {"dense": dense, "grouped": ~dense & ~half, "float16": ~dense & half}
        found[gpu] = {
            name: {
                "problems": int(own.sum()),
                "ended": int((peers["status"][own] == "failed").sum()),
                "least": float(peers["speedup"][own].min()),
                "median": float(peers["speedup"][own].median()),
            }
            for name, own in parts.items()
        }
    return found


@cache
def autotuned_of_triton() -> dict[str, float]:
    """Fraction of the fastest Triton configuration that ``triton.autotune`` chose, by its list.
    Geometric mean over problems of the blind test, by rows of its sweep."""
    known = read_json(RESULTS / "autotuned_blind.json")
    spec = load_spec(KERNELS / "expert_product")
    path = RECORDED / known["gpu"] / "blind" / f"{known['study']}.sweep.parquet"
    rows = read_table(path, measurement_schema(spec))
    rows = rows[rows["variant"] == "triton"]
    best = rows.groupby(spec.problem_columns, observed=True)["time_ms"].min()
    keys = [*spec.problem_columns, *known["choices"]["all"][0]["configuration"]]
    times = rows.set_index(keys)["time_ms"]
    found: dict[str, float] = {}
    for mode, choices in known["choices"].items():
        asked = pd.DataFrame({**each["problem"], **each["configuration"]} for each in choices)
        chosen = times.reindex(pd.MultiIndex.from_frame(asked[keys])).to_numpy()
        fastest = best.reindex(pd.MultiIndex.from_frame(asked[spec.problem_columns])).to_numpy()
        found[mode] = geometric_mean(fastest / chosen)
    return found


def _blind(gpu: str, studies: Sequence[str]) -> dict[str, Any]:
    """Recorded blind tests of a GPU, scored anew."""
    folder = RECORDED / gpu / "blind"
    profile = read_profile(RECORDED / gpu / "profile.json", gpu)
    found: dict[str, Any] = {}
    for name in studies:
        kernel = KERNELS / _workloads()[name]
        spec, study = load_spec(kernel), read_yaml(kernel / "studies" / name / "study.yaml")
        keys = ("candidates", "constraints", "usual")
        domain = Domain(spec, {gpu: profile}, **{key: study[key] for key in keys if key in study})
        frozen = read_frozen(folder / f"{name}.frozen.json")
        sweep = read_table(folder / f"{name}.sweep.parquet", measurement_schema(spec))
        pairs = read_table(folder / f"{name}.pairs.parquet", pairs_schema(spec))
        check_measured_after(frozen, {"sweep": sweep, "pairs": pairs})
        found[name] = {"gpu": gpu, **summarise(frozen, score(frozen, domain, sweep, pairs))}
    every = found.values()
    counts = ("problems", "slower", "harmed", "kept_usual", "missed", "worthwhile")
    return {**found, "all": {key: sum(each[key] for each in every) for key in counts}}


@cache
def _pairs(gpu: str) -> dict[str, tuple[Spec, pd.DataFrame]]:
    """Study to its spec and its recorded pairs on a GPU, where it has any."""
    found = {}
    for study, workload in _workloads().items():
        path = RECORDED / gpu / f"{study}.pairs.parquet"
        if path.is_file():
            spec = load_spec(KERNELS / workload)
            found[study] = spec, read_table(path, pairs_schema(spec))
    return found


@cache
def _judged(gpu: str, workload: str) -> dict[str, pd.DataFrame]:
    """Study to its judged times, by the recorded pairs of all studies of a workload."""
    pairs = {name: own for name, (spec, own) in _pairs(gpu).items() if spec.workload == workload}
    spec, experiment = load_spec(KERNELS / workload), _experiment()
    sweep = read_table(RECORDED / gpu / f"{workload}.parquet", measurement_schema(spec))
    return judged_of_studies(
        {name: experiment.with_drawn(name) for name in pairs}, sweep, pairs, {}, spec
    )


@cache
def _experiment() -> Experiment:
    with chdir(ROOT):
        return read_experiment([ROOT / "config.yaml"], ROOT)


def _times(gpu: str, study: str) -> pd.DataFrame:
    """Judged times of a study with recorded pairs."""
    return _judged(gpu, _workloads()[study])[study]


@cache
def judged() -> dict[str, Any]:
    """How far times that pairs judged differ from the sweep's, %: recorded pairs of both cards.
    ``rows`` that pairs judge, median and largest difference, and share of those above 1 %."""
    found: dict[tuple[Any, ...], float] = {}
    for gpu in ("h100", "h200"):
        for study, (spec, _) in _pairs(gpu).items():
            own = _times(gpu, study)
            own = own[own["basis"] == PAIRS].set_index("sweep_row")
            # What several studies share is one row.
            found |= {
                (gpu, spec.workload, row): ms
                for row, ms in (own["time_ms"] / own["sweep_ms"]).items()
            }
    away = 100 * (pd.Series([*found.values()]) - 1).abs()
    return {
        "rows": len(away),
        "median_percent": float(away.median()),
        "largest_percent": float(away.max()),
        "above_1_percent": 100 * float((away > 1).mean()),
    }


@cache
def revisited() -> dict[str, Any]:
    """Gains of the H200 that two visits found, on two cards: how far they lie apart, and how many
    of the earlier visit 95 % intervals hold: those of the later one's own rounds, and those of
    judged times, which know visits of other problems. Of the gains above the usual choice, how many
    a recheck would call ``lost`` had the earlier visit come later, by either interval."""
    apart, rounds, held, turned, lost = [], [], [], 0, np.zeros(3, dtype=int)
    for study, (spec, pairs) in _pairs("h200").items():
        if pairs["earlier_gain"].isna().all():
            continue
        judged = with_judged_limits(pairs, _times("h200", study), spec)
        both = pairs.assign(
            **{f"{name}_judged": judged[name] for name in ("gain_low", "gain_high")}
        )
        both = both[both["earlier_gain"].notna() & (both["gain"] != 1)]
        earlier = both["earlier_gain"]
        apart += np.abs(np.log(both["gain"] / earlier)).tolist()
        rounds += earlier.between(both["gain_low"], both["gain_high"]).tolist()
        held += earlier.between(both["gain_low_judged"], both["gain_high_judged"]).tolist()
        better, worse = 1 + EQUAL, 1 - EQUAL
        turned += ((both["gain"] > better) & (earlier < worse)).sum()
        turned += ((both["gain"] < worse) & (earlier > better)).sum()
        high = earlier * both["gain_high"] / both["gain"]
        gains = (both["gain"] > 1) & (high >= 1)
        lows = (both["gain_low"], both["gain_low_judged"])
        below = [(high < low * (1 - Confirmation().precision)) & gains for low in lows]
        lost += [each.sum() for each in (gains, *below)]
    return {
        "rows": len(apart),
        "median_percent": 100 * statistics.median(apart),
        "p95_percent": 100 * float(np.quantile(apart, 0.95)),
        "held_by_rounds": statistics.mean(rounds),
        "held": statistics.mean(held),
        "turned": int(turned),
        **dict(zip(("gains", "lost_by_rounds", "lost"), map(int, lost), strict=True)),
    }


LOSS = 0.02  # Of time, at most, of which the documents say what it saves


def saved_by_energy(
    rows: pd.DataFrame, columns: Sequence[str], least: float = 1.0
) -> tuple[float, int, int]:
    """Of choices by energy that lose at most :data:`LOSS` of time: the share of the fastest's
    energy that they save (geometric mean; NaN without any), how many are not the fastest, of how
    many problems. These are the ones where another than the fastest may be chosen.

    ``rows``: see :func:`relative`. ``least``: no energy that is not below it counts.
    """
    allowed = rows[rows["time"] <= 1 + LOSS]
    known = allowed.groupby(row_numbers(allowed, columns))["energy"]
    energy = known.min()[known.size() > 1]
    energy = energy.where(energy < least, 1.0)
    saved = 1 - geometric_mean(energy.to_numpy()) if len(energy) else np.nan
    return saved, int((energy < 1).sum()), len(energy)


@cache
def back_to_back() -> dict[str, Any]:
    """Launches back to back of each study's fastest on an H200: ``problems``, ``time`` over that
    alone (5 %, median and 95 % of problems), ``power_w`` and ``energy_j`` (medians). What the
    choice by energy saves at a small loss of time: ``percent``, at ``changed`` of ``among``
    problems where another than the fastest has an energy, None without any, and percent of what is
    ``surely`` less, where enough energies have two visits, ``apart`` by so many percent."""
    found = {}
    for study, (spec, pairs) in _pairs("h200").items():
        if pairs["energy_j"].isna().all():
            continue
        visits = visits_apart(_times("h200", study)).get("energy_j")
        rows = relative(pairs, pairs, spec.problem_columns)
        best = rows[with_role(rows, "best")]
        ratio = best["sustained_ms"] / best["time_ms"]
        saved, changed, among = saved_by_energy(rows, spec.problem_columns)
        found[study] = {
            "problems": len(best),
            "time": {
                name: ratio.quantile(at)
                for name, at in (("low", 0.05), ("median", 0.5), ("high", 0.95))
            },
            "power_w": (1e3 * best["energy_j"] / best["sustained_ms"]).median(),
            "energy_j": best["energy_j"].median(),
            **{"percent": 100 * saved if among else None, "changed": changed, "among": among},
            **{"apart": None, "surely": None},
        }
        if visits is not None and among:
            surely = saved_by_energy(rows, spec.problem_columns, math.exp(-visits))
            found[study] |= {"apart": 100 * math.expm1(visits), "surely": 100 * surely[0]}
    return found


@cache
def paired() -> dict[str, Any]:
    """Recorded pairs of the H200; see :func:`_paired`."""
    return _paired("h200")


@cache
def paired_h100() -> dict[str, Any]:
    """Recorded pairs of the H100; see :func:`_paired`."""
    return _paired("h100")


def _paired(gpu: str) -> dict[str, Any]:
    """Recorded pairs of a GPU: the fastest of a sweep, its gain by the sweep over that in pairs.
    Over the baseline, by study: ``percent_median``, less 100; ``problems``. ``narrow``: of
    ``contests`` problems, whose fastest is not the usual choice that ran beside it, the share where
    half the interval of its gain over that is at most 1 % wide, as pairs end."""
    found: dict[str, Any] = {}
    for path in sorted((RECORDED / gpu).glob("*.pairs.parquet")):
        name = path.name.partition(".")[0]
        spec = load_spec(KERNELS / _workloads()[name])
        pairs = read_table(path, pairs_schema(spec))
        roles = pairs["roles"].str.split("+")
        baseline = pairs[roles.map(lambda each: "baseline" in each)]
        best = pairs[roles.map(lambda each: "best" in each and "baseline" not in each)]
        both = best.merge(
            baseline[[*spec.problem_columns, "sweep_ms"]],
            on=spec.problem_columns,
            suffixes=("", "_baseline"),
        )
        fastest = fastest_of_sweep(pairs)
        fastest = fastest[~with_role(fastest, "usual")]
        fastest = fastest.merge(pairs.loc[with_role(pairs, "usual"), spec.problem_columns])
        known = (fastest["gain_high"] - fastest["gain_low"]) / (2 * fastest["gain"]) <= NARROW
        ratio = (both["sweep_ms_baseline"] / both["sweep_ms"] / both["improvement"]).dropna()
        found[name] = {
            "problems": len(ratio),
            "percent_median": 100 * (ratio.median() - 1),
            "contests": len(known),
            "narrow": known.mean(),
        }
    return found


@cache
def device_choices() -> dict[str, Any]:
    """Speed of what is usual for a tridiagonal system on the device, over that of the fastest. By
    GPU, from recorded pairs: ``mean`` (geometric), ``least``; ``problems``; ``largest``: by type,
    how much faster than what is usual the fastest is at 10^8 rows, %."""
    spec = load_spec(KERNELS / "tridiagonal")
    columns = spec.tunable_columns
    found = {}
    for gpu in ("h200", "h100"):
        path = RECORDED / gpu / "tridiagonal_device.pairs.parquet"
        fractions, largest = [], {}
        for values, rows in read_table(path, pairs_schema(spec)).groupby(spec.problem_columns):
            problem = dict(zip(spec.problem_columns, values, strict=True))
            usual = usual_configuration(spec.usual, problem, spec)
            is_usual = (rows[columns] == pd.Series(usual)[columns]).all(axis=1)
            (own,) = rows.loc[is_usual, "gain"]
            fractions.append(own / rows["gain"].max())
            if problem["n"] == 10**8:
                largest[problem["dtype"]] = 100 * (1 / fractions[-1] - 1)
        found[gpu] = {
            "mean": statistics.geometric_mean(fractions),
            "least": min(fractions),
            "problems": len(fractions),
            "largest": largest,
        }
    return found


@cache
def beside_pytorch() -> dict[str, Any]:
    """Recorded pairs with PyTorch, sentiment of reviews: GPU to library to geometric means.

    ``fastest`` and ``usual``: how many times as fast as the library our fastest configuration and
    the usual choice are.
    """
    found: dict[str, Any] = {}
    for gpu in ("h100", "h200"):
        rows = pd.read_parquet(RECORDED / gpu / "sentiment_inference.peers.parquet")
        found[gpu] = {
            str(peer): {
                "fastest": statistics.geometric_mean(own["speedup"]),
                "usual": statistics.geometric_mean(own["usual_speedup"]),
            }
            for peer, own in rows.groupby("peer")
        }
    return found
