"""Which expressions leave the project, and that every language gives them the same values."""

import runpy
import shutil

import numpy as np
import pytest
import yaml
from exported import CONDITIONS, needs_gxx, said_by_cpp
from samples import ROOT

from launchwise.base.expressions import evaluate
from launchwise.base.literals import cpp_text
from launchwise.base.typed import read_yaml
from launchwise.base.vectors import Columns
from launchwise.exporting.formulas import ExportedFormulas, feature_ratio, is_condition, kind_of
from launchwise.exporting.languages import cpp_expression, python_expression
from launchwise.exporting.lookup import ratios
from launchwise.learning.features import Domain
from launchwise.workloads.launch_shapes import inlined
from launchwise.workloads.spec import load_spec
from tests.workloads.test_described_specs import CONVOLUTION

CASES = read_yaml(ROOT / "tests/exporting/data/formulas.yaml")

KINDS = {"a": "number", "b": "number", "c": "text"}
EXPORTED = CASES["exported"]
KEPT = CASES["kept"]
VALUES = [{"a": a, "b": b, "c": c} for a in range(-9, 10, 3) for b in (-4, 0, 1, 6) for c in "xyz"]


def test_kinds_of_what_leaves():
    assert {text: kind_of(text, KINDS) for text in EXPORTED} == EXPORTED
    assert [text for text in KEPT if kind_of(text, KINDS) is not None] == []


def test_features_leave_as_one_fraction():
    for text in CASES["fractions"]:
        over, under = feature_ratio(text, KINDS)
        for names in VALUES:
            if names["a"] > 0 and names["b"] > 0:
                found = evaluate(over, names) / evaluate(under, names)
                expected = evaluate(text.removeprefix("log2"), names)
                assert found == pytest.approx(expected), (text, names)
    over_nothing = Columns({}, {"a": np.array([6, 6]), "b": np.array([0, 4])})
    assert ratios(over_nothing, ("a", "b")).tolist() == [6.0, 1.5]
    # What is the same for all candidates may stay.
    assert feature_ratio("a / gpu_copy_bandwidth_gbs", KINDS) == ("a", "1")
    assert feature_ratio("a / b * 0.5", KINDS) is None


def test_of_many_rows_what_fits_is_what_fits_of_each():
    fits = {"x": ("m > 4",), "y": ("n % 2 == 0", "m < 9")}
    own = ExportedFormulas(follows=(("m", "n + 1"),), fits=fits)
    variants, sizes = (np.repeat(["x", "y", "z"], 12).astype(object), np.tile(np.arange(12), 3))
    found = own.fitting(Columns({}, {"variant": variants, "n": sizes, "m": np.zeros(36, int)}))
    asked = zip(variants, sizes.tolist(), strict=True)
    moved = [own.moved({"variant": one, "m": 0}, {"n": n}, {}) for one, n in asked]
    assert found.tolist() == [each is not None for each in moved]
    assert 12 < found.sum() < 36


def test_a_variant_leaves_with_all_of_its_launch_or_with_none(tmp_path):
    for folder in ("whole", "half"):
        shutil.copytree(CONVOLUTION, tmp_path / folder / CONVOLUTION.name)
    path = tmp_path / "half" / CONVOLUTION.name / "spec.yaml"
    raw = yaml.safe_load(path.read_text())
    # What divides without a rest in Python does not in C++.
    raw["variants"]["tiled"]["grid"][0] = f"({raw['variants']['tiled']['grid'][0]}) * 4 / 4"
    path.write_text(yaml.safe_dump(raw))
    whole, half = (
        ExportedFormulas.of(Domain(load_spec(tmp_path / folder / CONVOLUTION.name), {}))
        for folder in ("whole", "half")
    )
    assert list(whole.launches) == ["tiled"]
    assert half.launches == {}


