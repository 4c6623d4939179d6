"""Answers where Triton kernels are launched: the file, its lookup, the decorator."""

import json
import shutil
import subprocess
import sys
import warnings
from pathlib import Path
from runpy import run_path
from types import SimpleNamespace
from typing import Any

import pytest
from edits import with_value
from samples import ROOT
from triton_examples import ANSWERS, plain, scaled_answers, scaled_spec, scaled_table

import launchwise
from launchwise.base import triton_launches
from launchwise.base.errors import UserError
from launchwise.base.triton_answers import AnswerError, Answers
from launchwise.base.typed import read_yaml
from launchwise.exporting.triton import MODULE, write_triton

CASES = read_yaml(ROOT / "tests/exporting/data/mistakes.yaml")

BIG = "Made-up Big 80GB"


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """The file of answers."""
    return scaled_answers(tmp_path_factory.mktemp("answers"))[1]


class Jit:
    """What ``triton.jit`` returns, as far as decorators see it: it notes its launches."""

    def __init__(self, fn, fixed):
        self.fn, self.launches = fn, list[dict[str, Any]]()
        self.arg_names = list(fn.__code__.co_varnames)
        self.params = [SimpleNamespace(name=n, is_constexpr=n in fixed) for n in self.arg_names]

    def run(self, *args, grid, warmup, **kwargs):
        bound = {**dict(zip(self.arg_names, args, strict=False)), **kwargs}
        size = grid(bound) if callable(grid) else grid
        self.launches.append({**kwargs, "grid": size, "warmup": warmup})
        return "launched"


def scaled(y, x, rows, n, factor, BLOCK, HALF):
    """Takes the place of a kernel's function."""


def kernel():
    return Jit(scaled, ("BLOCK", "HALF"))


def tensor(dtype, *shape):
    return SimpleNamespace(dtype=f"torch.{dtype}", shape=shape)


def arguments(rows, n, dtype="float32"):
    return tensor(dtype, rows, n), tensor(dtype, rows, n), rows, n, 2.0


def test_a_file_says_what_its_answers_rest_on(made):
    content = json.loads(made.read_text())
    assert content["problem"] == {"rows": "rows", "n": "n", "dtype": "y.dtype"}
    assert content["fallback"] == {"BLOCK": 64, "num_warps": 1, "HALF": 32}
    assert content["tensors"] == {"y": "dtype", "x": "dtype"}
    module = run_path(str(made.parent / content["decision"]))
    assert module["COMMITS"] == ["c0ffee"]
    assert "2020-01-01" in module["MEASURED"]["big"]
    third = Answers(made).answer("big", {"rows": 16, "n": 1000, "dtype": "float16"})
    assert third["configuration"] == {"BLOCK": 256, "num_warps": 4, "HALF": 128}
    assert (third["basis"], third["time_ms"], third["gain"]) == ("measured", 0.5, 1.2)
    assert third["interval_ms"] == (0.45, 0.55)


