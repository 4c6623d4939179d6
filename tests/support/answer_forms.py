"""One question, asked of everything that answers: ``recommend``, JSON, and every module."""

from __future__ import annotations

import json
import math
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from drawn_questions import Problem, Question

from launchwise.base.expressions import Formulas, evaluate
from launchwise.exporting.exports import FORMATS, write_answers
from launchwise.exporting.formulas import EXPORTED_FACTS
from launchwise.exporting.languages import cpp_name
from launchwise.exporting.lookup import Judge, growth
from launchwise.exporting.table import AnswerTable
from launchwise.workloads.launch_shapes import launch_shapes
from launchwise.workloads.near_problems import distances

PYTHON = """\
import json, runpy, sys
module = runpy.run_path(sys.argv[1])
print(json.dumps([module["recommend"](device, **one) for device, one in json.load(sys.stdin)]))
"""

Said = dict[str, Any]
"""Configuration with every tunable, problem whose time it is, basis, time and gain with their
limits, how far outside; where known also the launches."""


class Answering:
    """A study's answers in every form that looks them up itself.

    ``table``: what ``recommend`` reads; ``folder``: where the forms go; ``exported``: the table
    that is written there, by default the same.
    """

    def __init__(
        self, table: AnswerTable, folder: Path, exported: AnswerTable | None = None
    ) -> None:
        self._table, self._folder = table, folder
        write_answers(folder, exported or table)
        path = folder / FORMATS["json"].format(study=table.study)
        self._json = FromJson(json.loads(path.read_text(encoding="utf-8")))

    def disagreements(self, questions: Sequence[Question]) -> list[dict[str, Any]]:
        """Questions that are not answered alike, with what each form says."""
        forms = {"python": self._by_python(questions), "c++": self._by_cpp(questions)}
        forms["json"] = [self._json.answer(one.device, one.problem) for one in questions]
        found = []
        for number, one in enumerate(questions):
            first = self.recommended(one)
            said = {name: every[number] for name, every in forms.items()}
            wrong = [name for name, own in said.items() if not _alike(own, first)]
            if wrong:
                found.append({**asdict(one), "wrong": wrong, "recommend": first, **said})
        return found

    def recommended(self, one: Question) -> Said | None:
        """What ``launchwise recommend`` says, with the launches that follow; None where nothing may
        run."""
        table = self._table
        if not table.limits.hold(one.problem):
            return None
        neutral = dict(zip(table.tunables, table.neutral, strict=True))
        found = table.answer(one.device, one.problem)
        first = found.suggestions[0]
        said = {
            "configuration": {**neutral, **first.configuration},
            "problem": found.answered_for,
            "basis": found.basis,
            "time_ms": first.expected_ms,
            "gain": first.gain,
            "interval_ms": first.interval_ms and [*first.interval_ms],
            "gain_interval": first.gain_interval and [*first.gain_interval],
            "outside": found.outside,
            "why": found.why,
        }
        return {**said, "launches": self._shapes(one.problem, said["configuration"])}

    def _shapes(self, problem: Problem, configuration: Problem) -> list[dict[str, Any]]:
        shapes = launch_shapes(self._table.spec, problem, configuration)
        # A configuration of another size may not be launched for this one at all.
        if any(min(*one.block, *one.grid) < 1 for one in shapes):
            return []
        return [
            {"block": [*one.block], "grid": [*one.grid], "shared_bytes": one.shared_bytes}
            for one in shapes
        ]

    def _by_python(self, questions: Sequence[Question]) -> list[Said | None]:
        path = self._folder / FORMATS["python"].format(study=self._table.study)
        asked = json.dumps([[one.device, one.problem] for one in questions])
        command = [sys.executable, "-I", "-c", PYTHON, str(path)]
        done = subprocess.run(command, input=asked, capture_output=True, text=True, check=True)
        return [None if each is None else self._split(each) for each in json.loads(done.stdout)]

    def _by_cpp(self, questions: Sequence[Question]) -> list[Said | None]:
        (self._folder / "main.cpp").write_text(cpp_program(self._table), encoding="utf-8")
        flags = ["-std=c++17", "-O0", "-Wall", "-Wextra", "-Wpedantic", "-Werror"]
        subprocess.run(["g++", *flags, "main.cpp", "-o", "main"], cwd=self._folder, check=True)
        lines = "".join(
            "\t".join([one.device, *map(str, one.problem.values())]) + "\n" for one in questions
        )
        command = [self._folder / "main"]
        done = subprocess.run(command, input=lines, capture_output=True, text=True, check=True)
        found = [json.loads(line) for line in done.stdout.splitlines()]
        return [None if each is None else self._split(each) for each in found]

    def _split(self, answer: Mapping[str, Any]) -> Said:
        """An answer of a module, with a zero of C++ as nothing."""
        chosen = {name: answer[name] for name in self._table.tunables}
        rest = {name: value for name, value in answer.items() if name not in chosen}
        launches = [
            {key: value for key, value in each.items() if key != "kernel"}
            for each in rest["launches"]
        ]
        for name in ("time_ms", "gain", "interval_ms", "gain_interval"):
            rest[name] = None if rest[name] in (0, [0, 0]) else rest[name]
        return {"configuration": chosen, **rest, "launches": launches}


