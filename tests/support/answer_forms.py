"""One question, asked of everything that answers: lookup, ``recommend``, and every export."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from drawn_questions import Problem, Question

from launchwise.base.expressions import Formulas, evaluate
from launchwise.exporting.files import FORMATS, write_answers
from launchwise.exporting.languages import cpp_name
from launchwise.exporting.lookup import SUGGESTIONS, distance
from launchwise.exporting.table import AnswerTable
from launchwise.learning.answering import answers, why_none
from launchwise.learning.final import Final
from launchwise.learning.splits import Case
from launchwise.workloads.launch_shapes import launch_shapes
from launchwise.workloads.parts import Value

PRINTED = 1e-5
"""Relative difference of numbers that print alike; how many problems a model predicts at once moves
some by a millionth."""

PYTHON = """\
import json, runpy, sys
module = runpy.run_path(sys.argv[1])
print(json.dumps([module["recommend"](device, **one) for device, one in json.load(sys.stdin)]))
"""


class Answering:
    """A study's answers in every form.

    ``final``: the product, with datasheet-only GPUs in its domain.
    ``entries``: what the lookup of the report reads.
    ``table``: what exports hold.
    ``folder``: where they are written.
    """

    def __init__(
        self, final: Final, entries: Sequence[Mapping[str, Any]], table: AnswerTable, folder: Path
    ) -> None:
        self._final, self._table, self._folder = final, table, folder
        self._entries = entries
        write_answers(folder, table)
        path = folder / FORMATS["json"].format(study=table.study)
        self._plain = json.loads(path.read_text(encoding="utf-8"))

    def disagreements(self, questions: Sequence[Question]) -> list[dict[str, Any]]:
        """Questions that are not answered alike, with what each form says."""
        listed = [self.by_lookup(one) for one in questions]
        plain = [self.by_json(one) for one in questions]
        forms = {"python": self._by_python(questions), "c++": self._by_cpp(questions)}
        asked = self._by_recommend(questions, plain)
        found = []
        for number, one in enumerate(questions):
            said = {"json": plain[number], "lookup": listed[number], "recommend": asked[number]}
            said |= {name: every[number] for name, every in forms.items()}
            wrong = self._wrong(one, said)
            if wrong:
                found.append({**asdict(one), "wrong": wrong, "said": said})
        return found

    def _wrong(self, one: Question, said: Mapping[str, Any]) -> list[str]:
        plain = said["json"]
        wrong = []
        for name in ("python", "c++"):
            own = said[name]
            if own is None or plain is None:
                wrong += [name] if own != plain else []
                continue
            # Their launches are those of the problem itself.
            shapes = self._shapes(one.problem, plain["configuration"])
            for each in shapes:
                del each["kernel"]
            if own["launches"] != shapes or not _alike(own, {**plain, "launches": shapes}):
                wrong.append(name)
        if plain is not None and plain["launches"] is not None:
            shapes = self._shapes(plain["problem"], plain["configuration"])
            wrong += [] if plain["launches"] == shapes else ["json"]
        first, second = said["lookup"], said["recommend"]
        for name, own in (("lookup", first), ("recommend", second)):
            if own is not None and (plain is None or not _alike(own, plain)):
                wrong.append(name)
        if first and second and "interval" in second:
            pairs = zip(first["interval"], second["interval"], strict=True)
            wrong += [] if all(_equal(*pair) for pair in pairs) else ["interval"]
        return wrong

    def _shapes(self, problem: Problem, configuration: Problem) -> list[dict[str, Any]]:
        shapes = launch_shapes(self._final.spec, problem, configuration)
        # A configuration of another size may not be launched for this one at all.
        if any(min(*one.block, *one.grid) < 1 for one in shapes):
            return []
        return [{**asdict(one), "block": [*one.block], "grid": [*one.grid]} for one in shapes]

    def bases(self, questions: Sequence[Question]) -> dict[str, int]:
        """Bases of the answers to how many have them; ``none`` where there is no answer."""
        found: dict[str, int] = {}
        for said in map(self.by_json, questions):
            basis = "none" if said is None else str(said["basis"])
            found[basis] = found.get(basis, 0) + 1
        return dict(sorted(found.items()))

    def by_lookup(self, one: Question) -> dict[str, Any] | None:
        """By the rule of the page's script: None where it has no answer."""
        gpu = next((each.name for each in self._table.devices if one.device in each.names), None)
        if not self._table.limits.hold(one.problem):
            return None
        own = [each for each in self._entries if each["gpu"] == gpu]
        known = [[each["problem"][name] for name in one.problem] for each in own]
        if (found := _nearest(one, known)) is None:
            return None
        best, exact = own[found[0]], found[1]
        interval = [best["time_low_ms"], best["time_high_ms"]] if exact else None
        whole = self._whole(best["configuration"])
        return {**_said(best, whole, best["problem"], exact), "interval": interval}

    def _whole(self, configuration: Mapping[str, Value]) -> Problem:
        neutral = dict(zip(self._table.tunables, self._table.neutral, strict=True))
        return {**neutral, **configuration}

    def by_json(self, one: Question) -> dict[str, Any] | None:
        """By what the JSON file says, and nothing else."""
        plain, asked = self._plain, one.problem
        limits = plain["limits"]
        for each in limits["ranges"]:
            value = asked[each["parameter"]]
            if each["values"] is not None and value not in each["values"]:
                return None
            low, high = each["minimum"], each["maximum"]
            if (low is not None and value < low) or (high is not None and value > high):
                return None
        if not all(evaluate(text, asked) for text in limits["conditions"]):
            return None
        named = [one.device in [each["name"], *each["cuda_names"]] for each in plain["devices"]]
        number = named.index(True) if any(named) else None
        own = [each for each in plain["entries"] if each["device"] == number]
        if (found := _nearest(one, [each["problem"] for each in own])) is None:
            return self._usual(asked)
        best, exact = own[found[0]], found[1]
        configuration = dict(zip(plain["tunables"], best["configuration"], strict=True))
        problem = dict(zip(plain["parameters"], best["problem"], strict=True))
        return {**_said(best, configuration, problem, exact), "launches": best["launches"]}

    def _usual(self, asked: Problem) -> dict[str, Any]:
        plain = self._plain
        formulas = Formulas(dict(plain["formulas"]["derived"]))
        said = {"time_ms": None, "gain": None, "launches": None}
        for rule in plain["formulas"]["usual"]:
            chosen = dict(zip(plain["tunables"], plain["neutral"], strict=True))
            if not formulas.value(rule["when"], {**asked, **chosen}):
                continue
            for name, text in rule["configuration"]:
                chosen[name] = formulas.value(text, {**asked, **chosen})
            if all(formulas.value(text, {**asked, **chosen}) for text in rule["conditions"]):
                return {"configuration": chosen, "problem": asked, "basis": "usual", **said}
            break
        default = dict(zip(plain["tunables"], plain["default"], strict=True))
        return {"configuration": default, "problem": {}, "basis": "default", **said}

    def _by_recommend(
        self, questions: Sequence[Question], plain: Sequence[dict[str, Any] | None]
    ) -> list[dict[str, Any] | None]:
        """What ``launchwise recommend`` says of the problem that a form answered."""
        gpus = {name: one.name for one in reversed(self._table.devices) for name in one.names}
        first = self._table.devices[0].name
        cases = {}
        for number, (one, said) in enumerate(zip(questions, plain, strict=True)):
            if said is None:
                continue
            # Of a stranger the usual choice alone is known, as of any GPU.
            problem = said["problem"] or one.problem
            case = Case(gpus.get(one.device, first), problem)
            if why_none(self._final.domain, case) is None:
                cases[number] = case
        found: list[dict[str, Any] | None] = [None] * len(questions)
        for (number, case), answer in zip(
            cases.items(), answers(self._final, [*cases.values()], SUGGESTIONS), strict=True
        ):
            best = answer.suggestions[0]
            said = plain[number]
            assert said is not None
            if said["basis"] in ("usual", "default"):
                found[number] = {"configuration": self._whole(answer.usual)}
            elif said["basis"] == "nearest":
                found[number] = {"configuration": self._whole(best.configuration)}
            else:
                found[number] = {
                    "configuration": self._whole(best.configuration),
                    "problem": case.problem,
                    "basis": answer.basis,
                    "time_ms": best.expected_ms,
                    "gain": best.gain,
                    "interval": list(best.interval_ms or (None, None)),
                }
        return found

    def _by_python(self, questions: Sequence[Question]) -> list[dict[str, Any] | None]:
        path = self._folder / FORMATS["python"].format(study=self._table.study)
        asked = json.dumps([[one.device, one.problem] for one in questions])
        command = [sys.executable, "-I", "-c", PYTHON, str(path)]
        done = subprocess.run(command, input=asked, capture_output=True, text=True, check=True)
        return [None if each is None else self._split(each) for each in json.loads(done.stdout)]

    def _by_cpp(self, questions: Sequence[Question]) -> list[dict[str, Any] | None]:
        (self._folder / "main.cpp").write_text(cpp_program(self._table), encoding="utf-8")
        flags = ["-std=c++17", "-O0", "-Wall", "-Wextra", "-Wpedantic", "-Werror"]
        subprocess.run(["g++", *flags, "main.cpp", "-o", "main"], cwd=self._folder, check=True)
        lines = "".join(
            "\t".join([one.device, *map(str, one.problem.values())]) + "\n" for one in questions
        )
        command = [self._folder / "main"]
        done = subprocess.run(command, input=lines, capture_output=True, text=True, check=True)
        found = [json.loads(line) for line in done.stdout.splitlines()]
        for each in found:
            if each is not None and each["basis"] == "default":
                each["problem"] = {}
        return [None if each is None else self._split(each) for each in found]

    def _split(self, answer: Mapping[str, Any]) -> dict[str, Any]:
        """An answer of a module, with a zero of C++ as nothing."""
        chosen = {name: answer[name] for name in self._table.tunables}
        rest = {name: value for name, value in answer.items() if name not in chosen}
        launches = [
            {key: value for key, value in each.items() if key != "kernel"}
            for each in rest["launches"]
        ]
        numbers = {name: rest[name] or None for name in ("time_ms", "gain")}
        return {"configuration": chosen, **rest, **numbers, "launches": launches}


