"""Every kind of recommender, and baselines, mostly on recorded times."""

from __future__ import annotations

import pickle
import pickletools
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from acoustic_cases import ASKED, GPUS, TRAINED, cases

from launchwise.base.errors import UserError
from launchwise.base.storage import read_json
from launchwise.learning.baselines import BASELINES
from launchwise.learning.features import Domain, configuration_codes, regrets
from launchwise.learning.recommender import Recommender
from launchwise.learning.recommenders import kinds, recommender_class, source
from launchwise.learning.splits import Case, among, case_codes
from launchwise.workloads import space
from launchwise.workloads.space import Problem
from launchwise.workloads.spec import Spec
from tests.support.samples import ROOT
from tests.support.streams import CANDIDATES, PROBLEM, SIZES, stream_sweep

OWN = {"c45": "acoustic", "nearest_optimum": "tridiagonal", "stream_law": "tridiagonal"}
"""Kinds of a workload alone."""

KINDS = [*kinds(), *OWN]

WITHOUT_TIMES = ("c45", "lambdarank", "nearest_optimum", "stream_law")
"""Kinds that rank and predict no time."""

NEEDS_STAGES = "stream_law"
UNTAUGHT = ("analytical", "roofline")

UNTARGETED = ("committee", "gaussian_process", "learnt")
"""Kinds that learn, but not a target that somebody chooses."""

"""Kinds that learn nothing."""


@dataclass(frozen=True)
class Ground:
    """What one kind learns from and is asked: the acoustic workload, or one that has stages."""

    kind: str
    domain: Domain
    rows: pd.DataFrame
    trained: list[Case]
    asked: list[Case]
    far: list[Problem]
    """Problems unlike any in training."""


@pytest.fixture(scope="module")
def staged(domain: Domain, tridiagonal_spec: Spec) -> tuple[Domain, pd.DataFrame]:
    """The tridiagonal workload with made-up times of two configurations, one slower."""
    parts = [
        stream_sweep(tridiagonal_spec, gpu, slower=slower, threads=threads)
        for gpu in GPUS
        for threads, slower in ((256, 1.0), (128, 1.3))
    ]
    made = pd.concat(parts, ignore_index=True)
    return Domain(tridiagonal_spec, domain.profiles, CANDIDATES), made


@pytest.fixture(scope="module", params=KINDS)
def ground(
    request: pytest.FixtureRequest,
    domain: Domain,
    rows: pd.DataFrame,
    staged: tuple[Domain, pd.DataFrame],
) -> Ground:
    if request.param == NEEDS_STAGES:
        trained, asked = (
            [Case(gpu, {**PROBLEM, "n": n}) for gpu in GPUS for n in sizes]
            for sizes in (SIZES, (20_000, 2_000_000))
        )
        far = [{**PROBLEM, "n": n, "dtype": "float32", "batch": 8} for n in (333, 640)]
        return Ground(request.param, *staged, trained, asked, far)
    far = [{"n": n, "dtype": "float64", "order": 16} for n in (333, 640)]
    return Ground(request.param, domain, rows, cases(TRAINED), cases(ASKED), far)


@pytest.fixture(scope="module")
def fitted(ground: Ground) -> Recommender:
    return class_of(ground.kind)(ground.domain).fit(ground.rows)


def class_of(kind: str) -> type[Recommender]:
    return recommender_class(kind, workload=ROOT / "kernels" / OWN[kind] if kind in OWN else None)


def chosen(table: pd.DataFrame) -> pd.DataFrame:
    return table[table["rank"] == 1].reset_index(drop=True)


# Every kind of recommender


def test_every_kind_is_found_and_a_strange_one_is_not() -> None:
    regressors = {"forest", "knn", "lightgbm", "tree", "xgboost"}
    assert set(kinds()) == {*regressors, "lambdarank", *UNTARGETED, *UNTAUGHT}
    with pytest.raises(UserError, match="did you mean 'xgboost'") as caught:
        recommender_class("xgbost", "models.mine")
    assert caught.value.key == "models.mine.kind"


def test_a_workload_has_kinds_of_its_own(root: Path) -> None:
    workload = root / "kernels" / "tridiagonal"
    assert kinds(workload) == sorted([*kinds(), "nearest_optimum", "stream_law"])
    found = recommender_class("stream_law", workload=workload)
    assert found.__module__ == "kernels.tridiagonal.recommenders.stream_law"
    assert source("stream_law", workload).is_relative_to(workload)
    assert source("tree", workload) == source("tree")
    with pytest.raises(UserError, match="unknown kind of model 'stream_law'"):
        recommender_class("stream_law", workload=root / "kernels" / "acoustic")


