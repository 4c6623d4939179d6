"""Few builds for a load: the best sets, tables of them alone, and what is measured stays exact."""

import numpy as np
import pytest
from answer_forms import Answering
from drawn_questions import drawn
from scipy.optimize import Bounds, LinearConstraint, milp

from launchwise.experiment.load import Load
from launchwise.exporting.building import answer_table
from launchwise.exporting.few import LOST, Weighed, build_of, chosen, limited, times_of
from launchwise.learning.answers import MEASURED
from launchwise.tables.times import judged_times

DRAWN = 20


def least(costs, most):
    """The least sum of costs with so many columns, by integer programming."""
    rows, columns = costs.shape
    # Which columns are taken, then which of them each row has.
    prices = np.concatenate([np.zeros(columns), costs.ravel()])
    has_one = np.hstack([np.zeros((rows, columns)), np.kron(np.eye(rows), np.ones(columns))])
    taken = np.hstack([-np.tile(np.eye(columns), (rows, 1)), np.eye(rows * columns)])
    count = np.concatenate([np.ones(columns), np.zeros(rows * columns)])[None, :]
    limits = [
        LinearConstraint(has_one, 1, 1),
        LinearConstraint(taken, -np.inf, 0),
        LinearConstraint(count, 0, most),
    ]
    found = milp(prices, constraints=limits, integrality=np.ones(len(prices)), bounds=Bounds(0, 1))
    assert found.success
    return found.fun


@pytest.mark.parametrize("seed", range(DRAWN))
def test_sets_cost_what_the_best_sets_cost(seed):
    dice = np.random.default_rng(seed)
    costs = np.exp(dice.gamma(1, 0.5, (30, 12))) * np.minimum(dice.zipf(1.5, 30), 1000)[:, None]
    costs[dice.random(costs.shape) < 0.05] = LOST
    (found,) = chosen(costs, [4])
    assert costs[:, found].min(axis=1).sum() == pytest.approx(least(costs, 4))
    # A set that misses the best by a column is told from it.
    assert costs[:, found[1:]].min(axis=1).sum() > least(costs, 4) * 1.001


@pytest.fixture(scope="module")
def judged(sweeps, stencil_spec):
    return {gpu: judged_times(rows, None, stencil_spec) for gpu, rows in sweeps.items()}


@pytest.fixture(scope="module")
def weighed(table, judged):
    devices = {table.number(gpu): rows for gpu, rows in judged.items()}
    counts = {one.problem: 1 + place for place, one in enumerate(table.entries[::3])}
    return Weighed.of(table, [*devices], counts, devices)


def test_expected_times_are_those_of_recommend(table):
    device = table.number("card")
    shapes = [(n, dtype, 2) for n in (211, 333, 478) for dtype in ("float32", "float64")]
    times = times_of(table, device, [tuple(table.problem(one).values()) for one in shapes])
    for row, shape in enumerate(shapes):
        first = table.answer("card", table.problem(shape)).suggestions[0]
        assert times.best_ms[row] == first.expected_ms
        assert times.usual_ms[row] / times.best_ms[row] == pytest.approx(first.gain, rel=1e-6)


def test_one_build_more_is_never_worse_and_all_of_them_are_the_best(weighed):
    steps = weighed.steps([1, 2, 4, 999])
    assert [one.count for one in steps[:2]] == [1, 2]
    reached = [one.reached for one in steps]
    assert reached == sorted(reached)
    assert steps[-1].count == len(weighed.builds())
    assert reached[0] < reached[-1] == pytest.approx(1, abs=0.02)


def test_measured_problems_have_the_fastest_of_the_builds(table, weighed, judged):
    (step,) = weighed.steps([2])
    made = limited(weighed, step)
    kept = {build_of(made.configuration(place), made.spec) for place in made.stored.candidates}
    assert len(kept) == 2
    checked = 0
    for entry in made.entries:
        if entry.basis != MEASURED:
            continue
        rows = judged[made.devices[entry.device].name]
        for name, value in made.problem(entry.problem).items():
            rows = rows[rows[name] == value]
        named = rows[made.spec.tunable_columns].to_dict("records")
        listed = [made.configuration(place) for place in made.stored.candidates]
        own = rows[[each in listed for each in named]]
        assert entry.time_ms == own["time_ms"].min()
        checked += 1
    assert checked > 5


def test_every_form_of_a_table_of_few_builds_gives_one_answer(weighed, tmp_path):
    (step,) = weighed.steps([3])
    made = limited(weighed, step)
    questions = drawn(made, 200, np.random.default_rng(5))
    assert Answering(made, tmp_path / "export").disagreements(questions) == []


def test_problems_of_a_load_are_answered_beforehand(final):
    shapes = [(n, dtype, 2) for n in (211, 333) for dtype in ("float32", "float64")]
    known = answer_table(final, "tiles")
    named = [tuple(known.problem(each).values()) for each in shapes]
    load = Load(known.spec.workload, known.parameters, dict.fromkeys(named, 3), {})
    table = answer_table(final, "tiles", load=load)
    new = {one.problem for one in table.entries if one.device == table.number("card")}
    assert {*named} <= new
    assert not {*named} <= {one.problem for one in known.entries}