def _nearest(one: Question, known: Sequence[Sequence[Value]]) -> tuple[int, bool] | None:
    """Place of the listed problem that is nearest, the first of equals, and whether it is equal."""
    far = [distance([*one.problem.values()], each) for each in known]
    place = min(range(len(far)), key=far.__getitem__, default=None)
    return None if place is None or math.isinf(far[place]) else (place, far[place] == 1)


def _said(
    best: Mapping[str, Any], configuration: Problem, problem: Problem, exact: bool
) -> dict[str, Any]:
    """An answer, which has neither time nor gain where the problem is another one."""
    return {
        "configuration": configuration,
        "problem": problem,
        "basis": best["basis"] if exact else "nearest",
        **{name: best[name] if exact else None for name in ("time_ms", "gain")},
    }


def _alike(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether what both say is equal."""
    return all(_equal(one[key], other[key]) for key in one if key in other)


def _equal(one: Any, other: Any) -> bool:
    """Whether two values print alike: a model's times depend on what it is asked beside."""
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=PRINTED)
    return bool(one == other)


def cpp_program(table: AnswerTable) -> str:
    """A program that reads questions, parted by tabs, and prints answers as JSON, a line each."""
    reads = "".join(
        f"        const std::string in{place} = next(line);\n"
        for place, _ in enumerate(table.parameters)
    )
    given = ", ".join(
        f"in{place}" if name in table.texts else f"std::stoll(in{place})"
        for place, name in enumerate(table.parameters)
    )

    def shown(names: Sequence[str], where: str) -> str:
        """Parts of the output: names and values of an object's members."""
        parts = []
        for name in names:
            value = f"{where}.{cpp_name(name)}"
            quoted = f"'\"' << {value} << '\"'" if name in table.texts else value
            parts.append(f'"\\"{name}\\": " << {quoted}')
        return ' << ", " << '.join(parts)

    return f"""\
#include "{table.study}.hpp"
#include <iomanip>
#include <iostream>
#include <sstream>
#include <string>
namespace study = launchwise::{cpp_name(table.study)};
static std::string next(std::istringstream &line) {{
    std::string word;
    std::getline(line, word, '\\t');
    return word;
}}
template <class Sizes> static void print(const char *name, const Sizes &sizes) {{
    const char *before = "[";
    std::cout << '"' << name << "\\": ";
    for (const auto size : sizes) {{
        std::cout << before << size;
        before = ", ";
    }}
    std::cout << "], ";
}}
int main() {{
    std::cout << std::setprecision(17);
    for (std::string text; std::getline(std::cin, text);) {{
        std::istringstream line(text);
        const std::string device = next(line);
{reads}        const study::problem asked{{{given}}};
        const auto found = study::recommend(device, asked);
        if (!found) {{
            std::cout << "null\\n";
            continue;
        }}
        const auto &c = found->launch;
        std::cout << "{{" << {shown(table.tunables, "c")} << ", \\"problem\\": {{"
                  << {shown(table.parameters, "found->answered_for")} << "}}, \\"time_ms\\": "
                  << found->time_ms << ", \\"gain\\": " << found->gain << ", \\"basis\\": \\""
                  << found->basis << "\\", \\"launches\\": [";
        const auto run = study::launches_of(asked, c);
        for (std::size_t i = 0; i < run.count; ++i) {{
            const auto &one = run.kernels[i];
            std::cout << (i ? ", {{" : "{{");
            print("block", one.block);
            print("grid", one.grid);
            std::cout << "\\"shared_bytes\\": ";
            if (one.shared_bytes)
                std::cout << *one.shared_bytes << "}}";
            else
                std::cout << "null}}";
        }}
        std::cout << "]}}\\n";
    }}
}}
"""
