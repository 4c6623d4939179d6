"""Which problems to measure next: what is known of a case from others, and the greedy choice."""

import numpy as np
import pandas as pd
import pytest
from samples import profile
from spaces import made

from launchwise.learning.features import Domain
from launchwise.learning.kriging import GPU, NUGGET, RATE, Distances, Kriging, Landscapes, design
from launchwise.learning.splits import Case

WIDTHS = [2**power for power in range(12)]
SPEC = made({"width": WIDTHS}, {"plain": (["width"], [])}, width=1)
DOMAIN = Domain(SPEC, {gpu: profile(gpu) for gpu in ("one", "two")})
SIZES = [2**power for power in range(4, 16)]


def case(m, gpu="one"):
    return Case(gpu, {"m": m})


def landscapes(sizes, drift, gpus=("one",)):
    """Times whose best width moves by ``drift`` steps from the smallest to the largest size."""
    rows = [
        {
            **{"gpu": gpu, "m": m, "variant": "plain", "width": width},
            "time_ms": np.exp(0.01 * (np.log2(width) - 3 - drift * (np.log2(m) - 4) / 11) ** 2),
        }
        for gpu in gpus
        for m in sizes
        for width in WIDTHS
    ]
    return Landscapes.of(pd.DataFrame(rows).astype({"gpu": object, "variant": object}), DOMAIN)


def fitted(known):
    return Kriging.fitted(known, Distances.over([case(SIZES[0]), case(SIZES[-1])]))


def test_distances_are_of_logarithms_and_of_gpus():
    distances = Distances.over([case(16), case(2**15)])
    assert distances.names == ["m", GPU]
    found = distances.between([case(16)], [case(16, "two"), case(2**15), case(32)])
    assert found[:, 0] == pytest.approx(np.array([[0, 1, 1 / 11], [1, 0, 0]]))


def test_times_that_change_with_the_size_are_known_less_far():
    still, moving = (fitted(landscapes(SIZES, drift)) for drift in (0.0, 8.0))
    assert still.rates[0] < RATE < moving.rates[0]
    # Nothing tells how GPUs differ.
    assert moving.rates[1] == pytest.approx(RATE, rel=1e-3)
    measured, asked = [case(16)], [case(2**15)]
    assert moving.posterior(measured, asked) > still.posterior(measured, asked)


def test_what_another_gpu_measured_is_as_good_as_the_gpus_are_alike():
    model = fitted(landscapes(SIZES, 8.0, ("one", "two")))
    assert model.rates[1] < RATE / 4
    (variance,) = model.posterior([case(64, "two")], [case(64)])[0]
    assert variance < 0.2


def test_leaving_one_out_is_what_the_others_predict():
    known = landscapes(SIZES[::3], 8.0)
    model = fitted(known)
    deviations, regrets = model.left_out(known)
    for place in range(len(known.cases)):
        others = [other for other in range(len(known.cases)) if other != place]
        rest = known.only(others)
        variance = model.posterior(rest.cases, [known.cases[place]])[0, 0]
        assert deviations[place] ** 2 == pytest.approx(variance, abs=1e-9)
        # Around the mean of all cases, as the closed form has it.
        mean = known.regret.mean(axis=0)
        noisy = model.covariance(rest.cases, rest.cases) + NUGGET * np.eye(len(others))
        cross = model.covariance(rest.cases, [known.cases[place]])[:, 0]
        predicted = mean + cross @ np.linalg.solve(noisy, rest.regret - mean)
        assert regrets[place] == known.regret[place, predicted.argmin()]
    assert known.regret.min() == 0 <= regrets.min() < regrets.max()


def test_steps_keep_to_the_budget_and_say_what_is_left():
    known = landscapes([16, 2**15], 8.0)
    model, targets = fitted(known), [case(size) for size in SIZES]
    candidates = [case(size) for size in SIZES[1:-1]]
    found = design(model, known.cases, candidates, targets, np.ones(10), 3.0)
    assert len(found.steps) == 3
    regrets = [found.regret, *(step.regret for step in found.steps)]
    assert regrets == sorted(regrets, reverse=True)
    # The first lies in the middle of what is known least.
    assert 6 <= np.log2(int(found.steps[0].case.problem["m"])) <= 13
    cases = [*known.cases, *(step.case for step in found.steps)]
    deviations = np.sqrt(np.diag(model.posterior(cases, targets)).clip(0))
    assert found.steps[-1].regret == pytest.approx(model.slope * deviations.mean())
    assert found.gain == pytest.approx(regrets[0] - regrets[-1])


def test_what_costs_less_comes_first_unless_one_dear_case_tells_more():
    known = landscapes([16, 2**15], 8.0)
    model, targets = fitted(known), [case(size) for size in SIZES]
    near, middle = case(20), case(2**9)

    def chosen(dear, budget):
        costs = np.array([1.0, dear])
        steps = design(model, known.cases, [near, middle], targets, costs, budget).steps
        return [step.case for step in steps]

    assert chosen(1.0, 1.0) == [middle]
    assert chosen(100.0, 101.0) == [near, middle]
    # By gain per cost the near one comes first, and leaves too little for the other.
    assert chosen(100.0, 100.0) == [middle]
    assert chosen(100.0, 99.0) == [near]
    assert chosen(100.0, 0.5) == []


def test_what_tells_nothing_new_is_not_measured():
    known = landscapes(SIZES, 0.0)
    model, targets = fitted(known), [case(size) for size in SIZES]
    found = design(model, known.cases, [case(100)], targets, np.ones(1), 10.0)
    assert found.steps == ()
    assert found.gain == 0
