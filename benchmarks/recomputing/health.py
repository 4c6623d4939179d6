"""The verdicts of the health page, what it says of them on the front page, and contradictions."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

import pandas as pd

from recomputing.comparing import Cell, Cells, Ledger, Wanted
from recomputing.entries import LIMITS, with_limits
from recomputing.material import Material, records
from recomputing.pages import Record, ShownPage, read_script
from recomputing.sweeps import HUNG, Sweep

WHAT_RUNS = ("*.cu", "*.cuh", "*.h", "*.c", "spec.yaml", "host")
"""Parts of a workload's folder whose commits are counted; beside them, files that import Triton."""

SLACK = 1e-9
PAUSE_S = 60.0  # Rows further apart are of two visits


def compare(
    page: ShownPage,
    run: Mapping[str, str],
    materials: Sequence[Material],
    known: Sequence[Sweep],
    root: Path,
    ledger: Ledger,
) -> None:
    """Compare the tables of verdicts, and what to measure again. ``run``: facts of the run that
    wrote the report. ``root``: the repository, whose commits are counted."""
    verdicts = {
        (one.workload, one.gpu): partial(_verdict, one, materials, run, root) for one in known
    }
    whole = {
        (one.workload, one.gpu): verdicts[one.workload, one.gpu]
        for one in known
        if one.verdict != "unknown" and "." not in one.gpu
    }
    caption = "Sweeps and their verdicts"
    for table in page.tables_of(caption):
        wanted = whole if table.caption == caption and whole else verdicts
        ledger.beside(page, [table], ["sweep", "GPU"], wanted)
    doubtful = {(one.workload, one.gpu): _repair(one) for one in known if one.complaints}
    name = "What to measure again"
    ledger.beside(page, name, ["sweep", "GPU"], doubtful, name)


def _verdict(
    one: Sweep, materials: Sequence[Material], run: Mapping[str, str], root: Path, row: Record
) -> Cells:
    """Cells of a sweep that a row has; ``run`` are the facts of the run that wrote the report."""
    median, largest = one.drifts
    clocks = one.timed["sm_clock_mhz"].dropna()
    first, last = one.days
    written = pd.to_datetime(run["written_at"], utc=True, errors="coerce")
    ended = pd.to_datetime(last, utc=True, errors="coerce")
    age = None if pd.isna(written) or pd.isna(ended) else max(0, (written - ended).days)
    measured = " to ".join(dict.fromkeys(filter(None, (first, last))))
    driver = f"driver {', '.join(one.drivers)}" if any(one.drivers) else ""
    wrong = [one.count("wrong")] if one.count("wrong") else []
    cells: dict[str, Wanted | Cell] = {
        "GPU": Cell(one.gpu, driver),
        "verdict": Cell(one.verdict, "; ".join(one.complaints)),
        "rows (count)": len(one.rows),
        "answers in doubt": _resting(one, materials) if one.complaints else None,
        "throttled (% of timed)": 100 * one.throttled,
        "drift of reference: median (%)": 100 * median,
        "drift of reference: largest (%)": 100 * largest,
        "stopped early (rows)": one.count("slow"),
        "no time (rows)": Cell(one.count("failed", "wrong", *HUNG), wrong),
        "SM clock (MHz)": [clocks.min(), clocks.max()] if len(clocks) else None,
        "cards (count)": len(one.named("card")) or None,
        "commits (count)": len(one.named("commit")) or None,
        "age (days)": Cell(age, measured),
    }
    commit = run["commit"].partition("+")[0]
    if _git(root, "cat-file", "-e", commit) is not None:
        cells["kernels changed (commits since)"] = _changes(one, commit, root)
    return {name: cell for name, cell in cells.items() if name in row}


def _resting(one: Sweep, materials: Sequence[Material]) -> list[int]:
    """Measured answers at problems in doubt, but for those that ran in turn with the usual choice,
    and all measured ones."""
    own = [
        (one.problem_words(answer["problem"]) in one.worst)
        and (not answer["paired"] or answer["configuration"] == answer["usual"])
        for each in materials
        if each.name in one.studies
        for answer in each.answers.values()
        if answer["gpu"] == one.gpu and answer["basis"] == "measured"
    ]
    return [sum(own), len(own)]


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


def _repair(one: Sweep) -> Cells:
    named = [one.problem_words(each) in one.worst for each in records(one.rows)]
    of_card = one.rows[named].groupby("card")["measured_at"]
    apart = pd.concat(
        pd.Series(pd.to_datetime(own.unique(), utc=True)).sort_values().diff().dt.total_seconds()
        for _, own in of_card
    )
    more = f"; {len(one.worst) - 3} more" if len(one.worst) > 3 else ""
    problems = f"{'; '.join(one.worst[:3])}{more}; of {one.problems}"
    *others, last = one.studies
    return {
        "why": "; ".join(one.complaints),
        "GPU time that they took (minutes)": apart[apart < PAUSE_S].sum() / 60,
        "problems": f"all {one.problems}" if len(one.worst) == one.problems else problems,
        "answers that rest on it": f"{', '.join(others)} and {last}" if others else last,
    }


def compare_doubts(
    folder: Path, materials: Sequence[Material], known: Sequence[Sweep], ledger: Ledger
) -> None:
    """Compare what is in doubt beside answers: the words, and at which problems.

    ``folder``: the report's.
    """
    for one in materials:
        path = f"data/{one.name}.js"
        if not one.answers or not (folder / path).is_file():
            continue
        data, table = read_script(folder / path), ledger.table("index.html", "doubts of answers")
        own = {each.gpu: each for each in known if each.workload == one.spec.workload}
        doubtful = [gpu for gpu in one.gpus if own[gpu].complaints]
        table.same(f"{one.name}, GPUs in doubt", sorted(data["doubts"]), sorted(doubtful))
        for gpu, (words, places) in data["doubts"].items():
            table.same(f"{one.name}, {gpu}", words, "; ".join(own[gpu].complaints))
            asked = [dict(zip(one.problem, each, strict=True)) for each in data["problems"]]
            named = [own[gpu].problem_words(each) for each in asked]
            wanted = sorted(named.index(each) for each in own[gpu].worst if each in named)
            table.same(f"{one.name}, {gpu}, problems", sorted(places), wanted)


def compare_contradictions(page: ShownPage, materials: Sequence[Material], ledger: Ledger) -> None:
    """Compare the number of figures that contradict others."""
    found = sum(sum(_contradictions(one)) for one in materials)
    table = ledger.table(page.path, "Contradictions")
    for section, said in page.sentences:
        if section == "invariants" and " another" in said.text:
            begin = said.text.partition(" ")[0].replace("No", "0")
            said.seen = True
            table.numbers("figures that contradict others", begin, found)


def _contradictions(one: Material) -> Iterator[int]:
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
    limits = with_limits(one, pairs)
    both = limits[[*keys, "gain", *LIMITS]].merge(judged, on=keys)
    usual = both["time_ms"].where(both["gain"] == 1).groupby([both[name] for name in one.problem])
    ratio = usual.transform("first") / both["time_ms"]
    low, high = (both[name] for name in LIMITS)
    yield int(((low > ratio * (1 + SLACK)) | (ratio > high * (1 + SLACK))).sum())
