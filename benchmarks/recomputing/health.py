"""The verdicts of the health page, what it says of them on the front page, and contradictions."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from recomputing.comparing import Ledger, Table
from recomputing.entries import Entry
from recomputing.material import Material
from recomputing.pages import Shown, ShownPage
from recomputing.sweeps import Sweep

WHAT_RUNS = ("*.cu", "*.cuh", "*.h", "*.c", "spec.yaml", "host")
"""Parts of a workload's folder whose commits are counted; beside them, files that import Triton."""

PLOTTED = ("sm_clock_mhz", "temperature_c", "power_w", "control_ratio")
MOST_POWER = 1.4
"""Mean power over the card's thermal design power that a sensor may tell."""

SLACK = 1e-9


def compare(page: ShownPage, known: Sequence[Sweep], root: Path, ledger: Ledger) -> None:
    """Compare the table of verdicts, what to measure again, and the plots of conditions.

    Parameters
    ----------
    root
        The repository, whose commits are counted.
    """
    run = {row[0].text: row[1].text for each in page.tables_of("This run") for row in each.rows}
    of = {(one.workload, one.gpu): one for one in known}
    for each in page.tables_of("Sweeps and their verdicts"):
        table = ledger.table(page.path, each.caption)
        rows = {(row["sweep"].text, row["GPU"].text): row for row in each.records()}
        table.same("sweeps", sorted(rows), sorted(of))
        for key, row in rows.items():
            if key in of:
                _verdict(", ".join(key), row, of[key], run, root, table)
    doubtful = {key: one for key, one in of.items() if one.complaints}
    table = ledger.table(page.path, "What to measure again")
    rows = {
        (row["sweep"].text, row["GPU"].text): row
        for each in page.tables_of("What to measure again")
        for row in each.records()
    }
    table.same("sweeps", sorted(rows), sorted(doubtful))
    for key, row in rows.items():
        if key in doubtful:
            _repair(", ".join(key), row, doubtful[key], table)
    _plots(page, known, ledger.table(page.path, "plots of conditions"))


def compare_once(page: ShownPage, materials: Sequence[Material], ledger: Ledger) -> None:
    """Compare how many rows of one launch are fastest, baseline, or chosen by a method."""
    for each in page.tables_of("Figures that rest on one launch"):
        table = ledger.table(page.path, each.caption)
        shown = {(row["study"].text, row["GPU"].text): row for row in each.records()}
        counts = {
            (one.name, gpu): _once(one, gpu) for one in materials for gpu in dict.fromkeys(one.gpus)
        }
        for key, row in shown.items():
            for title, count in zip(ONCE, counts[key], strict=True):
                table.cell(f"{', '.join(key)}, {title}", row[f"{title} (rows)"], count)
        for key, every in counts.items():
            if any(every):
                table.same(f"{', '.join(key)}, listed", key in shown, True)


ONCE = ("fastest of a problem", "baseline", "chosen by a method")


def _once(one: Material, gpu: str) -> tuple[int, ...]:
    rows = one.judged
    rows = rows[(rows["gpu"] == gpu) & ~rows["blind"] & rows["time_ms"].notna()]
    least = rows.loc[rows.groupby(one.problem)["time_ms"].idxmin()]
    tried = one.table(f"evaluation/{one.name}.parquet")
    chosen = least.iloc[:0] if tried is None else tried[tried["gpu"] == gpu]
    key = [*one.problem, *one.spec.tunable_columns]
    parts = (least, rows[rows["is_baseline"]], chosen)
    return tuple(
        len(
            part.loc[(part["status"] == "slow") & (part["basis"] != "pairs"), key].drop_duplicates()
        )
        for part in parts
    )


