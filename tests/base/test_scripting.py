"""What a script's ``main`` gets from its rule, and how a script ends."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from launchwise.base.errors import Interrupted, UserError
from launchwise.base.scripting import EXIT_RESUMABLE, Job, arguments_of, run_job
from launchwise.base.typed import Strict


class Limits(Strict):
    """Settings of a stage."""

    most: int
    share: float = 0.5


def job(**given: dict[str, Any]) -> Job:
    """A job of the rule ``stage``."""
    return Job("stage", [], {"job": {"threads": 3, "log": []}, **given})


def test_parameters_are_filled_by_their_names_as_their_annotations_say():
    def main(
        sweep: Path,
        profiles: list[Path],
        gpu: str,
        shard: int,
        limits: Limits,
        by_name: dict[str, Limits],
        problems: list[dict[str, Any]],
        threads: int,
        output: Path,
        usual: Path | None,
        guesses: Path | None,
        peers: Path | None = None,
    ) -> None: ...

    problem = {"n": 64, "dtype": "float32"}
    given = job(
        input={"sweep": "s", "profiles": ["a", "b"], "usual": [], "guesses": ["g"], "waited": "w"},
        output={"output": ["o"]},
        params={
            "limits": {"most": 3},
            "by_name": {"x": {"most": 1, "share": 1}},
            "problems": [problem],
            "code": "digest",
        },
        wildcards={"gpu": "h200", "shard": "2"},
    )
    assert arguments_of(main, given) == {
        "sweep": Path("s"),
        "profiles": [Path("a"), Path("b")],
        "gpu": "h200",
        "shard": 2,
        "limits": Limits(most=3),
        "by_name": {"x": Limits(most=1, share=1.0)},
        "problems": [problem],
        "threads": 3,
        "output": Path("o"),
        "usual": None,
        "guesses": Path("g"),
    }


def test_one_file_is_a_list_of_files_where_a_list_is_asked_for():
    def main(sweeps: list[Path]) -> None: ...

    for given, asked in (("s", [Path("s")]), (["s"], [Path("s")]), ([], [])):
        assert arguments_of(main, job(input={"sweeps": given})) == {"sweeps": asked}


def one(sweep: Path) -> None: ...


def limited(limits: Limits) -> None: ...


@pytest.mark.parametrize(
    ("main", "given", "said"),
    [
        (one, {"input": {"sweeps": "s"}}, "rule stage: sweep: main of its script asks for an unkn"),
        (
            one,
            {"input": {"sweep": "s"}, "output": {"sweep": "t"}},
            "rule stage: sweep: main of its",
        ),
        (one, {"input": {"sweep": ["s", "t"]}}, "rule stage: sweep: is ['s', 't'] in input"),
        (one, {"input": {"sweep": []}}, "rule stage: sweep: is None in input"),
        (limited, {"params": {"limits": {"most": "many"}}}, "rule stage: limits.most: is {'most'"),
        (limited, {"params": {"limits": {"least": 1}}}, "rule stage: limits.most: is {'least'"),
    ],
)
def test_what_does_not_fit_is_said_in_one_line(main, given, said):
    with pytest.raises(UserError) as caught:
        arguments_of(main, job(**given))
    assert str(caught.value).startswith(said)


def test_an_interrupted_script_can_be_resumed(own_log, tmp_path):
    def main() -> None:
        raise Interrupted("signal 15: 3 rows are kept")

    with pytest.raises(SystemExit) as ended:
        run_job(main, Job("stage", [str(tmp_path / "log")], {}))
    assert ended.value.code == EXIT_RESUMABLE == 75
    said = "W signal 15: 3 rows are kept; run the same command again to resume\n"
    assert (tmp_path / "log").read_text() == said


def _numpy(path: Path) -> None:
    np.savez_compressed(path, array=np.random.default_rng(1).random(1 << 16))


def _parquet(path: Path) -> None:
    pd.DataFrame({"x": np.random.default_rng(1).random(1 << 16)}).to_parquet(path)


def _booster(path: Path) -> None:
    (path.parent / "ballast").write_bytes(bytes(48 << 10))
    raise RuntimeError("a library could not save its model")


@pytest.mark.parametrize("writes", [_numpy, _parquet, _booster])
def test_a_full_disk_is_one_line_whichever_library_met_it(
    writes, own_log, small_disk, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    Path("results").symlink_to(small_disk)
    with pytest.raises(SystemExit) as ended:
        run_job(lambda: writes(Path("results/model")), Job("stage", ["stage.log"], {}))
    assert ended.value.code == 1
    said = capsys.readouterr().err
    assert said.startswith("E launchwise: results")
    assert said.endswith(
        "cannot be written: No space left on device: free space, then run the same command again\n"
    )
    assert said.count("\n") == 1


def test_a_log_that_cannot_be_written_is_one_line(own_log, tmp_path, capsys):
    (tmp_path / "file").touch()
    with pytest.raises(SystemExit):
        run_job(lambda: None, Job("stage", [str(tmp_path / "file" / "log")], {}))
    assert capsys.readouterr().err.endswith("log: cannot be written: File exists\n")


def test_an_error_of_our_own_keeps_its_traceback(own_log, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("results").mkdir()

    def main() -> None:
        raise OSError(2, "No such file")

    with pytest.raises(OSError, match="No such file"):
        run_job(main, Job("stage", ["stage.log"], {}))
    assert Path("stage.log").read_text().startswith("E internal error in launchwise; please")
