"""What every recommender has to do, as tests that a kind's own file takes over.

A test file defines a fixture ``ground`` and a subclass of :class:`RecommenderProtocol` whose name
begins with ``Test``.
"""

from __future__ import annotations

import gzip
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

from launchwise.base.errors import UserError
from launchwise.base.storage import read_json
from launchwise.learning.features import Domain
from launchwise.learning.recommender import Recommender
from launchwise.learning.recommenders import recommender_class
from launchwise.learning.splits import Case, case_codes
from launchwise.workloads import space
from launchwise.workloads.space import Problem


@dataclass(frozen=True)
class Ground:
    """What one kind learns from and is asked."""

    model: Callable[..., Recommender]
    """Makes one of its domain and hyper-parameters, such as its class."""
    domain: Domain
    rows: pd.DataFrame
    trained: list[Case]
    asked: list[Case]
    far: list[Problem]
    """Problems unlike any in training."""
    taught: bool = True
    """Whether it learns from rows."""
    timed: bool = True
    """Whether it predicts times."""
    cautious: bool = False
    """Whether its order is that of cautious losses, not of times."""

    @property
    def gpus(self) -> list[str]:
        return list(dict.fromkeys(case.gpu for case in self.trained))


FORMATS: dict[str, Callable[[bytes], bool]] = {
    ".json": lambda content: content[:1] == b"{",
    ".gz": lambda content: gzip.decompress(content)[:4] in (b"tree", b'{"le'),
    ".npz": lambda content: content[:4] == b"PK\x03\x04",
    ".npy": lambda content: content[:6] == b"\x93NUMPY" and b"'|O'" not in content[:128],
}


def is_pickle(content: bytes) -> bool:
    try:
        # Disassembled, never run: the last opcode of a pickle is STOP.
        return any(code.name == "STOP" for code, _, _ in pickletools.genops(content))
    except Exception:
        return False


class Bomb:
    """Touches a file when it is unpickled."""

    def __init__(self, marker: Path) -> None:
        self._marker = marker

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self._marker,)


def chosen(table: pd.DataFrame) -> pd.DataFrame:
    """What is recommended first."""
    return table[table["rank"] == 1].reset_index(drop=True)


class RecommenderProtocol:
    """Tests of one kind, or of several."""

    @pytest.fixture(scope="class")
    @classmethod
    def fitted(cls, ground: Ground) -> Recommender:
        return ground.model(ground.domain).fit(ground.rows)

    def test_an_unknown_parameter_is_a_user_error(self, ground: Ground) -> None:
        with pytest.raises(UserError, match="unknown key 'depht'") as caught:
            ground.model(ground.domain, depht=3)
        assert caught.value.key == "models.parameters.depht"
        assert "\n" not in str(caught.value)

    def test_no_rows_are_a_user_error(self, ground: Ground) -> None:
        if ground.taught:
            with pytest.raises(UserError, match="there are none"):
                ground.model(ground.domain).fit(ground.rows.iloc[:0])

    def test_saved_and_loaded_recommends_the_same(
        self, fitted: Recommender, ground: Ground, tmp_path: Path
    ) -> None:
        fitted.save(tmp_path)
        again = type(fitted).load(tmp_path, fitted.domain)
        asked = fitted.domain.choices(ground.trained + ground.asked)
        pd.testing.assert_frame_equal(again.rank(asked), fitted.rank(asked), check_exact=True)
        assert again.parameters == fitted.parameters
        assert again.summary() == fitted.summary()
        # A second generation is the same on disk, too.
        again.save(tmp_path / "again")
        first, second = (
            read_json(one / "recommender.json") for one in (tmp_path, tmp_path / "again")
        )
        assert first["state"] == second["state"]
        assert first["files"] == second["files"]

    def test_a_second_fit_gives_the_same_ranks(self, fitted: Recommender, ground: Ground) -> None:
        second = ground.model(fitted.domain).fit(ground.rows)
        asked = fitted.domain.choices(ground.asked)
        pd.testing.assert_frame_equal(second.rank(asked), fitted.rank(asked), check_exact=True)

    def test_recommends_every_feasible_configuration_once_and_no_other(
        self, fitted: Recommender, ground: Ground
    ) -> None:
        spec = fitted.domain.spec
        for gpu in ground.gpus:
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
        self, fitted: Recommender, ground: Ground
    ) -> None:
        table = fitted.rank(fitted.domain.choices(ground.asked))
        predicted = table["predicted_ms"]
        if not ground.timed:
            assert predicted.isna().all()
            return
        assert (predicted > 0).all()
        if ground.taught:
            # Of what it learnt from it knows how long it takes, in ms.
            known = fitted.rank(ground.rows)
            near = known["time_ms"] < 1.5 * known.groupby(["gpu", "n"])["time_ms"].transform("min")
            apart = np.log(known["predicted_ms"] / known["time_ms"])[near]
            assert np.abs(apart).median() < 0.01
        if ground.cautious:
            # The order is that of cautious losses, not of times.
            return
        for _, mine in table.groupby(["gpu", "n"]):
            # Scores are steps of .2 %, so neighbours may swap by that much and no more.
            logs = np.log(mine["predicted_ms"].to_numpy())
            assert (np.diff(logs) >= -0.0021).all()

    def test_beats_a_random_draw_on_the_training_problems(
        self, fitted: Recommender, ground: Ground
    ) -> None:
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

    def test_refuses_strange_gpus_and_problems(self, fitted: Recommender, ground: Ground) -> None:
        good = ground.far[0]
        with pytest.raises(UserError, match="unknown GPU 'h100'"):
            fitted.recommend("h100", [good])
        with pytest.raises(UserError, match="dtype: 'float8' is not among"):
            fitted.recommend(ground.gpus[0], [good, {**good, "dtype": "float8"}])

    def test_saved_files_are_of_formats_that_cannot_run_code(
        self, fitted: Recommender, tmp_path: Path
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

    def test_a_pickle_in_place_of_a_model_is_refused_and_not_run(
        self, fitted: Recommender, tmp_path: Path
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
        self, fitted: Recommender, tmp_path: Path, share: float
    ) -> None:
        fitted.save(tmp_path)
        model = next(tmp_path.glob("model.*"), tmp_path / "recommender.json")
        content = model.read_bytes()
        model.write_bytes(content[: int(share * len(content))])
        with pytest.raises(UserError) as caught:
            type(fitted).load(tmp_path, fitted.domain)
        assert model.name in str(caught.value)

    def test_a_model_of_another_kind_is_a_user_error(
        self, fitted: Recommender, tmp_path: Path
    ) -> None:
        fitted.save(tmp_path)
        other = recommender_class("tree" if type(fitted).__name__ != "TreeRecommender" else "knn")
        with pytest.raises(UserError, match=f"holds a {type(fitted).__name__}"):
            other.load(tmp_path, fitted.domain)