def _verdict(
    place: str,
    row: Mapping[str, Shown],
    one: Sweep,
    run: Mapping[str, str],
    root: Path,
    table: Table,
) -> None:
    table.words(f"{place}, verdict", row["verdict"], one.verdict)
    table.same(f"{place}, why", row["verdict"].detail, "; ".join(one.complaints))
    median, largest = one.drifts
    clocks = one.timed["sm_clock_mhz"].dropna()
    first, last = one.days
    written = pd.to_datetime(run["report written"].removesuffix(" UTC"), utc=True, errors="coerce")
    ended = pd.to_datetime(last, utc=True, errors="coerce")
    age = None if pd.isna(written) or pd.isna(ended) else max(0, (written - ended).days)
    drift = "drift of reference: "
    figures: dict[str, Sequence[float | None]] = {
        "rows (count)": [len(one.rows)],
        "throttled (% of timed)": [100 * one.throttled],
        f"{drift}median (%)": [100 * median],
        f"{drift}largest (%)": [100 * largest],
        "stopped early (rows)": [one.count("slow")],
        "no time (rows)": [one.count("failed", "wrong", "timeout", "out_of_memory")],
        "SM clock (MHz)": [clocks.min(), clocks.max()] if len(clocks) else [None],
        "cards (count)": [len(one.named("card")) or None],
        "commits (count)": [len(one.named("commit")) or None],
        "age (days)": [age],
    }
    for name, values in figures.items():
        table.cell(f"{place}, {name}", row[name], *values)
    driver = f"driver {', '.join(one.drivers)}" if any(one.drivers) else ""
    table.same(f"{place}, driver", row["GPU"].detail, driver)
    measured = " to ".join(dict.fromkeys(filter(None, (first, last))))
    table.same(f"{place}, measured", row["age (days)"].detail, measured)
    wrong = [one.count("wrong")] if one.count("wrong") else []
    table.numbers(f"{place}, wrong", row["no time (rows)"].detail, *wrong)
    commit = run["report's code, commit"].partition("+")[0]
    if _git(root, "cat-file", "-e", commit) is not None:
        cell = row["kernels changed (commits since)"]
        table.cell(f"{place}, kernels changed", cell, _changes(one, commit, root))


def _changes(one: Sweep, commit: str, root: Path) -> int | None:
    """Most commits that changed the kernels, since one that measured; None where none is known."""
    counts = []
    for begun in one.named("commit"):
        folder = root / str(one.spec.folder)
        triton = [path.name for path in folder.glob("*.py") if "import triton" in path.read_text()]
        paths = [f":(glob){folder / name}" for name in (*WHAT_RUNS, *triton)]
        counted = _git(root, "rev-list", "--count", f"{begun}..{commit}", "--", *paths)
        if str(begun).isalnum() and counted:
            counts.append(int(counted))
    return max(counts, default=None)


def _git(root: Path, *arguments: str) -> str | None:
    command = ["git", *arguments]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else None


def _repair(place: str, row: Mapping[str, Shown], one: Sweep, table: Table) -> None:
    table.words(f"{place}, why", row["why"], "; ".join(one.complaints))
    more = f"; {len(one.worst) - 3} more" if len(one.worst) > 3 else ""
    problems = f"{'; '.join(one.worst[:3])}{more}; of {one.problems}"
    every = len(one.worst) == one.problems
    table.words(f"{place}, problems", row["problems"], f"all {one.problems}" if every else problems)
    *others, last = one.studies
    listed = f"{', '.join(others)} and {last}" if others else last
    table.words(f"{place}, answers", row["answers that rest on it"], listed)
    minutes = one.repair_s / 60
    table.cell(f"{place}, minutes", row["about (min of the GPU)"], minutes, digits=2)


def _plots(page: ShownPage, known: Sequence[Sweep], table: Table) -> None:
    """Each drawn point is a timed row that knows the condition, by its place in time."""
    for one in known:
        timed = one.timed.sort_values("measured_at", kind="stable")
        named = [name for name in PLOTTED if timed[name].notna().any()]
        for place, name in enumerate(named):
            drawn = (page.data or {}).get(f"plot-health-{one.gpu}-{one.workload}-{place}")
            if drawn is None:
                continue
            (trace,) = drawn["data"]
            values = timed[name].dropna().to_numpy()
            at = np.array(trace["x"])
            fits = bool(len(at)) and (at == np.round(at)).all() and at.max() < len(values)
            found = values[at.astype(int)].tolist() if fits else []
            table.rounded(f"{one.workload}, {one.gpu}, {name}", trace["y"], found, 4)
            ends = [min(trace["y"]), max(trace["y"])] if len(at) else []
            extremes = [float(values.min()), float(values.max())]
            table.rounded(f"{one.workload}, {one.gpu}, ends of {name}", ends, extremes, 4)