class FromJson:
    """A reader of the exported JSON, written after its description and from nothing else."""

    def __init__(self, content: Mapping[str, Any]) -> None:
        self._content = content
        self._formulas = Formulas(dict(content["formulas"]["derived"]))

    def answer(self, device: str, asked: Problem) -> Said | None:
        """As :meth:`Answering.recommended`, without launches."""
        plain = self._content
        if not self._can_run(asked):
            return None
        known = [one for one in plain["devices"] if device in (one["name"], *one["cuda_names"])]
        values = [*asked.values()]
        own = [
            (distances([values], [one["problem"]])[0, 0], one)
            for one in plain["entries"]
            if known and one["device"] == plain["devices"].index(known[0])
        ]
        near = sorted(((far, one) for far, one in own if far < math.inf), key=lambda each: each[0])
        if near and near[0][0] == 1:
            entry = near[0][1]
            keys = ("time_ms", "gain", "interval_ms", "gain_interval", "basis")
            configuration = self._named(entry["configuration"])
            far = self._outside(known[0], values, [one for _, one in near])
            said = {"configuration": configuration, "problem": asked, "outside": far}
            return {**said, **{key: entry[key] for key in keys}}
        if near and (said := self._between(known[0], asked, [one for _, one in near])):
            return said
        usual = self._usual(asked) if plain["launches_usual"] else None
        said = {"configuration": usual or self._named(plain["default"]), "outside": 1.0}
        said |= dict.fromkeys(("time_ms", "gain", "interval_ms", "gain_interval"))
        if not plain["launches_usual"]:
            facts = dict(zip(EXPORTED_FACTS, (known or plain["devices"])[0]["facts"], strict=True))
            few = (self._moved(one, asked, facts) for one in plain["candidates"])
            said["configuration"] = next((one for one in few if one), said["configuration"])
        return {**said, "basis": "usual" if usual else "default", "problem": asked}

    def _can_run(self, asked: Problem) -> bool:
        limits = self._content["limits"]
        for each in limits["ranges"]:
            value = asked[each["parameter"]]
            if each["values"] is not None and value not in each["values"]:
                return False
            low, high = each["minimum"], each["maximum"]
            if (low is not None and value < low) or (high is not None and value > high):
                return False
        return all(evaluate(text, asked) for text in limits["conditions"])

    def _named(self, values: Sequence[Any]) -> Problem:
        return dict(zip(self._content["tunables"], values, strict=True))

    def _value(self, text: str, *names: Problem) -> Any:
        return self._formulas.value(
            text, {name: each for one in names for name, each in one.items()}
        )

    def _usual(self, asked: Problem) -> Problem | None:
        for rule in self._content["formulas"]["usual"]:
            chosen = self._named(self._content["neutral"])
            if not self._value(rule["when"], asked, chosen):
                continue
            for name, text in rule["configuration"]:
                chosen[name] = self._value(text, asked, chosen)
            allowed = all(self._value(text, asked, chosen) for text in rule["conditions"])
            return chosen if allowed else None
        return None

    def _moved(self, values: Sequence[Any], asked: Problem, facts: Problem) -> Problem | None:
        chosen = self._named(values)
        for name, text in self._content["formulas"]["follows"]:
            chosen[name] = self._value(text, asked, chosen)
        fits = self._content["formulas"]["fits"].get(chosen["variant"], ())
        return chosen if all(self._value(text, asked, chosen, facts) for text in fits) else None

    @staticmethod
    def _outside(
        device: Mapping[str, Any], asked: Sequence[Any], near: Sequence[Mapping[str, Any]]
    ) -> float:
        own = [one["problem"] for one in near if one["basis"] in ("measured", "new_gpu")]
        if not own:
            return 0.0
        ends = [
            value if isinstance(value, str) else min(max(value, min(sizes)), max(sizes))
            for value, *sizes in zip(asked, *own, strict=True)
        ]
        far = distances([asked], [ends])[0, 0]
        nearest = distances([asked], own)[0].min()
        return far if device["reach"] is None else max(far, nearest / device["reach"])

    def _between(
        self, device: Mapping[str, Any], asked: Problem, near: Sequence[Mapping[str, Any]]
    ) -> Said | None:
        plain, judge = self._content, device["judge"]
        entry = next((one for one in near if one["time_ms"] is not None), near[0])
        facts = dict(zip(EXPORTED_FACTS, device["facts"], strict=True))
        usual = self._usual(asked)
        listed = plain["candidates"] if judge else [one["configuration"] for one in near]
        moved = [self._moved(one, asked, facts) for one in listed]
        first = [usual] if judge and plain["launches_usual"] else []
        candidates = [one for one in first + moved if one is not None]
        if not candidates:
            return None
        chosen, kept = candidates[0], usual or self._moved(entry["usual"], asked, facts)
        gain = 1.0 if chosen == kept else None
        if judge:
            trees = Judge(**judge)

            def loss(one: Problem) -> float:
                parts = (
                    [float(self._value(text, asked, one, facts)) for text in both]
                    for both in plain["features"]
                )
                values = [over / (under or 1.0) for over, under in parts]

                return float(trees.sums(np.array([values]))[0])

            chosen = min(candidates, key=loss)
            gain = growth(loss(kept) - loss(chosen)) if kept else None
        problem = dict(zip(plain["parameters"], entry["problem"], strict=True))
        work = ["1", *plain["formulas"]["work"]][entry["scale"]]
        ratio = float(self._value(work, asked)) / float(self._value(work, problem))
        far = self._outside(device, [*asked.values()], near)
        time_ms = None if entry["time_ms"] is None or far != 1 else entry["time_ms"] * ratio

        def ends(value: float | None, factors: Sequence[float] | None) -> list[float] | None:
            known = value is not None and factors is not None and far == 1
            return [value * factors[0], value * factors[1]] if known else None  # type: ignore[operator,index]

        limits = ends(time_ms, device["between_ms"])
        gains = None if chosen == kept else ends(gain, device["between_gain"])
        least = plain["least_gain"]
        if least is not None and chosen != kept and (gains or [0.0])[0] < least:
            time_ms = time_ms and gain and time_ms * gain
            chosen, gain = kept or self._named(entry["usual"]), 1.0
            limits = gains = None
        basis = "within" if far == 1 else "beyond"
        return {
            "configuration": chosen,
            "problem": problem,
            "basis": entry["basis"] if entry["basis"] == "new_gpu" else basis,
            "time_ms": time_ms,
            "interval_ms": limits,
            "gain": gain,
            "gain_interval": gains,
            "outside": far,
        }