@pytest.mark.parametrize("kind", KINDS)
def test_an_unknown_parameter_is_a_user_error(kind: str, domain: Domain) -> None:
    with pytest.raises(UserError, match="unknown parameter 'depht'") as caught:
        class_of(kind)(domain, depht=3)
    assert caught.value.key == "models.parameters"
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in UNTAUGHT])
def test_no_rows_are_a_user_error(kind: str, domain: Domain, rows: pd.DataFrame) -> None:
    with pytest.raises(UserError, match="there are none"):
        class_of(kind)(domain).fit(rows.iloc[:0])


@pytest.mark.parametrize(
    "kind", [kind for kind in KINDS if kind not in (*WITHOUT_TIMES, *UNTAUGHT, *UNTARGETED)]
)
def test_an_unknown_target_is_a_user_error(kind: str, domain: Domain) -> None:
    with pytest.raises(UserError, match=r"unknown value 'speed'.*log_ratio, regret, time"):
        recommender_class(kind)(domain, target="speed")


def test_saved_and_loaded_recommends_the_same(
    fitted: Recommender, ground: Ground, tmp_path: Path
) -> None:
    fitted.save(tmp_path)
    again = type(fitted).load(tmp_path, fitted.domain)
    asked = fitted.domain.choices(ground.trained + ground.asked)
    pd.testing.assert_frame_equal(again.rank(asked), fitted.rank(asked), check_exact=True)
    assert again.get_params() == fitted.get_params()
    assert again.summary() == fitted.summary()
    # A second generation is the same on disk, too.
    again.save(tmp_path / "again")
    first, second = (read_json(one / "recommender.json") for one in (tmp_path, tmp_path / "again"))
    assert first["state"] == second["state"]
    assert first["files"] == second["files"]


def test_a_second_fit_gives_the_same_ranks(fitted: Recommender, ground: Ground) -> None:
    second = type(fitted)(fitted.domain).fit(ground.rows)
    asked = fitted.domain.choices(ground.asked)
    pd.testing.assert_frame_equal(second.rank(asked), fitted.rank(asked), check_exact=True)


def test_recommends_every_feasible_configuration_once_and_no_other(
    fitted: Recommender, ground: Ground
) -> None:
    spec = fitted.domain.spec
    for gpu in GPUS:
        facts = space.gpu_facts(fitted.domain.profiles[gpu].model_dump())
        table = fitted.recommend(gpu, ground.far)
        for problem in ground.far:
            mine = table[table["n"] == problem["n"]]
            assert mine["rank"].tolist() == list(range(1, len(mine) + 1))
            found = {tuple(one) for one in mine[spec.tunable_columns].to_numpy().tolist()}
            every = space.configurations(
                spec, problem, facts, [space.Part(fitted.domain.candidates)]
            )
            assert len(every) > 1
            assert found == {tuple(one.values()) for one in every}
            assert len(mine) == len(every)
            assert tuple(space.baseline(spec).values()) in found


def test_predicted_times_are_positive_and_in_the_order_of_ranks(
    fitted: Recommender, ground: Ground
) -> None:
    table = fitted.rank(fitted.domain.choices(ground.asked))
    predicted = table["predicted_ms"]
    if ground.kind in WITHOUT_TIMES:
        assert predicted.isna().all()
        return
    assert (predicted > 0).all()
    if ground.kind == "committee":
        # The order is that of cautious losses, not of times.
        return
    for _, mine in table.groupby(["gpu", "n"]):
        # Scores are steps of .2 %, so neighbours may swap by that much and no more.
        logs = np.log(mine["predicted_ms"].to_numpy())
        assert (np.diff(logs) >= -0.0021).all()


def test_beats_a_random_draw_on_the_training_problems(fitted: Recommender, ground: Ground) -> None:
    spec, rows = fitted.domain.spec, ground.rows
    codes, keys = case_codes(rows, spec)
    ranked = fitted.rank(rows)
    mean = [rows.loc[codes == case, "time_ms"].mean() for case in range(len(keys))]
    assert len(keys) == len(ground.trained)
    first = chosen(ranked)["time_ms"].to_numpy()
    assert (first < np.array(mean)).all()
    best = np.array([rows.loc[codes == case, "time_ms"].min() for case in range(len(keys))])
    # Not by luck: less than half as far from the best as a draw is.
    assert np.log(first / best).mean() < 0.5 * np.log(np.array(mean) / best).mean()


def test_refuses_strange_gpus_and_problems(fitted: Recommender, ground: Ground) -> None:
    good = ground.far[0]
    with pytest.raises(UserError, match="unknown GPU 'h100'"):
        fitted.recommend("h100", [good])
    with pytest.raises(UserError, match="dtype: 'float8' is not among"):
        fitted.recommend(GPUS[0], [good, {**good, "dtype": "float8"}])


FORMATS: dict[str, Callable[[bytes], bool]] = {
    ".json": lambda content: content[:1] == b"{",
    ".txt": lambda content: content[:4] == b"tree",
    ".ubj": lambda content: content[:1] == b"{",
    ".npz": lambda content: content[:4] == b"PK\x03\x04",
    ".npy": lambda content: content[:6] == b"\x93NUMPY" and b"'|O'" not in content[:128],
}