def compare_front(page: ShownPage, known: Sequence[Sweep], ledger: Ledger) -> None:
    """Compare the strip of doubtful sweeps, and the verdicts beside answers."""
    doubtful = sorted((one for one in known if one.complaints), key=lambda one: one.order)
    strips = [said for _, said in page.sentences if " doubtful. " in said.text]
    table = ledger.table(page.path, "sentences")
    table.same("strips of doubtful sweeps", len(strips), int(bool(doubtful)))
    for said in strips[: len(doubtful)]:
        named = [
            f"{one.workload} on {one.gpu}: {', '.join(one.complaints)}" for one in doubtful[:3]
        ]
        more = f"; and {len(doubtful) - 3} more" if len(doubtful) > 3 else ""
        are = "is" if len(doubtful) == 1 else "are"
        text = f"{len(doubtful)} of {len(known)} sweeps {are} doubtful. {'; '.join(named)}{more}."
        table.words("doubtful sweeps", said, f"{text} Health")
    shown = (page.data or {}).get("find", {}).get("verdicts", {})
    table = ledger.table(page.path, "verdicts beside answers")
    found: dict[str, dict[str, str]] = {}
    for one in known:
        words = f"{one.verdict}: {'; '.join(one.complaints)}" if one.complaints else one.verdict
        found.setdefault(one.workload, {})[one.gpu] = words
    for workload, verdicts in found.items() if shown else ():
        for gpu, words in verdicts.items():
            table.same(f"{workload}, {gpu}", shown.get(workload, {}).get(gpu), words)


def compare_contradictions(
    page: ShownPage,
    materials: Sequence[Material],
    entries: Mapping[str, Sequence[Entry]],
    power: Mapping[str, float],
    ledger: Ledger,
) -> None:
    """Compare the number of figures that contradict others.

    Parameters
    ----------
    power
        GPU to the thermal design power of its card, W.
    """
    found = sum(sum(_contradictions(one, entries[one.name], power)) for one in materials)
    table = ledger.table(page.path, "Contradictions")
    for section, said in page.sentences:
        if section == "invariants" and " another" in said.text:
            begin = said.text.partition(" ")[0].replace("No", "0")
            said.seen = True
            table.numbers("figures that contradict others", begin, found)


def _contradictions(
    one: Material, entries: Sequence[Entry], power: Mapping[str, float]
) -> Iterator[int]:
    """Rows that break each rule of the page."""
    for name in ("fraction", "best_of_5", "best_of_20", "improved_runs"):
        if name in one.evaluation:
            shares = one.evaluation[name]
            yield int(((shares < -SLACK) | (shares > 1 + SLACK)).sum())
    curves = one.table(f"evaluation/{one.name}.curves.parquet")
    if curves is not None:
        ordered = curves.sort_values(["split", "gpu", "model", "measured"], kind="stable")
        steps = ordered.groupby(["split", "gpu", "model"])["fraction"].diff()
        yield int((steps < -SLACK).sum())
    for gpu in one.gpus:
        pairs = one.table(f"pairs/{gpu}/{one.name}.parquet")
        if pairs is not None:
            yield from _of_pairs(one, pairs)
    for each in entries:
        if each.basis == "measured" and each.energy_j is not None and each.gpu in power:
            yield int(1e3 * each.energy_j / each.best_ms > MOST_POWER * power[each.gpu])
    known = set(one.judged[one.case].itertuples(index=False, name=None))
    for case, answer in one.answers.items():
        for ends in (("time_low_ms", "time_high_ms"), ("gain_low", "gain_high")):
            low, high = (answer[end] for end in ends)
            yield int(None not in (low, high) and low > high * (1 + SLACK))
        yield int(answer["basis"] == "measured" and case not in known)


def _of_pairs(one: Material, pairs: pd.DataFrame) -> Iterator[int]:
    low, value, high = (pairs[f"gain{end}"] for end in ("_low", "", "_high"))
    yield int(((low > value * (1 + SLACK)) | (value > high * (1 + SLACK))).sum())
    keys = one.spec.key_columns
    judged = one.timed.loc[one.timed["basis"] == "pairs", [*keys, "time_ms"]]
    both = pairs.loc[value.notna(), [*keys, "gain"]].merge(judged, on=keys)
    usual = both["time_ms"] * both["gain"]
    level = usual.groupby([both[name] for name in one.problem]).transform("median")
    yield int(((usual / level - 1).abs() > 1e-6).sum())
