"""A study small enough to check by hand: two GPUs of one card, two sizes, three configurations."""

from __future__ import annotations

import copy
import dataclasses
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import yaml

from launchwise.experiment.study import ModelEntry, Study
from launchwise.gpus.profile import Ceilings, GpuProfile
from launchwise.learning.evaluation import summarise
from launchwise.learning.features import Domain
from launchwise.learning.prediction_errors import prediction_errors
from launchwise.report.study_tables import StudyData
from launchwise.workloads.space import baseline, used
from launchwise.workloads.spec import Spec, load_spec
from tests.support import samples
from tests.support.named_tables import named_table
from tests.support.said import learnt_of

KERNEL = samples.STENCIL

NARROW = {"bx": 32, "by": 4, "bz": 1}
WIDE = {"bx": 64, "by": 2, "bz": 1}
"""Shapes of the two ``block3d`` configurations; the third configuration is the baseline."""

TIMES_MS = {
    # (gpu, n): times of the baseline, of NARROW and of WIDE.
    ("big", 102): (2.0, 1.0, 1.6),
    ("big", 202): (8.0, 5.0, 4.0),
    ("big.sm4", 102): (4.0, 5.0, 2.0),
    ("big.sm4", 202): (16.0, 20.0, 8.0),
}


KNOWN: dict[str, Any] = yaml.safe_load(
    Path(__file__).with_name("report_study.yaml").read_text(encoding="utf-8")
)
SCORE = KNOWN["score"]
"""What a blind test of the study's first GPU found."""


def profile(name: str, sms: int = 8, copy_gbs: float = 1000.0) -> GpuProfile:
    """A GPU of eight SMs, or a slice of it."""
    return samples.profile(
        name,
        device_name="Test GPU",
        whole_card_sms=8,
        sms=sms,
        cores=128 * sms,
        clock_mhz=1000.0,
        memory_bandwidth_gbs=1200.0,
        l2_bytes=2**20,
        shared_per_sm_bytes=2**16,
        shared_per_block_bytes=2**15,
        driver="1.0",
        ceilings=Ceilings(copy_bandwidth_gbs=copy_gbs, launch_overhead_us=2.0),
    )


def configurations(spec: Spec) -> list[dict[str, Any]]:
    """The baseline, NARROW and WIDE, complete."""
    neutral = {name: tunable.neutral for name, tunable in spec.tunables.items()}
    blocks = [{"variant": "block3d", **neutral, **shape} for shape in (NARROW, WIDE)]
    return [baseline(spec), *blocks]


def sweep(spec: Spec, gpu: str) -> pd.DataFrame:
    """Measurements of one GPU; a fourth row of the smaller size failed."""
    rows = []
    for (name, n), times in TIMES_MS.items():
        if name != gpu:
            continue
        problem = {"n": n, "dtype": "float32", "order": 2}
        for configuration, time in zip(configurations(spec), times, strict=True):
            rows.append({**problem, **configuration, "time_ms": time, "status": "ok"})
    broken = {**rows[1], "bx": 1024, "by": 1, "time_ms": np.nan, "status": "failed"}
    table = pd.DataFrame([*rows, broken])
    return table.assign(
        gpu=gpu,
        workload=spec.workload,
        reason=np.where(table["status"] == "ok", "", "launch failed"),
        times_ms=pd.Series([np.empty(0) for _ in table.index], index=table.index, dtype=object),
        **KNOWN["row"],
    )


def evaluation(spec: Spec, gpus: list[str]) -> pd.DataFrame:
    """Two models, a baseline and the oracle over every problem of :data:`TIMES_MS`."""
    _, narrow, wide = configurations(spec)
    rows = []
    for (gpu, n), times in TIMES_MS.items():
        if gpu not in gpus:
            continue
        best = int(np.argmin(times))
        picks = {"oracle": best, "untuned": 0, "knn": 1, "tree": 2}
        for model, pick in picks.items():
            role = {"oracle": "oracle", "untuned": "baseline"}.get(model, "model")
            time = times[pick]
            rows.append(
                {
                    "study": "tiny",
                    "model": model,
                    "role": role,
                    "split": "sizes",
                    "fold": "all",
                    "gpu": gpu,
                    "n": n,
                    "dtype": "float32",
                    "order": 2,
                    **(baseline(spec), narrow, wide)[pick],
                    "status": "ok",
                    "basis": "sweep",
                    "predicted_ms": 1.1 * time if role == "model" else np.nan,
                    "time_ms": time,
                    "baseline_ms": times[0],
                    **dict.fromkeys(("expected_gain", "least_gain", "most_gain"), np.nan),
                    "usual_ms": times[0],
                    "is_usual": pick == 0,
                    **dict.fromkeys(("best_of_5", "best_of_20"), min(times) / time),
                    "best_ms": min(times),
                    "configurations": len(times),
                    "needle_index": sum(each <= 1.05 * min(times) for each in times),
                    "improvement": times[0] / time,
                    "gain": times[0] / time,
                    "fraction": min(times) / time,
                    "improved_runs": float(times[0] > time),
                    "spearman": 0.5 if role == "model" else np.nan,
                    "absolute_percentage_error": 10.0 if role == "model" else np.nan,
                }
            )
    return pd.DataFrame(rows)


