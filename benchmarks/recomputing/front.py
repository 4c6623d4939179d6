"""The tables of the front page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from launchwise.base.storage import read_json
from recomputing.comparing import Cell, Ledger, Table
from recomputing.material import Material, bootstrap, geometric_mean
from recomputing.pages import ShownPage

INTERVAL_SEED = 0
OVERVIEWS = "Every kernel", "Is tuning worth it"
MOST_CARDS, ORACLE = 2, "oracle"
RULES = {"best_on_average": "fixed choice", "nearest_size": "nearest size"}
TUNE = "tune"
LEAST_WORTH = 1.02  # gain of the fastest configuration below which tuning does not pay

HARMED, WORTH = 1 / 1.02, 1.05
"""Speeds relative to the usual choice: below, an answer is slower; above, a best is worth it."""


def compare(page: ShownPage, materials: Sequence[Material], ledger: Ledger) -> None:
    """Compare the tables of the front page but that of GPUs (:mod:`recomputing.ratios`)."""
    titles = {one.settings.title: one for one in materials}
    for each in page.tables_of(OVERVIEWS):
        overview = ledger.table(page.path, each.caption)
        rows = each.rows_by(["kernel"])
        worth = {title: _worth(titles[title]) for title in rows if title in titles}
        every = dict.fromkeys(gpu for cards in worth.values() for gpu in cards)
        common = [gpu for gpu in every if all(gpu in cards for cards in worth.values())]
        for title, cards in worth.items():
            shown = [*(common or cards)][: MOST_CARDS if common else 1]
            if known := {gpu: cards[gpu] for gpu in shown}:
                overview.row(title, rows[title], _row(titles[title], known, bool(common)))
    tests = {
        (one.settings.title, *row): cells for one in materials for row, cells in _blind(one).items()
    }
    columns = ["study", "GPU", "problems (count)"]
    ledger.beside(page, "Blind tests", columns, tests, "Blind tests")
    _lead(page, materials, ledger.table(page.path, "sentences"))


def _lead(page: ShownPage, materials: Sequence[Material], table: Table) -> None:
    """Numbers of studies, of slices, of GPUs that others measured, and of datasheet-only GPUs."""
    for section, one in page.sentences:
        if section or not one.text.split(" ", 1)[-1].startswith("stud"):
            continue
        profiles = {gpu: each.profiles[gpu] for each in materials for gpu in each.gpus}
        own = [gpu for gpu, profile in profiles.items() if profile.driver]
        others = len(profiles) - len(own)
        slices = sum(profiles[gpu].sms < profiles[gpu].whole_card_sms for gpu in own)
        described = len({gpu for each in materials for gpu in each.described})
        words = one.text.replace(".", " ").split()
        for place, values, unit in (
            ("studies", [len(materials)], "stud"),
            ("slices", [slices], "slice"),
            ("GPUs of others and datasheets", [others, described], "GPU"),
        ):
            said = [words[n - 1] for n, word in enumerate(words) if n and word.startswith(unit)]
            table.same(place, said, [str(value) for value in values if value])
        one.seen = True


def _pays(interval: Sequence[float]) -> str:
    if not interval:
        return "too few problems to tell"
    low, high = interval
    otherwise = "keep the usual choice" if high < LEAST_WORTH else "little to gain"
    return TUNE if low >= LEAST_WORTH else otherwise


Worth = tuple[list[float], list[float], list[str]]
"""Speeds relative to the usual choice of answers and of the best; verdict and rules as good."""


def _worth(one: Material) -> dict[str, Worth]:
    """Whole card to what was reached there. Of the evaluation only what each method chose is taken.
    The speed of a choice is the judged time of the usual choice divided by its own, 0 without a
    time; means over the problems are geometric."""
    rows = one.evaluation[one.evaluation["split"] == one.first_split]
    name = one.committee if one.committee in set(rows["model"]) else _best_model(rows)

    def speeds(gpu: str, model: str) -> list[float]:
        own = rows[(rows["gpu"] == gpu) & (rows["model"] == model)].sort_values(one.problem)
        return [_speed(one, key) for key in own[one.spec.key_columns].itertuples(index=False)]

    found = {}
    for gpu in one.whole if name is not None else ():
        if gpu in set(rows["gpu"]):
            own, best = speeds(gpu, str(name)), speeds(gpu, ORACLE)
            verdict = _pays(bootstrap(np.array(best), INTERVAL_SEED) or ())
            rules = (_beside(own, speeds(gpu, rule), rule) for rule in RULES if verdict == TUNE)
            enough = ", ".join(filter(None, rules))
            found[gpu] = own, best, [verdict, *([enough] if enough else [])]
    return found


def _row(one: Material, cards: Mapping[str, Worth], is_common: bool) -> dict[str, Cell]:
    """Cells of a study: the first card's verdict, then what differs on others."""
    (first, (*_, (verdict, *said))), *others = cards.items()
    details = [*said, *_libraries(one, first)]
    for gpu, (*_, words) in others:
        if new := [each for each in words if each not in (verdict, *said)]:
            details.append(f"{gpu}: {', '.join(new)}")
    found = {"verdict": Cell(verdict, "; ".join(details))}
    for gpu, (own, best, _) in cards.items():
        name = f"gain{f', {gpu}' if is_common else ''} (answer / best)"
        speeds = [geometric_mean(own), geometric_mean(best)]
        found[name] = Cell(speeds, bootstrap(np.array(own), INTERVAL_SEED) or ())
    counts = " and ".join(dict.fromkeys(str(len(best)) for _, best, _ in cards.values()))
    where = "" if is_common else f", {first}"
    return {**found, "kernel": Cell(one.settings.title, f"{counts} test problems{where}")}