def is_pickle(content: bytes) -> bool:
    try:
        # Disassembled, never run: the last opcode of a pickle is STOP.
        return any(code.name == "STOP" for code, _, _ in pickletools.genops(content))
    except Exception:
        return False


def test_saved_files_are_of_formats_that_cannot_run_code(
    fitted: Recommender, tmp_path: Path
) -> None:
    fitted.save(tmp_path)
    listed = sorted(path for path in tmp_path.rglob("*") if path.is_file())
    assert tmp_path / "recommender.json" in listed
    contents = {path.name: path.read_bytes() for path in listed}
    for path in listed:
        if path.suffix == ".npz":
            with zipfile.ZipFile(path) as archive:
                contents |= {name: archive.read(name) for name in archive.namelist()}
    for name, content in contents.items():
        assert FORMATS[Path(name).suffix](content), name
        assert not is_pickle(content), name


class Bomb:
    """Touches a file when it is unpickled."""

    def __init__(self, marker: Path) -> None:
        self._marker = marker

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self._marker,)


def test_a_pickle_in_place_of_a_model_is_refused_and_not_run(
    fitted: Recommender, tmp_path: Path
) -> None:
    bomb, marker = pickle.dumps(Bomb(tmp_path / "marker")), tmp_path / "marker"
    assert is_pickle(bomb)
    fitted.save(tmp_path / "model")
    model = next((tmp_path / "model").glob("model.*"), tmp_path / "model" / "recommender.json")
    model.write_bytes(bomb)
    with pytest.raises(UserError) as caught:
        type(fitted).load(tmp_path / "model", fitted.domain)
    assert str(model) in str(caught.value)
    if model.suffix != ".json":
        # Nor does the format's own reader run it, were it not for the hash.
        with pytest.raises(UserError, match="cannot be read as a model"):
            type(fitted)(fitted.domain).load_model(tmp_path / "model")
    assert not marker.exists()


@pytest.mark.parametrize("share", [0.0, 0.5, 0.95])
def test_a_truncated_model_is_a_user_error(
    fitted: Recommender, tmp_path: Path, share: float
) -> None:
    fitted.save(tmp_path)
    model = next(tmp_path.glob("model.*"), tmp_path / "recommender.json")
    content = model.read_bytes()
    model.write_bytes(content[: int(share * len(content))])
    with pytest.raises(UserError) as caught:
        type(fitted).load(tmp_path, fitted.domain)
    assert model.name in str(caught.value)


def test_a_model_of_another_kind_is_a_user_error(fitted: Recommender, tmp_path: Path) -> None:
    fitted.save(tmp_path)
    other = recommender_class("tree" if type(fitted).__name__ != "TreeRecommender" else "knn")
    with pytest.raises(UserError, match=f"holds a {type(fitted).__name__}"):
        other.load(tmp_path, fitted.domain)


# Baselines


def baseline_ranks(name: str, domain: Domain, rows: pd.DataFrame, asked: list[Case]) -> Any:
    return chosen(BASELINES[name](domain).fit(rows).rank(domain.choices(asked)))


def best_of(rows: pd.DataFrame, case: Case, domain: Domain) -> list[Any]:
    mine = rows[among(rows, [case], domain.spec)]
    found: list[Any] = mine.loc[mine["time_ms"].idxmin(), domain.spec.tunable_columns].tolist()
    return found


def test_baselines_answer_what_their_names_say(domain: Domain, rows: pd.DataFrame) -> None:
    columns = domain.spec.tunable_columns
    spec = domain.spec
    assert set(baseline_ranks("untuned", domain, rows, cases(ASKED))["variant"]) == {"linear"}
    # 310 is next to 300 on the same GPU.
    asked = cases((310,))
    found = baseline_ranks("nearest_size", domain, rows, asked)
    expected = [best_of(rows, case, domain) for case in cases((300,))]
    assert found[columns].to_numpy().tolist() == expected
    # The nearest other GPU is the other one; there the same problem.
    found = baseline_ranks("nearest_gpu", domain, rows, cases((300,)))
    assert found[columns].to_numpy().tolist() == expected[::-1]
    regret = regrets(rows, spec)
    # Fewest rows of the sweep are padded; 300 x 4 bytes is no multiple of 128, 256 x 4 is.
    codes = configuration_codes(rows, columns, spec)
    totals = pd.Series(regret).groupby(codes).agg(["sum", "size"])
    missing = 6 - totals["size"]
    least = (totals["sum"] + missing * np.log(3)).idxmin()
    found = baseline_ranks("best_on_average", domain, rows, cases((300,)))
    assert set(configuration_codes(found, columns, spec)) == {least}
    wins = pd.Series(codes[regret == 0]).value_counts()
    found = baseline_ranks("most_frequent_best", domain, rows, cases((300,)))
    assert set(configuration_codes(found, columns, spec)) <= set(wins[wins == wins.max()].index)