def settings(**changes: Any) -> Study:
    """Settings of the study."""
    given = {
        "workload": "stencil",
        "title": "A tiny study",
        "question": "Which tile?",
        "models": ["knn", "tree"],
        "splits": {
            "sizes": {
                "kind": "problems",
                "title": "all sizes",
                "train": {"n": [102]},
                "test": {"n": [202]},
            }
        },
    }
    return Study.model_validate({**given, **changes})


Sweeps = dict[str, pd.DataFrame]  # GPU to its rows
Values = dict[str, list[Any]]  # problem parameter to its values


def swept_study(
    kernel: Path, name: str, train: Values, test: Values, sweeps: Sweeps, **asked: Any
) -> StudyData:
    """A study of the workload in a folder with these sweeps. GPUs with a dot are slices."""
    split = {"kind": "problems", "title": "x", "train": train, "test": test}
    spec = known_spec(kernel)
    return dataclasses.replace(
        study(),
        name=name,
        settings=settings(workload=spec.workload, splits={"sizes": split}, **asked),
        spec=spec,
        profiles={gpu: profile(gpu, 4 if "." in gpu else 8) for gpu in sweeps},
        sweeps=sweeps,
    )


def sized_study(kernel: Path, name: str, title: str, sizes: list[int], sweeps: Sweeps) -> StudyData:
    """:func:`swept_study` of which every second size is tested."""
    return swept_study(kernel, name, {"n": sizes[::2]}, {"n": sizes[1::2]}, sweeps, title=title)


@cache
def known_spec(kernel: Path) -> Spec:
    return load_spec(kernel)


def answers(spec: Spec, gpus: list[str]) -> list[dict[str, Any]]:
    """What the product answers: the fastest of each measured problem, and of one size between."""
    _, narrow, wide = configurations(spec)
    found = []
    for gpu in gpus:
        small = narrow if gpu == "big" else wide
        for n, own in ((102, small), (152, small), (202, wide)):
            times = TIMES_MS.get((gpu, n))
            answer: dict[str, Any] = {
                "gpu": gpu,
                "problem": {"n": n, "dtype": "float32", "order": 2},
                "basis": "within" if times is None else "measured",
                "configuration": used(own, spec),
                "usual": used(configurations(spec)[0], spec),
                "time_ms": 2.5 if times is None else min(times),
            }
            if times is None:
                answer |= {"time_low_ms": 2.0, "time_high_ms": 3.0}
                answer |= {"gain": 1.5, "gain_low": 1.2, "gain_high": 1.8}
            else:
                best_ms = min(times)
                answer |= {"gain": times[0] / best_ms, "improvement": times[0] / best_ms}
                answer |= {"time_low_ms": 0.998 * best_ms, "time_high_ms": 1.002 * best_ms}
                answer |= {"alike": 2, "unsure": 1.6}
                if gpu == "big":
                    other: dict[str, Any] = {
                        "time_low_ms": 0.98 * best_ms,
                        "time_high_ms": 2.62 * best_ms,
                    }
                    other |= {"configuration": used(wide, spec), "time_ms": times[2]}
                    answer["others"] = [other]
            found.append(answer)
    return found


def study(
    gpus: tuple[str, ...] = ("big", "big.sm4"),
    name: str = "tiny",
    folder: Path | None = None,
    kernel: Path = KERNEL,
) -> StudyData:
    """The whole study, as the report reads it; tables and facts are the caller's own."""
    made = _made(gpus, kernel)
    parts = {each.name: getattr(made, each.name) for each in dataclasses.fields(made)}
    # A spec and a table of answers are never changed.
    kept = {"spec": made.spec, "table": made.table}
    own = {part: copy.deepcopy(value) for part, value in parts.items() if part not in kept}
    return StudyData(**{**own, **kept, "name": name, "folder": folder, "_known": {}})


@cache
def _made(gpus: tuple[str, ...], kernel: Path) -> StudyData:
    """The study of these GPUs, of a workload with the variants ``linear`` and ``block3d``."""
    spec = known_spec(kernel)
    rows = evaluation(spec, list(gpus))
    of_models = rows[rows["role"] == "model"]
    predictions = learnt_of(of_models, spec).predicted_times
    profiles = {gpu: profile(gpu, 4 if "." in gpu else 8) for gpu in gpus}
    keys = ["split", "fold", *spec.key_columns]
    timed = predictions.merge(of_models[[*keys, "status", "time_ms"]].drop_duplicates(), on=keys)
    domain = Domain(spec, profiles)
    summary = summarise(rows, spec, 2.0, {"knn": {"seconds_to_recommend": 0.2}})
    return StudyData(
        name="tiny",
        settings=settings(workload=spec.workload),
        spec=spec,
        entries={
            "knn": ModelEntry(kind="knn", title="kNN"),
            "tree": ModelEntry(kind="tree", title="regression tree"),
        },
        profiles=profiles,
        sweeps={gpu: sweep(spec, gpu) for gpu in gpus},
        evaluation=rows,
        models={"knn": KNOWN["training"], "tree": {}},
        facts={**summary, "predictions": prediction_errors(timed, ["knn", "tree"], domain)},
        table=named_table(answers(spec, list(gpus)), domain, "tiny"),
    )