def _beside(own: Sequence[float], other: Sequence[float], rule: str) -> str:
    """What is said of a rule where speeds are not surely above its own of the same problems."""
    speeds = [np.maximum(each, 1e-6) for each in (own, other)]
    is_known = len(own) == len(other)
    limits = bootstrap(speeds[0] / speeds[1], INTERVAL_SEED) if is_known else None
    if limits is None or limits[0] > 1:
        return ""
    return f"{RULES[rule]} {'as good' if limits[1] <= 1.02 else 'undecided'}"


def _libraries(one: Material, gpu: str) -> Iterator[str]:
    """Mean ratio of the times of each library that is faster somewhere in pairs, and at how many
    problems it is."""
    rows = one.table(f"peers/{gpu}/{one.name}.parquet")
    if rows is None:
        return
    for name in sorted(set(rows["peer"])):
        known = rows[(rows["peer"] == name) & rows["speedup"].notna()]
        mean, slower = geometric_mean(known["speedup"].tolist()), (known["speedup_high"] < 1).sum()
        said = name if one.settings.peer_kinds else f"{name} {mean:.2f}"
        if slower:
            yield f"best / {said}, slower at {slower} of {len(known)}"


def _speed(one: Material, key: tuple[object, ...]) -> float:
    own = one.time_of.get(tuple(key))
    usual = one.usual_ms(tuple(key[: len(one.case)]))
    return 0.0 if own is None or usual is None else usual / own[0]


def _best_model(rows: pd.DataFrame) -> str | None:
    """The model of highest geometric mean fraction of the best, the first by name."""
    models = rows[rows["role"] == "model"].groupby("model")["fraction"].apply(geometric_mean)
    known = models.dropna()
    return None if known.empty else str(known.idxmax())


def _blind(one: Material) -> dict[tuple[str, str], dict[str, Cell]]:
    """GPU and number of problems, as the page names them, to the figures of a blind test on it."""
    found = {}
    for path in sorted(one.results.glob(f"blind/**/{one.name}.score.csv")):
        place = path.relative_to(one.results)
        facts, gpu = one.json(str(place.with_suffix(".json"))), place.parts[1]
        named = f"{gpu}, new" if facts["new_gpu"] else gpu
        places = path.parent, Path("data/recorded", gpu, "blind", *place.parts[2:-1])
        test = next(each for each in places if (each / f"{one.name}.frozen.json").is_file())
        scores = _of_pairs(one, pd.read_csv(path), test)
        found[named, str(len(scores))] = _of_test(scores, facts)
    return found


def _of_pairs(one: Material, scores: pd.DataFrame, test: Path) -> pd.DataFrame:
    """Scores of a test by ascending problem: in pairs those of the configurations answered."""
    answers = read_json(test / f"{one.name}.frozen.json")["answers"]
    first = [one.whole_configuration(each["suggestions"][0]["configuration"]) for each in answers]
    tunables = pd.DataFrame(first, columns=one.spec.tunable_columns)
    chosen = pd.DataFrame([each["problem"] for each in answers]).join(tunables)
    pairs = pd.read_parquet(test / f"{one.name}.pairs.parquet")
    most = pairs.groupby(one.problem)["gain"].transform("max")
    pairs = pairs[pairs["status"] == "ok"].assign(fraction=pairs["gain"] / most, best_gain=most)
    names = ["fraction", "gain", "best_gain"]
    known = chosen.merge(pairs, how="left")[[*one.problem, *names]].fillna(dict.fromkeys(names, 0))
    return scores.drop(columns=names).merge(known).sort_values(sorted(one.problem))


def _of_test(scores: pd.DataFrame, facts: Mapping[str, Any]) -> dict[str, Cell]:
    """Figures of the answers to the problems of a blind test, in the order of the file of answers:
    draws follow it. Covered: gains and times within their expected 90 % intervals; gains of answers
    other than the usual choice."""
    fraction, gain = scores["fraction"].to_numpy(), scores["gain"].to_numpy()
    usual = scores["is_usual"].astype(bool).to_numpy()
    worth = scores["best_gain"].to_numpy() > WORTH

    def covered(measured: str, expected: str, asked: np.ndarray) -> Cell:
        low, high = scores[f"{expected}_low"], scores[f"{expected}_high"]
        known = (low.notna() & scores[measured].notna()).to_numpy() & asked
        held = ((scores[measured] >= low) & (scores[measured] <= high)).to_numpy()[known]
        return Cell(100 * held.mean(), [len(held)]) if len(held) else Cell(None)

    of_best, beside = "fraction of the best: ", "relative to the usual choice: "
    interval = bootstrap(fraction, facts["seed"]) or ()
    when = f"{facts['commit'][:7]}, {facts['frozen_at'][:10]}"
    return {
        "problems (count)": Cell(len(scores)),
        f"{of_best}mean (geometric, 95 %)": Cell(geometric_mean(fraction), interval),
        f"{of_best}5th percentile": Cell(float(np.quantile(fraction, 0.05))),
        f"{of_best}5 measured (geometric, single rows)": Cell(geometric_mean(scores["best_of_5"])),
        f"{beside}speed-up (geometric)": Cell(geometric_mean(gain)),
        f"{beside}slower (problems)": Cell(int((gain < HARMED).sum())),
        f"{beside}kept (problems)": Cell(int(usual.sum())),
        f"{beside}missed (of improvable)": Cell([int((usual & worth).sum()), int(worth.sum())]),
        "90 % intervals: gains covered (%)": covered("gain", "expected_gain", ~usual),
        "90 % intervals: times covered (%)": covered("measured_ms", "expected_ms", usual | True),
        "written down": Cell(when, f"digest {facts['digest']}"),
    }