def _alike(one: Mapping[str, Any] | None, other: Mapping[str, Any] | None) -> bool:
    """Whether what both say is equal, to the last bit."""
    if one is None or other is None:
        return one == other
    return all(one[key] == other[key] for key in one)


def cpp_program(table: AnswerTable) -> str:
    """``answers.cpp`` for a table."""

    def read(place: int, name: str) -> str:
        return f"words[{place}]" if name in table.texts else f"std::stoll(words[{place}])"

    def shown(names: Sequence[str], where: str) -> str:
        """Parts of the output: names and values of an object's members."""
        parts = []
        for name in names:
            value = f"{where}.{cpp_name(name)}"
            quoted = f"'\"' << {value} << '\"'" if name in table.texts else value
            parts.append(f'"\\"{name}\\": " << {quoted}')
        return ' << ", " << '.join(parts)

    words = {
        "STUDY": table.study,
        "NAMESPACE": cpp_name(table.study),
        "GIVEN": ", ".join(read(1 + place, name) for place, name in enumerate(table.parameters)),
        "TUNABLES": shown(table.tunables, "c"),
        "PARAMETERS": shown(table.parameters, "found->answered_for"),
    }
    text = Path(__file__).with_name("answers.cpp").read_text(encoding="utf-8")
    return re.sub("|".join(words), lambda word: words[word[0]], text)