def test_usual_choices_leave_all_together_or_not_at_all():
    spec = load_spec(CONVOLUTION)
    sizes = {"variant": "tiled", "block_size_y": 4, "tile_size_x": 1, "tile_size_y": 1}

    def exported(when, block_size_x):
        widths = {when: block_size_x, "w >= 16": "16"}
        rules = [
            {"when": each, "configuration": {**sizes, "block_size_x": width}, "reason": "usual"}
            for each, width in widths.items()
        ]
        return len(ExportedFormulas.of(Domain(spec, {}, usual=rules)).usual)

    assert exported("w > 100", "w // 100 * 16") == 2
    assert exported("w > 100", "w / 100 * 16") == 0
    assert exported("w / 100 > 1", "w // 100 * 16") == 0


@pytest.mark.parametrize(("widths", "holds"), [([16, 32], True), ([32], False)])
def test_a_usual_choice_that_is_no_candidate_holds_nowhere(widths, holds):
    sizes = {"block_size_x": 16, "block_size_y": 4, "tile_size_x": 1, "tile_size_y": 1}
    usual = {name: str(value) for name, value in sizes.items()}
    rule = {"when": "w >= 16", "configuration": {"variant": "tiled", **usual}, "reason": "usual"}
    domain = Domain(load_spec(CONVOLUTION), {}, {"block_size_x": widths}, usual=[rule])
    (exported,) = ExportedFormulas.of(domain).usual
    names = {"w": 64, "h": 64, "variant": "tiled", **sizes}
    assert all(evaluate(text, names) for text in exported.conditions) == holds


def test_a_condition_may_join_numbers():
    assert is_condition("a or (b and c == 'x')", KINDS)
    assert is_condition("not (a or b)", KINDS)
    assert not is_condition("a or c", KINDS)
    assert not is_condition("c", KINDS)
    assert not is_condition("a / 2 > 1", KINDS)


def test_python_says_the_same(tmp_path):
    lines = ["def _ceil_div(a, b): return -(-a // b)", "def _round_up(a, b): return -(-a // b) * b"]
    lines += ["def _next_power_of_2(a): return 1 << max(a - 1, 0).bit_length()"]
    listed = ", ".join(f"lambda names: {python_expression(text, [])}" for text in EXPORTED)
    (tmp_path / "exported.py").write_text("\n".join([*lines, f"found = [{listed}]"]))
    found = runpy.run_path(str(tmp_path / "exported.py"))["found"]
    for text, own in zip(EXPORTED, found, strict=True):
        wanted = [evaluate(text, each) for each in VALUES]
        assert [own(each) for each in VALUES] == wanted
        assert [evaluate(inlined(text, {}), each) for each in VALUES] == wanted


@needs_gxx
def test_cpp_says_the_same(tmp_path):
    members = {name: name for name in KINDS}
    expressions = [
        cpp_expression(text, members, lambda value: f"std::string_view({cpp_text(value)})")
        for text in (*EXPORTED, *CONDITIONS)
    ]
    for text in CONDITIONS:
        assert is_condition(text, KINDS)
    # A condition joins numbers, too: it is asked whether it holds.
    expressions[len(EXPORTED) :] = [f"bool({text})" for text in expressions[len(EXPORTED) :]]
    written = "".join(f"    std::cout << ({text}) << '\\n';\n" for text in expressions)
    calls = "".join(
        f"    show({each['a']}, {each['b']}, {cpp_text(str(each['c']))});\n" for each in VALUES
    )
    helpers = (ROOT / "launchwise/exporting/templates/integers.hpp").read_text()
    text = f"""\
#include <cstdint>
#include <iostream>
#include <string_view>
namespace detail {{
{helpers}}}
static void show(std::int64_t a, std::int64_t b, std::string_view c) {{
{written}}}
int main(int argc, char **) {{
{calls}    std::cout << detail::ceil_div(1, argc - 1);
}}"""
    wanted = []
    for each in VALUES:
        values = [evaluate(text, each) for text in EXPORTED]
        values += [bool(evaluate(text, each)) for text in CONDITIONS]
        wanted += [str(value if isinstance(value, str) else int(value)) for value in values]
    # By zero Python has no value: the program goes on.
    assert said_by_cpp(tmp_path, text).split() == [*wanted, "0"]
