"""Answers of Triton's file to any problem: those of ``recommend``."""

from collections import Counter
from dataclasses import replace

import numpy as np
from answer_forms import Answering
from drawn_questions import drawn
from triton_examples import plain, scaled_spec, scaled_table

from launchwise.base.triton_answers import SAID, Answers
from launchwise.exporting import entries
from launchwise.exporting.formulas import UsualRule
from launchwise.exporting.languages import python_module
from launchwise.exporting.lookup import Judge
from launchwise.exporting.triton import write_triton


def judged_table(spec):
    """The table with trees that prefer large blocks for large n, limits, and a blind test."""
    table = scaled_table(spec)
    count = len(table.stored.configurations)
    trees = Judge(
        starts=(0,),
        feature=(0, 1, 1, -1, -1, -1, -1),
        threshold=(700.0, 100.0, 100.0, 0.0, 0.0, 0.0, 0.0),
        left=(1, 3, 5, 0, 0, 0, 0),
        right=(2, 4, 6, 0, 0, 0, 0),
        value=(0.0, 0.0, 0.0, 0.1, 0.4, 0.3, 0.05),
    )
    choice = (("variant", "'triton'"), ("BLOCK", "64"), ("num_warps", "1"))
    big, small = table.devices
    big = replace(big, judge=trees, between_ms=(0.8, 1.3), between_gain=(0.9, 1.2))
    big = replace(big, tested=entries.Tested(31, 0.97))
    stored = table.stored.model_copy(
        update={
            "devices": (big, small),
            "features": (("n", "1"), ("BLOCK", "1")),
            "candidates": tuple(range(count)),
        }
    )
    formulas = replace(table.formulas, usual=(UsualRule("1 == 1", choice, ()),), work=("rows * n",))
    listed = (replace(one, scale=1, why=f"entry {one.choice}") for one in stored.entries)
    stored = stored.model_copy(update={"entries": tuple(listed)})
    return replace(table, stored=stored, formulas=formulas)


def test_any_drawn_question_has_the_answer_of_recommend(tmp_path):
    spec = scaled_spec(tmp_path / "scaled")
    table = judged_table(spec)
    write_triton(tmp_path / "out", plain(table), spec, python_module(table))
    answers = Answers(tmp_path / "out" / "scaled_sizes.json")
    questions = drawn(table, 400, np.random.default_rng(5))
    said, bases = Answering(table, tmp_path / "forms"), Counter()
    for one in questions:
        first = said.recommended(one)
        own = _said(answers, one)
        bases[own["basis"]] += 1
        if first is None:
            assert own["why"].startswith("no configuration may run this problem: the ")
            assert own["why"].endswith(": the fallback of the file")
            assert (own["time_ms"], own["gain"]) == (None, None)
            continue
        chosen = {name: own["configuration"][name] for name in ("BLOCK", "num_warps")}
        assert {"variant": "triton", **chosen} == first["configuration"]
        assert own.get("outside", first["outside"]) == first["outside"]
        for name in SAID:
            value = own[name] and [*own[name]] if "interval" in name else own[name]
            assert value == first.get(name, value), (one, name)
    inside = answers.answer("big", {"rows": 17, "n": 1000, "dtype": "float32"})
    assert inside["why"] == (
        "its time is scaled from rows=16, n=1000, dtype=float32, the nearest with an answer: "
        f"nine of ten such times are within a factor of 1.3; {table.devices[0].tested.words}"
    )
    assert {*bases} == {"measured", "within", "beyond", "usual", "default"}
    # What is usual may be another function.
    (rule,), module = table.formulas.usual, tmp_path / "out" / "scaled_sizes.py"
    cuda = replace(rule, configuration=(("variant", "'cuda'"), *rule.configuration[1:]))
    formulas = replace(table.formulas, usual=(cuda,))
    module.write_text(python_module(replace(table, formulas=formulas)))
    strange = Answers(tmp_path / "out" / "scaled_sizes.json").answer("no card", one.problem)
    assert strange["why"] == "cuda answers, which is another function: the fallback of the file"
    changed = replace(table.devices[0], between_ms=(0.5, 2.0))
    other = replace(
        table, stored=table.stored.model_copy(update={"devices": (changed, table.devices[1])})
    )
    module.write_text(python_module(other))
    wrong = Answers(tmp_path / "out" / "scaled_sizes.json")
    differ = [one for one in questions if _said(wrong, one) != _said(answers, one)]
    assert {one.kind for one in differ} == {"between"}


def _said(answers, one):
    return answers.answer(one.device, one.problem)
