"""Columns, formulas and choices: the features that models learn from."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from stencil import GPUS, cases

from launchwise.base.expressions import Formulas
from launchwise.base.vectors import Columns
from launchwise.learning.features import Domain
from launchwise.learning.row_arrays import configuration_codes, regrets
from launchwise.learning.splits import Case, case_codes
from launchwise.workloads import space
from launchwise.workloads.parts import GPU_NAMES
from tests.support.samples import profile

profiles = st.builds(
    lambda threads, sms, shared, l2, memory: profile(
        max_threads_per_block=threads, sms=sms, shared_per_sm_bytes=shared, l2_bytes=l2,
        memory_bytes=memory,
    ),
    st.sampled_from([64, 256, 512, 1000, 1024]),
    st.integers(1, 200),
    st.integers(2**14, 2**18),
    st.integers(2**20, 2**27),
    st.sampled_from([2**30, 2**36]),
)  # fmt: skip


def problems(spec):
    sizes = st.one_of(st.integers(20, 2048), st.sampled_from([256, 512, 1024, 1056]))
    return st.fixed_dictionaries(
        {
            "n": sizes,
            **{
                name: st.sampled_from(spec.problem[name].values or [])
                for name in ("dtype", "order")
            },
        }
    )


def expressions(spec):
    of_variants = [text for variant in spec.variants.values() for text in variant.constraints]
    work = [spec.work.items, spec.work.bytes, spec.work.flop, spec.work.footprint_bytes]
    return [*spec.features.values(), *spec.constraints, *of_variants, *work]


@settings(max_examples=25)
@given(st.data())
def test_columns_equal_formulas_row_by_row(stencil_spec, data):
    every = space.universe(stencil_spec)
    drawn = data.draw(
        st.lists(st.tuples(problems(stencil_spec), st.sampled_from(every), profiles), min_size=1,
                 max_size=8)
    )  # fmt: skip
    names = [
        {**problem, **configuration, **space.gpu_facts(gpu.model_dump()), **gpu.features()}
        for problem, configuration, gpu in drawn
    ]
    table = pd.DataFrame(names)
    arrays = {
        name: values.to_numpy() if values.dtype.kind in "iuf" else values.to_numpy(dtype=object)
        for name, values in table.items()
    }
    columns = Columns(stencil_spec.derived, {str(name): one for name, one in arrays.items()})
    formulas = Formulas(stencil_spec.derived)
    for text in expressions(stencil_spec):
        expected = [formulas.value(text, one) for one in names]
        assert columns.value(text).tolist() == pytest.approx(expected, rel=1e-14), text


def test_columns_take_the_branch_of_each_row_alone():
    columns = Columns({"twice": "2 * b"}, {"a": np.array([0, 4, 8]), "b": np.array([1, 0, 2])})
    assert columns.value("a / b if b else 7").tolist() == [0, 7, 4]
    assert columns.value("b in (0, 2) and not a == 8").tolist() == [False, True, False]
    assert columns.value("0 < b <= 1 or twice == 4").tolist() == [True, False, True]
    assert columns.value("3").tolist() == [3, 3, 3]
    # 2^64 and above: float64 instead of a silent wrap.
    assert columns.value("(a + 1) ** 40")[2] == pytest.approx(9.0**40)
    with pytest.raises(ValueError, match="needs c"):
        columns.value("a + c")


@settings(max_examples=10)
@given(st.data())
def test_choices_are_what_the_space_says(stencil_spec, data):
    # What fits one GPU is not what fits the other.
    gpus = {"a": data.draw(profiles), "b": profile(max_threads_per_block=128)}
    problem = data.draw(problems(stencil_spec))
    asked = [Case(gpu, problem) for gpu in data.draw(st.permutations(["a", "b"]))]
    table = Domain(stencil_spec, gpus).choices(asked)
    codes, keys = case_codes(table, stencil_spec)
    assert keys == [case.key for case in asked]
    for number, case in enumerate(asked):
        found = table[codes == number][stencil_spec.tunable_columns].to_dict("records")
        facts = space.gpu_facts(gpus[case.gpu].model_dump())
        assert set(facts) == set(GPU_NAMES)
        assert found == space.configurations(stencil_spec, case.problem, facts)
        assert found[0] == space.baseline(stencil_spec)


def test_candidates_narrow_the_choices_and_leave_the_baseline(stencil_spec):
    narrow = Domain(stencil_spec, {"test": profile()}, {"variant": ["block3d"], "bx": [32, 64]})
    table = narrow.choices([Case("test", {"n": 100, "dtype": "float32", "order": 2})])
    assert table["variant"].tolist() == ["linear"] + ["block3d"] * (len(table) - 1)
    assert set(table["bx"][1:]) == {32, 64}
    assert narrow.is_candidate(table).all()


def test_constraints_of_a_study_hold_problem_by_problem(stencil_spec):
    # What nobody measured at a size is no candidate there.
    rule = "bx == (32 if n <= 100 else 64)"
    kept = Domain(stencil_spec, {"test": profile()}, {"variant": ["block3d"]}, [rule])
    problems = [{"n": n, "dtype": "float32", "order": 2} for n in (100, 200)]
    table = kept.choices([Case("test", problem) for problem in problems])
    for n, bx in ((100, 32), (200, 64)):
        own = table[table["n"] == n]
        assert own["variant"].iloc[0] == "linear"
        assert set(own["bx"].iloc[1:]) == {bx}
    assert kept.is_candidate(table).all()
    swapped = table.assign(n=300 - table["n"])
    assert kept.is_candidate(swapped).tolist() == (table["variant"] == "linear").tolist()


def test_the_baseline_is_usual_where_no_rule_holds(stencil_spec):
    block = next(one for one in space.universe(stencil_spec) if one["variant"] == "block3d")
    chosen = space.used(block, stencil_spec)
    rule = {"when": "n > 150", "configuration": chosen, "reason": "it is"}
    asked = Domain(stencil_spec, {"test": profile()}, usual=[rule])
    table = pd.DataFrame([block, space.baseline(stencil_spec)] * 2)
    table = table.assign(gpu="test", n=[100, 100, 200, 200], dtype="float32", order=2)
    assert asked.is_usual(table).tolist() == [False, True, True, False]


def test_a_feature_that_is_no_number_is_named(stencil_spec, rows):
    changed = {"features": {"size": "n", "huge": "n * 1e308"}}
    broken = Domain(stencil_spec.model_copy(update=changed), {gpu: profile(gpu) for gpu in GPUS})
    named = "feature 'huge' is not finite for every row"
    with np.errstate(over="ignore"), pytest.raises(ValueError, match=named):
        broken.features(rows)


def test_no_cases_have_no_choices(domain):
    assert domain.choices([]).empty


def test_bounds_are_least_bytes_over_copy_bandwidth(domain):
    table = domain.choices(cases((256,)))
    codes, _ = case_codes(table, domain.spec)
    for number, gpu in enumerate(GPUS):
        gbs = domain.profiles[gpu].ceilings.copy_bandwidth_gbs
        expected = 4 * 4 * (256 - 8) ** 3 / (gbs * 1e9) * 1e3
        assert domain.bounds_ms(table)[codes == number] == pytest.approx(expected)


def test_a_classifier_sees_no_tunable(domain):
    seen = set(domain.problem_features)
    assert {"n", "itemsize", "radius", "planes_over_l2", "gpu_sms"} <= seen
    assert not seen & {"bx", "threads", "halo", "row_misalignment", "waves", "is_linear"}


def test_remembered_features_are_the_features(domain, rows):
    kept = domain.keeping_features(rows)
    part = kept.iloc[::7].reset_index(drop=True)
    fresh = domain.features(part[rows.columns])
    pd.testing.assert_frame_equal(domain.features(part), fresh)


def test_regret_is_the_log_of_the_ratio_to_the_best_of_the_case(domain):
    table = domain.choices(cases((256,))).groupby("gpu", sort=False).head(2)
    table = table.assign(time_ms=[2.0, 1.0, 5.0, 15.0])
    expected = [np.log(2), 0, 0, np.log(3)]
    assert regrets(table, domain.spec) == pytest.approx(expected)


def test_codes_and_labels_tell_every_configuration_apart(domain):
    every = pd.DataFrame(space.universe(domain.spec))
    codes = configuration_codes(every, domain.spec.tunable_columns, domain.spec)
    assert len(set(codes.tolist())) == len(every)
    # The same numbers whatever else the table holds.
    part = every.iloc[5:90:9]
    assert (
        configuration_codes(part, domain.spec.tunable_columns, domain.spec).tolist()
        == codes[5:90:9].tolist()
    )
    with pytest.raises(ValueError, match=r"bx holds .*7.*unknown to the spec"):
        configuration_codes(every.assign(bx=7), ["bx"], domain.spec)
