"""Expressions: what they may say, what they are worth, and that remembering changes nothing."""

import gc
import re
import weakref

import pytest
from hypothesis import given
from hypothesis import strategies as st
from samples import ROOT
from simpleeval import EvalWithCompoundTypes

from launchwise.base import expressions
from launchwise.base.expressions import FUNCTIONS, Formulas, ceil_div, evaluate, names_in, round_up
from launchwise.base.typed import read_yaml

CASES = read_yaml(ROOT / "tests/base/data/expressions.yaml")

UNSAFE = [*CASES["unsafe"], "(" * 500 + "1" + ")" * 500]


OPERATORS = ("n ^ 2", "n | 1", "1 << n", "~n", "n @ n", "n is 2")
OTHERS = ("list", "dict", "set", "tuple", "int", "float", "str")
REFUSED = {
    **dict.fromkeys(UNSAFE, "expression|more than names|calls"),
    **dict.fromkeys(OPERATORS, "which is no operator here"),
    **{f"{one}(n)": rf"calls '{one}' \(allowed: abs, ceil_div, log2, max" for one in OTHERS},
}
"""Text to what is said of it."""


@pytest.mark.parametrize("text", REFUSED)
def test_whatever_is_more_than_arithmetic_is_refused_before_it_runs(text):
    before = dict(FUNCTIONS)
    with pytest.raises(ValueError, match=REFUSED[text]):
        names_in(text)
    with pytest.raises(ValueError, match=REFUSED[text]):
        evaluate(text, {"n": 3})
    # Evaluating makes no other function known.
    assert evaluate("min(n, 2)", {"n": 3}) == 2
    assert dict(FUNCTIONS) == before


@pytest.mark.parametrize(("text", "names", "value"), CASES["values"])
def test_an_expression_has_the_value_that_arithmetic_gives_it(text, names, value):
    assert evaluate(text, names) == value


@pytest.mark.parametrize("text", CASES["without_value"])
def test_what_has_no_value_is_a_value_error_that_quotes_the_expression(text):
    with pytest.raises(ValueError, match="cannot be evaluated") as caught:
        evaluate(text, {"dtype": "float32", "n": 0})
    assert repr(text) in str(caught.value)


def test_a_chain_too_long_to_evaluate_is_a_value_error():
    with pytest.raises(ValueError, match=r"cannot be evaluated|is not an expression"):
        evaluate("+".join(["1"] * 5000), {})


def test_names_are_what_an_expression_reads_without_functions():
    assert names_in("min(bx, 32) * n if dtype == 'bx' else ceil_div(n, tx)") == {
        *("bx", "n", "dtype", "tx")
    }
    assert names_in("3 * 4") == frozenset()


@given(st.integers(-(10**9), 10**9), st.integers(1, 10**6))
def test_ceil_div_and_round_up_are_the_smallest_that_suffice(value, step):
    count = ceil_div(value, step)
    assert (count - 1) * step < value <= count * step
    assert round_up(value, step) == count * step


def grown(part):
    """Larger expressions of every kind that is allowed."""
    operator = st.sampled_from(["+", "-", "*", "/", "//", "%", "**", "and", "or"])
    compared = st.sampled_from(["==", "!=", "<", "<=", ">", ">=", "in", "not in"])
    return st.one_of(
        st.builds("({} {} {})".format, part, operator, part),
        st.builds("({} {} {} {} {})".format, part, compared, part, compared, part),
        st.builds("({} {} {})".format, part, compared, st.builds("({}, {})".format, part, part)),
        st.builds("({} if {} else {})".format, part, part, part),
        st.builds("({}({}))".format, st.sampled_from(["not ", "-", "abs", "log2"]), part),
        st.builds(
            "{}({}, {})".format, st.sampled_from(["min", "max", "ceil_div", "round_up"]), part, part
        ),
    )


EXPRESSIONS = st.recursive(
    st.sampled_from(["0", "1", "7", "2.5", "'x'", "n", "m", "text", "missing"]), grown, max_leaves=6
)


TOO_MUCH = "[*%] takes numbers|not a real number|(inf|nan) is no number|more than 1024 bits"


@pytest.mark.filterwarnings("ignore::SyntaxWarning")
@given(EXPRESSIONS, st.integers(-3, 40), st.sampled_from(["x", "n"]))
def test_every_expression_has_the_value_that_simpleeval_gives_it(text, n, word):
    names = {"n": n, "m": 3, "text": word}
    interpreter = EvalWithCompoundTypes(functions=dict(FUNCTIONS), names=names)
    try:
        expected = interpreter.eval(text)
    except Exception:
        with pytest.raises(ValueError, match="cannot be evaluated"):
            evaluate(text, names)
        return
    try:
        found = evaluate(text, names)
    except ValueError as error:
        # Refused here alone: texts that are repeated or formatted, and what grows beyond a float.
        if not re.search(TOO_MUCH, str(error)):
            raise
    else:
        assert (type(found), repr(found)) == (type(expected), repr(expected))


DERIVED = {"a": "n + 1", "b": "a * m", "c": "b - a if text == 'x' else n", "unused": "1 / 0"}
ASKED = ["n", "m * 2", "a", "b", "c", "a + b + c", "c * n", "min(a, m)", "text == 'x'"]


def directly(text, names):
    """The value without remembering anything."""
    bound = dict(names)
    for name in ("a", "b", "c"):
        bound[name] = evaluate(DERIVED[name], bound)
    return evaluate(text, bound)


@given(
    st.lists(
        st.fixed_dictionaries(
            {
                "n": st.integers(-3, 3),
                "m": st.integers(-3, 3),
                "text": st.sampled_from(["x", "y", "n"]),
            }
        ),
        min_size=1,
        max_size=8,
    ),
    st.lists(st.sampled_from(ASKED), min_size=1, max_size=8),
)
def test_remembered_values_are_those_of_a_direct_evaluation(every, asked):
    formulas = Formulas(DERIVED)
    for _ in range(2):
        for names in every:
            for text in asked:
                found = formulas.value(text, names)
                assert found == directly(text, names)
                assert type(found) is type(directly(text, names))


def test_what_is_remembered_does_not_grow_without_end(monkeypatch):
    class Marked(float):
        """A number that can be watched."""

    monkeypatch.setattr(expressions, "MAX_CACHED_VALUES", 10)
    formulas, alive = Formulas(DERIVED), weakref.WeakSet[Marked]()
    for number in range(100):
        marked = Marked(number)
        alive.add(marked)
        assert formulas.value("a + n", {"n": marked}) == 2 * number + 1
    gc.collect()
    assert len(alive) <= 11


def test_names_that_an_expression_does_not_read_are_not_needed():
    formulas = Formulas(DERIVED)
    assert formulas.value("a", {"n": 1}) == 2
    assert formulas.raw_names("c") == ("m", "n", "text")
    with pytest.raises(ValueError, match="'b' needs m"):
        formulas.value("b", {"n": 1})


def test_a_derived_name_without_a_value_fails_only_where_it_is_used():
    formulas = Formulas(DERIVED)
    assert formulas.value("a + n", {"n": 1}) == 3
    with pytest.raises(ValueError, match="'1 / 0' cannot be evaluated"):
        formulas.value("unused", {"n": 1})
