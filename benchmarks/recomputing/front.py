"""The tables of the front page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from recomputing.comparing import Ledger, Table
from recomputing.entries import Entry
from recomputing.material import Material, bootstrap, geometric_mean
from recomputing.pages import Shown, ShownPage, ShownTable

INTERVAL_SEED = 0
ORACLE, FIXED, BASELINE = "oracle", "best_on_average", "untuned"
LEAST_WORTH = 1.02
"""Gain of the fastest configuration below which tuning does not pay."""

FEWEST_PROBLEMS = 4
"""Problems that predictions must share with all whole cards to have a place."""

MS_PER_HOUR = 3.6e6
HARMED, WORTH = 1 / 1.02, 1.05
"""Speeds relative to the usual choice: below, an answer is slower; above, a best is worth it."""


def compare(
    page: ShownPage,
    materials: Sequence[Material],
    entries: Mapping[str, Sequence[Entry]],
    per_hour: Mapping[str, float],
    ledger: Ledger,
) -> None:
    """Compare every table of the front page.

    Parameters
    ----------
    entries
        Study to the best times of its problems (:mod:`recomputing.entries`).
    per_hour
        GPU to euro per hour.
    """
    titles = {one.settings.title: one for one in materials}
    _gains(page, titles, ledger.table(page.path, "Gain from tuning"))
    table = ledger.table(page.path, "Every kernel on every GPU")
    shown: list[str] = []
    for each in page.tables_of("Speed, joule and runs per euro"):
        shown += _kernels(each, titles, entries, per_hour, table)
    expected = [one.name for one in materials if column(one, entries[one.name])]
    table.same("studies", sorted(shown), sorted(expected))
    _blind(page, titles, ledger.table(page.path, "Blind tests"))
    _studies(page, materials, ledger.table(page.path, "Studies"))
    _lead(page, materials, ledger.table(page.path, "sentences"))


def _lead(page: ShownPage, materials: Sequence[Material], table: Table) -> None:
    """Numbers of studies, of slices, and of datasheet-only GPUs."""
    for section, one in page.sentences:
        if section or not one.text.split(" ", 1)[-1].startswith("stud"):
            continue
        profiles = {gpu: each.profiles[gpu] for each in materials for gpu in each.gpus}
        own = [gpu for gpu, profile in profiles.items() if profile.driver]
        slices = sum(profiles[gpu].sms < profiles[gpu].whole_card_sms for gpu in own)
        described = len({gpu for each in materials for gpu in each.described})
        words = one.text.replace(".", " ").split()
        for place, value, unit in (
            ("studies", len(materials), "stud"),
            ("slices", slices, "slice"),
            ("datasheet-only GPUs", described, "GPU"),
        ):
            at = next((n for n, word in enumerate(words) if word.startswith(unit)), None)
            if value or at is not None:
                table.numbers(place, words[at - 1] if at else "", value)
        one.seen = True


def _gains(page: ShownPage, titles: Mapping[str, Material], table: Table) -> None:
    shown = []
    labels = [one for one in page.drawn if "×, " in one.text]
    for each in page.tables_of("Speed relative to the usual choice"):
        for row in each.records():
            one = titles[row["study"].text]
            row["study"].seen = True
            shown.append(one.name)
            found = _worth(one)
            if found is None:
                table.same(f"{one.name}", "a row", "no row")
                continue
            speeds, intervals, problems, paired, gpu = found
            for model, name in (("best", "best"), ("recommended", "recommended")):
                cell = row[f"{name} (× usual, 95 %)"]
                table.cell(f"{one.name}, {model}", cell, speeds[model])
                table.numbers(f"{one.name}, {model}, 95 %", cell.detail, *intervals[model])
            table.cell(f"{one.name}, fixed", row["one fixed (× usual)"], speeds["fixed"])
            table.cell(f"{one.name}, baseline", row["baseline (× usual)"], speeds["baseline"])
            table.cell(f"{one.name}, problems", row["problems (count)"], problems)
            table.words(f"{one.name}, GPU", row["GPU"], gpu)
            cell = row["in pairs (of best and recommended)"]
            table.cell(f"{one.name}, in pairs", cell, paired, 2 * problems)
            verdict = _pays(intervals["best"])
            table.words(f"{one.name}, verdict", row["verdict"], verdict)
            if each is page.tables_of("Speed relative to the usual choice")[0] and labels:
                label = labels.pop(0)
                label.seen = True
                table.numbers(f"{one.name}, bar", label.text, speeds["best"])
    expected = [one.name for one in titles.values() if _worth(one) is not None]
    table.same("studies", sorted(shown), sorted(expected))


def _pays(interval: Sequence[float]) -> str:
    if not interval:
        return "too few problems to tell"
    low, high = interval
    if low >= LEAST_WORTH:
        return "tune"
    return "keep the usual choice" if high < LEAST_WORTH else "little to gain"


Worth = tuple[dict[str, float], dict[str, Sequence[float]], int, int, str]


def _worth(one: Material) -> Worth | None:
    """Speeds relative to the usual choice, their intervals, problems, times in pairs, and the GPU.

    Of the evaluation only what each method chose is taken. The speed of a choice is the judged time
    of the usual choice divided by its own, 0 without a time; means over the problems are geometric.
    """
    rows = one.evaluation[one.evaluation["split"] == one.first_split]
    gpu = next((each for each in one.whole if each in set(rows["gpu"])), None)
    name = one.committee if one.committee in set(rows["model"]) else _best_model(rows)
    if gpu is None or name is None:
        return None
    roles = {"best": ORACLE, "recommended": name, "fixed": FIXED, "baseline": BASELINE}
    speeds: dict[str, float] = {}
    intervals: dict[str, Sequence[float]] = {}
    paired = problems = 0
    for role, model in roles.items():
        own = rows[(rows["gpu"] == gpu) & (rows["model"] == model)].sort_values(one.problem)
        found = [_speed(one, key) for key in own[one.spec.key_columns].itertuples(index=False)]
        speeds[role] = geometric_mean([speed for speed, _ in found])
        intervals[role] = bootstrap(np.array([each for each, _ in found]), INTERVAL_SEED) or ()
        if role in ("best", "recommended"):
            paired += sum(basis == "pairs" for _, basis in found)
        if role == "best":
            problems = len(own)
    return speeds, intervals, problems, paired, gpu


def _speed(one: Material, key: tuple[object, ...]) -> tuple[float, str]:
    own = one.time_of.get(tuple(key))
    usual = one.usual_ms(tuple(key[: len(one.case)]))
    return (0.0, "") if own is None or usual is None else (usual / own[0], own[1])


def _best_model(rows: pd.DataFrame) -> str | None:
    """The model of highest geometric mean fraction of the best, the first by name."""
    models = rows[rows["role"] == "model"].groupby("model")["fraction"].apply(geometric_mean)
    known = models.dropna()
    return None if known.empty else str(known.idxmax())


Problems = list[tuple[object, ...]]


def column(
    one: Material, entries: Sequence[Entry]
) -> tuple[dict[str, dict[tuple[object, ...], Entry]], Problems, Problems] | None:
    """GPUs of a study's column with their problems, the common problems, those with energy.

    Common are the problems of all whole cards; of these, what all predictions have, if that is
    at least :data:`FEWEST_PROBLEMS`. A GPU takes part if it has all of them. Energy is of the
    problems whose energy all whole cards know: at least :data:`FEWEST_PROBLEMS`, or all. None with
    fewer than two GPUs.
    """
    of_gpu: dict[str, dict[tuple[object, ...], Entry]] = {}
    for each in entries:
        of_gpu.setdefault(each.gpu, {})[each.problem] = each
    whole = [gpu for gpu in one.whole if gpu in of_gpu]
    if not whole:
        return None
    common = set.intersection(*(set(of_gpu[gpu]) for gpu in whole))
    predicted = [set(of_gpu[gpu]) for gpu in one.described if gpu in of_gpu]
    both = common.intersection(*predicted)
    common = both if len(both) >= FEWEST_PROBLEMS else common
    taking = {gpu: own for gpu, own in of_gpu.items() if common and common <= set(own)}
    if len(taking) < 2:
        return None
    with_energy = [
        problem
        for problem in common
        if all(taking[gpu][problem].energy_j is not None for gpu in whole)
    ]
    if len(with_energy) < FEWEST_PROBLEMS and len(with_energy) < len(common):
        with_energy = []
    return taking, list(common), with_energy


def _kernels(
    shown: ShownTable,
    titles: Mapping[str, Material],
    entries: Mapping[str, Sequence[Entry]],
    per_hour: Mapping[str, float],
    table: Table,
) -> list[str]:
    """Compare a table; names of its studies."""
    rows = {row[0].text: row for row in shown.rows}
    named: list[str] = []
    taking_part: set[str] = set()
    for place, heading in enumerate(shown.headings[1:], start=1):
        one = titles[heading.text]
        named.append(one.name)
        found = column(one, entries[one.name])
        if found is None:
            table.same(one.name, "a column", "no column")
            continue
        taking, problems, with_energy = found
        reference = next(gpu for gpu in one.whole if gpu in taking)
        words = f"× {reference}, {len(problems)} problem{'s' if len(problems) > 1 else ''}"
        words += f"; J of {len(with_energy)}" if with_energy else ""
        table.same(f"{one.name}, heading", heading.detail, words)
        taking_part |= taking.keys()
        for gpu, row in rows.items():
            _place(f"{one.name}, {gpu}", row[place], found, gpu, reference, per_hour, table)
    table.same("GPUs", sorted(rows), sorted(taking_part))
    return named


def _place(
    place: str,
    cell: Shown,
    found: tuple[dict[str, dict[tuple[object, ...], Entry]], Problems, Problems],
    gpu: str,
    reference: str,
    per_hour: Mapping[str, float],
    table: Table,
) -> None:
    """Speed relative to the reference, joule of a run, and runs per euro: geometric means."""
    taking, problems, with_energy = found
    own = taking.get(gpu)
    if own is None:
        table.cell(place, cell, None)
        return
    times = np.array([own[problem].best_ms for problem in problems])
    before = np.array([taking[reference][problem].best_ms for problem in problems])
    table.cell(place, cell, geometric_mean(before / times))
    more = []
    joules = [own[problem].energy_j for problem in with_energy]
    if joules and None not in joules:
        more.append(geometric_mean(joules))
    if gpu in per_hour:
        more.append(MS_PER_HOUR / per_hour[gpu] / geometric_mean(times))
    if more or cell.detail:
        table.numbers(f"{place}, joule and runs per euro", cell.detail, *more)


def _blind(page: ShownPage, titles: Mapping[str, Material], table: Table) -> None:
    rows = {}
    for each in page.tables_of("Blind tests"):
        for row in each.records():
            gpu = row["GPU"].text.partition(",")[0]
            rows[titles[row["study"].text].name, gpu] = row
    scores = {}
    for one in titles.values():
        for path in sorted(one.results.glob(f"blind/*/{one.name}.score.csv")):
            scores[one.name, path.parent.name] = one
    table.same("tests", sorted(rows), sorted(scores))
    for (name, gpu), row in rows.items():
        if (name, gpu) in scores:
            _blind_row(f"{name}, {gpu}", row, scores[name, gpu], gpu, table)


def _blind_row(place: str, row: Mapping[str, Shown], one: Material, gpu: str, table: Table) -> None:
    """Figures of the answers to the problems of a blind test.

    An answer without a time counts as 0. *Improvable*: the best is more than 5 % faster than the
    usual choice. Covered: measured gains and times within their expected 90 % intervals; gains of
    answers other than the usual choice.
    """
    path = f"blind/{gpu}/{one.name}.score"
    scores = pd.read_csv(one.results / f"{path}.csv")
    facts = one.json(f"{path}.json")
    row["study"].seen = True
    table.words(f"{place}, GPU", row["GPU"], f"{gpu}, new" if facts["new_gpu"] else gpu)
    fraction, gain = scores["fraction"].to_numpy(), scores["gain"].to_numpy()
    table.cell(f"{place}, problems", row["problems (count)"], len(scores))
    optimum = "fraction of the best: "
    cell = row[f"{optimum}mean (geometric, 95 %)"]
    table.cell(f"{place}, mean", cell, geometric_mean(fraction))
    # The columns in the order of the file of answers: draws follow the order of problems.
    ordered = scores.sort_values(sorted(one.problem))["fraction"].to_numpy()
    table.numbers(f"{place}, 95 %", cell.detail, *(bootstrap(ordered, facts["seed"]) or ()))
    cell = row[f"{optimum}5th percentile"]
    table.cell(f"{place}, 5th percentile", cell, float(np.quantile(fraction, 0.05)))
    cell = row[f"{optimum}5 measured (geometric, single rows)"]
    table.cell(f"{place}, 5 measured", cell, geometric_mean(scores["best_of_5"]))
    usual = scores["is_usual"].astype(bool).to_numpy()
    worth = scores["best_gain"].to_numpy() > WORTH
    beside = "relative to the usual choice: "
    cell = row[f"{beside}speed-up (× usual)"]
    table.cell(f"{place}, speed-up", cell, geometric_mean(gain))
    cell = row[f"{beside}slower (problems)"]
    table.cell(f"{place}, slower", cell, int((gain < HARMED).sum()))
    table.cell(f"{place}, kept", row[f"{beside}kept (problems)"], int(usual.sum()))
    cell = row[f"{beside}missed (of improvable)"]
    table.cell(f"{place}, missed", cell, int((usual & worth).sum()), int(worth.sum()))
    for title, measured, expected, asked in (
        ("gains", "gain", "expected_gain", ~usual),
        ("times", "measured_ms", "expected_ms", np.ones(len(usual), dtype=bool)),
    ):
        low, high = scores[f"{expected}_low"], scores[f"{expected}_high"]
        known = (low.notna() & scores[measured].notna()).to_numpy() & asked
        held = ((scores[measured] >= low) & (scores[measured] <= high)).to_numpy()[known]
        cell = row[f"90 % intervals: {title} covered (%)"]
        table.cell(f"{place}, {title}", cell, 100 * held.mean() if len(held) else None)
    cell = row["commit and day (digest of the answers)"]
    table.words(f"{place}, when", cell, f"{facts['commit'][:12]}, {facts['frozen_at'][:10]}")
    table.same(f"{place}, digest", cell.detail, facts["digest"])


def _studies(page: ShownPage, materials: Sequence[Material], table: Table) -> None:
    rows = {row["study"].text: row for each in page.tables_of("Studies") for row in each.records()}
    table.same("studies", list(rows), [one.settings.title for one in materials])
    for one in materials:
        if (row := rows.get(one.settings.title)) is None:
            continue
        row["study"].seen = True
        table.words(f"{one.name}, question", row["question"], one.settings.question)
        table.cell(f"{one.name}, rows", row["measured (rows)"], len(one.swept))
        if len(one.gpus) <= 14:
            *first, last = one.gpus
            listed = f"{', '.join(first)} and {last}" if first else last
            table.words(f"{one.name}, GPUs", row["GPUs"], listed)