def test_a_launch_takes_the_configuration_of_its_arguments(made):
    jit = kernel()
    decorated = launchwise.autotuned(made, device=BIG)(jit)
    for _ in range(2):  # The second of each is kept.
        for _, rows, n, dtype, block, warps in ANSWERS[:4]:
            grid = lambda meta: (meta["rows"], -(-meta["n"] // meta["BLOCK"]))  # noqa: E731
            assert decorated[grid](*arguments(rows, n, dtype)) == "launched"
            last = jit.launches[-1]
            assert (last["BLOCK"], last["num_warps"], last["HALF"]) == (block, warps, block // 2)
            assert last["grid"] == (rows, -(-n // block))
            assert not last["warmup"]
    y, x, rows, n, factor = arguments(16, 1000, "float16")
    decorated[(1,)](y, x, factor=factor, n=n, rows=rows)
    assert jit.launches[-1]["BLOCK"] == 256
    decorated[(1,)](*arguments(500, 1000))
    assert jit.launches[-1]["BLOCK"] == 256
    answer = decorated.answer(*arguments(500, 1001))
    assert (answer["basis"], answer["problem"]["n"]) == ("beyond", 1000)
    assert answer["outside"] == 1002 / 1001


def test_parameters_may_be_read_from_shapes_and_by_functions(made):
    jit = kernel()
    places = {"rows": "x.shape[0]", "n": lambda given: given["x"].shape[1] // 2}
    decorated = launchwise.autotuned(made, device=BIG, problem=places)(jit)
    for rows, n, dtype, block in ((16, 2000, "float16", 256), (1, 200, "float32", 64)) * 2:
        decorated[(1,)](*arguments(rows, n, dtype))
        assert jit.launches[-1]["BLOCK"] == block


def test_each_device_has_its_own_answers(made, monkeypatch):
    """PyTorch, which names devices, is not among the libraries of the tests."""
    names, current = [BIG, "Made-up Small"], [0]
    cuda = SimpleNamespace(
        is_available=lambda: True,
        device_count=lambda: len(names),
        current_device=lambda: current[0],
        get_device_name=lambda number: names[number],
    )
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(cuda=cuda))
    triton_launches.name_of.cache_clear()
    jit = kernel()
    decorated = launchwise.autotuned(made)(jit)
    for number, block in ((0, 128), (1, 64)) * 2:
        current[0] = number
        decorated[(1,)](*arguments(16, 1000))
        assert jit.launches[-1]["BLOCK"] == block
    triton_launches.name_of.cache_clear()


def test_an_unknown_device_takes_the_fallback_and_says_so_once(made):
    jit = kernel()
    decorated = launchwise.autotuned(made, device="no such card")(jit)
    said = "scaled has no answer for no such card and float32"
    with pytest.warns(RuntimeWarning, match=said) as caught:
        decorated[(1,)](*arguments(16, 1000))
    assert [Path(each.filename) for each in caught] == [Path(__file__)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for n in (7, 8, 7):
            decorated[(1,)](*arguments(16, n))
    assert {each["BLOCK"] for each in jit.launches} == {64}


def test_a_launch_that_does_not_fit_is_one_line(made):
    decorated = launchwise.autotuned(made, device=BIG)(kernel())
    with pytest.raises(AnswerError, match=r"json: problem\.n: this launch of scaled has no n$"):
        decorated[(1,)](*arguments(16, 1000)[:3])
    with pytest.raises(AnswerError, match=r"problem\.rows: rows is 1\.5 in this launch"):
        decorated[(1,)](*arguments(16, 1000)[:2], 1.5, 1000, 2.0)
    with pytest.raises(AnswerError, match="BLOCK: is set by the launch and by the file"):
        decorated[(1,)](*arguments(16, 1000), BLOCK=64)


# Nothing there.
LACKING = (["fallback"], ..., "is damaged (KeyError: 'fallback'): export it anew")


@pytest.mark.parametrize(("place", "value", "said"), [*CASES["triton"], LACKING])
def test_a_wrong_file_is_one_line(made, tmp_path, place, value, said):
    content = with_value(json.loads(made.read_text()), place, value)
    shutil.copy(made.with_suffix(".py"), tmp_path)
    path = tmp_path / "wrong.json"
    path.write_text(json.dumps(content))
    with pytest.raises(AnswerError) as caught:
        launchwise.autotuned(path)(kernel())
    assert str(caught.value).startswith(f"{path}: {said}")
    assert "\n" not in str(caught.value)


def test_a_decision_that_is_missing_or_broken_is_one_line(made, tmp_path):
    path = tmp_path / made.name
    shutil.copy(made, path)
    missing = r"sizes\.json: decision: scaled_sizes\.py is missing: copy it beside this file$"
    with pytest.raises(AnswerError, match=missing):
        launchwise.autotuned(path)(kernel())
    path.with_suffix(".py").write_text("def recommend(")
    decorated = launchwise.autotuned(path, device=BIG)(kernel())
    with pytest.raises(AnswerError, match=r"decision: scaled_sizes\.py is broken: .*never closed"):
        decorated[(1,)](*arguments(17, 1000))


def test_a_file_that_is_none_is_one_line(tmp_path):
    with pytest.raises(AnswerError, match=r"none\.json: No such file or directory$"):
        launchwise.autotuned(tmp_path / "none.json")(kernel())
    (tmp_path / "cut.json").write_text('{"format": ')
    with pytest.raises(AnswerError, match="is no JSON"):
        launchwise.autotuned(tmp_path / "cut.json")(kernel())


RANK = Path(__file__).with_name("data").joinpath("rank.txt").read_text()


def test_ranks_agree_and_need_nothing_but_the_three_files(made):
    folder = made.parent
    assert {path.name for path in folder.iterdir()} == {MODULE, made.name, "scaled_sizes.py"}
    program = f"import sys; sys.path.insert(0, {str(folder)!r})\n{RANK}"
    ranks = [
        subprocess.Popen(
            [sys.executable, "-I", "-c", program, str(made), str(rank)],
            stdout=subprocess.PIPE,
            text=True,
        )
        for rank in range(4)
    ]
    said = {rank.communicate()[0] for rank in ranks}
    assert [rank.returncode for rank in ranks] == [0] * 4
    assert len(said) == 1
    assert len(json.loads(said.pop())) == 9 * 31 * 2


def test_the_decorator_loads_no_library_of_launchwise(made):
    program = (
        "import sys, launchwise, launchwise.base.triton_launches\n"
        "heavy = {'numpy', 'pandas', 'sklearn', 'pydantic', 'yaml', 'typer', 'torch', 'triton'}\n"
        "assert not heavy & {*sys.modules}, heavy & {*sys.modules}\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_answers_with_another_language_are_refused(tmp_path):
    spec = scaled_spec(tmp_path / "scaled")
    table = scaled_table(spec)
    changed = plain(table)
    changed["entries"][0]["configuration"][0] = "cuda"
    with pytest.raises(UserError, match=r"scaled_sizes answers with .*cuda 1 times"):
        write_triton(tmp_path / "out", changed, spec, "")


class Heuristics:
    """What ``triton.heuristics`` returns: it computes constexprs at each launch."""

    def __init__(self, fn, values):
        self.fn, self.values, self.arg_names = fn, values, fn.arg_names

    def run(self, *args, **kwargs):
        given = {**dict(zip(self.arg_names, args, strict=False)), **kwargs}
        return self.fn.run(*args, **kwargs, **{n: one(given) for n, one in self.values.items()})


def with_even(made, folder):
    """The file of a study with the macro ``EVEN`` in the place of ``HALF``."""
    content = json.loads(made.read_text())
    content["computed"] = {"EVEN": "n % BLOCK == 0"}
    del content["fallback"]["HALF"]
    shutil.copy(made.with_suffix(".py"), folder)
    path = folder / "even.json"
    path.write_text(json.dumps(content))
    return path


def even():
    def scaled(y, x, rows, n, factor, BLOCK, EVEN, MODE=0):
        """Takes the place of a kernel's function."""

    return Jit(scaled, ("BLOCK", "EVEN", "MODE"))


def test_a_constexpr_of_no_tunable_comes_from_a_heuristic_or_the_launch(made, tmp_path):
    path = with_even(made, tmp_path)
    jit = even()
    below = Heuristics(jit, {"EVEN": lambda given: given["n"] % given["BLOCK"] == 0})
    decorated = launchwise.autotuned(path, device=BIG)(below)
    for n, is_even in ((1000, False), (1024, True)) * 2:
        decorated[(1,)](*arguments(16, n))
        assert (jit.launches[-1]["BLOCK"], jit.launches[-1]["EVEN"]) == (128, is_even)
    stated = launchwise.autotuned(path, device=BIG)(jit)
    stated[(1,)](*arguments(16, 1000), EVEN=False)
    assert jit.launches[-1]["EVEN"] is False
    said = (
        r"even\.json: EVEN: has no value: @triton\.heuristics below autotuned or the launch gives "
        r"it \(measured with n % BLOCK == 0\)$"
    )
    with pytest.raises(AnswerError, match=said):
        stated[(1,)](*arguments(16, 2000))


def test_a_cache_without_triton_is_one_line(made, monkeypatch):
    monkeypatch.setitem(sys.modules, "triton", None)
    with pytest.raises(AnswerError, match="Triton cannot be imported"):
        launchwise.warm_autotune_cache(kernel(), made)
