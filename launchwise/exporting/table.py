"""A table of answers that any language can look up: problems, configurations, and a default.

A study's product has one (``results/lookup/<study>.json``); ``recommend``, the report and exported
files answer from it, by the rule of :mod:`launchwise.exporting.lookup`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from launchwise.base.errors import UserError
from launchwise.base.names import assigned
from launchwise.base.storage import write_sealed_json
from launchwise.exporting.contents import Contents, Expected
from launchwise.exporting.entries import TIME, Entry, Stored, by_objective, read_stored
from launchwise.exporting.formulas import ExportedFormulas, kind_of, name_kinds
from launchwise.exporting.lookup import around, growth, within
from launchwise.learning.answering import answers
from launchwise.learning.answers import MEASURED, NEW_GPU, NO_TIME, UNORDERED, Answer, Suggestion
from launchwise.learning.conformal import texts_of
from launchwise.learning.features import Domain
from launchwise.learning.final import Final
from launchwise.learning.splits import Case
from launchwise.workloads.launch_shapes import Limits
from launchwise.workloads.near_problems import distances
from launchwise.workloads.parts import Value
from launchwise.workloads.space import used
from launchwise.workloads.spec import Spec


class AnswerTable(Contents):
    """A table, and its answer for any problem."""

    def answer(
        self, device: str, problem: Mapping[str, Value], least_gain: float | None = None
    ) -> Answer:
        """The answer for a problem on a device; where no entry answers, the usual choice.

        ``least_gain``: gain over the usual choice that must be sure; None: that of the table.
        """
        asked = tuple(problem[name] for name in self.parameters)
        return self.answers(device, [asked], least_gain)[0]

    def answers(
        self, device: str, shapes: Sequence[Sequence[Value]], least_gain: float | None = None
    ) -> list[Answer]:
        """:meth:`answer` of each problem, as values of the parameters: all are judged at once."""
        number, found = self.number(device), []
        owns = [self.listed.get((number, *texts_of(asked)), []) for asked in shapes]
        known = [self.known.get((number, tuple(each))) for each in shapes]
        judged = [row for row, own in enumerate(owns) if own and known[row] is None]
        places = {row: place for place, row in enumerate(judged)}
        problems = [shapes[row] for row in judged]
        expected = None if number is None else self.expected(number, problems)
        for row, (own, entry) in enumerate(zip(owns, known, strict=True)):
            one = None
            if entry is not None:
                one = self._of_entry(entry)
            elif own:
                one = self._between(own, tuple(shapes[row]), expected, places[row])
            if one is None:
                one = self._unanswered(device, self.problem(shapes[row]))
            else:
                one = self._sure(one, least_gain or self.stored.least_gain)
            first, why = one.suggestions[0], entry.but_libraries(one.why) if entry else one.why
            if one.basis == NEW_GPU and first.expected_ms and not first.interval_ms:
                one, why = replace(one, off=self.off), f"{why}; {self.no_limits}"
            found.append(replace(one, why=why))
        return found

    def _unanswered(self, device: str, problem: Mapping[str, Value]) -> Answer:
        usual = first_few = None
        if self.launches_usual:
            usual = self.usual_choice(problem)
        else:  # Of an unknown device facts are those of the first one.
            facts = self.devices[self.number(device) or 0].named_facts
            moved = (self.moved(place, problem, facts) for place in self.stored.candidates)
            first_few = next((one for one in moved if one is not None), None)
        default = first_few or dict(zip(self.tunables, self.default, strict=True))
        kept = used(usual or default, self.spec)
        first = Suggestion(1, kept, is_usual=usual is not None)
        basis, why = "usual" if usual else "default", "no entry of this device answers"
        return Answer(device, dict(problem), basis, [first], kept, why, answered_for=dict(problem))

    def next_best(self, number: int, found: Answer) -> list[Suggestion]:
        """What the judge of a device expects of its candidates and the usual choice, from the best:
        times and gains of an answer between entries, times the expected ratio. Empty without a
        judge: nearest entries order no configurations."""
        (first,), device = found.suggestions, self.devices[number]
        expected = self.expected(number, [tuple(found.problem.values())])
        if expected is None:
            return []
        moved = [
            self.moved(place, found.problem, device.named_facts) for place in self.stored.candidates
        ]
        every = [*expected.usual_losses.tolist(), *expected.losses[0].tolist()]
        losses: dict[tuple[Any, ...], float] = {}
        for one, loss in zip([expected.usual[0], *moved], every, strict=True):
            if one is not None and loss < np.inf:
                losses.setdefault(tuple(used(one, self.spec).items()), loss)
        of_first = losses.get(tuple(first.configuration.items()))
        if of_first is None:
            return []
        suggested = []
        for items in sorted(losses, key=lambda each: losses[each]):
            slower, choice = growth(losses[items] - of_first), dict(items)
            time_ms = first.expected_ms and first.expected_ms * slower
            gain = first.gain and first.gain / slower
            known = (time_ms, around(time_ms, device.between_ms), gain)
            gains = around(gain, device.between_gain) if found.outside == 1 else None
            suggested.append(Suggestion(2, choice, *known, gains, is_usual=choice == found.usual))
        return suggested

    def _of_entry(self, entry: Entry) -> Answer:
        problem = self.problem(entry.problem)
        first = Suggestion(
            rank=1,
            configuration=used(self.configuration(entry.choice), self.spec),
            expected_ms=entry.time_ms,
            interval_ms=entry.interval_ms,
            gain=entry.gain,
            gain_interval=entry.gain_interval,
            improvement=entry.improvement,
            improvement_interval=entry.improvement_interval,
            is_usual=entry.choice == entry.usual,
            paired=entry.paired,
        )
        return Answer(
            gpu=self.devices[entry.device].name,
            problem=problem,
            basis=entry.basis,
            suggestions=[first],
            usual=used(self.configuration(entry.usual), self.spec),
            why=entry.why,
            blind=entry.blind,
            alike=entry.alike,
            unsure=entry.unsure,
            answered_for=problem,
            outside=self.measured[entry.device].outside(entry.problem),
        )

    def _between(
        self, own: Sequence[Entry], asked: tuple[Value, ...], expected: Expected | None, row: int
    ) -> Answer | None:
        """The answer for a problem by entries of a device with the same texts, of which none is of
        it; None where nothing may run it. ``expected``: of problems, this one in ``row``."""
        problem = self.problem(asked)
        usual = expected.usual[row] if expected else self.usual_choice(problem)
        apart = distances([asked], [one.problem for one in own])[0]
        near = [own[at] for at in np.argsort(apart, kind="stable")]
        entry = next((one for one in near if one.time_ms is not None), near[0])
        device = self.devices[entry.device]
        facts = device.named_facts
        kept = usual or self.moved(entry.usual, problem, facts)
        if expected is None:
            moved = (self.moved(one.choice, problem, facts) for one in near)
            chosen = next((one for one in moved if one is not None), None)
            gain = 1.0 if chosen == kept else None
        else:
            of_usual = float(expected.usual_losses[row])
            chosen, gain = usual if self.launches_usual else None, None
            least, best = np.inf if chosen is None else of_usual, expected.losses[row]
            if best.min(initial=np.inf) < least:
                place = int(best.argmin())
                least = float(best[place])
                chosen = self.moved(self.stored.candidates[place], problem, facts)
            if usual is None and kept is not None and device.judge:
                columns = self.columns(entry.device, [asked], [tuple(kept.values())])
                of_usual = float(self.losses(device.judge, columns)[0])
            if kept is not None:
                gain = growth(of_usual - least)
        if chosen is None:
            return None
        far = self.measured[entry.device].outside(asked)
        inside = far == 1
        time_ms = self.time_at(entry, problem) if inside else None
        first = Suggestion(
            rank=1,
            configuration=used(chosen, self.spec),
            expected_ms=time_ms,
            interval_ms=around(time_ms, device.between_ms),
            gain=gain,
            gain_interval=around(gain, device.between_gain) if inside and chosen != kept else None,
            is_usual=chosen == kept,
        )
        answered_for = self.problem(entry.problem)
        named_problem = assigned(answered_for)
        why = f"the nearest with an answer is {named_problem}"
        if not inside:
            why = f"{NO_TIME}; {why}"
        elif time_ms is not None:
            why = f"its time is scaled from {named_problem}, the nearest with an answer"
            why += within(device.between_ms)
        if inside:
            why += "".join(f"; {one}" for one in self.said(device))
        return Answer(
            gpu=device.name,
            problem=problem,
            basis=NEW_GPU if entry.basis == NEW_GPU else "within" if inside else "beyond",
            suggestions=[first],
            usual=used(kept or self.configuration(entry.usual), self.spec),
            why=why,
            answered_for=answered_for,
            outside=far,
        )

    def _sure(self, found: Answer, least_gain: float | None) -> Answer:
        """The usual choice in place of an answer whose gain is not sure to be enough."""
        first = found.suggestions[0]
        measured = found.basis == MEASURED
        sure = first.gain if measured else (first.gain_interval or (0.0,))[0]
        enough = (measured and sure is None) or (sure or 0.0) >= (least_gain or 0.0)
        if least_gain is None or first.is_usual or enough:
            return found
        time_ms = first.expected_ms and first.gain and first.expected_ms * first.gain
        kept = Suggestion(1, found.usual, time_ms, gain=1.0, is_usual=True)
        return replace(found, suggestions=[kept], why=f"no gain of {least_gain:g} and more is sure")


UNLISTED_GPU = "files and the page do not list this GPU: they have the usual choice"


def answer_of(
    table: AnswerTable, final: Final, case: Case, top: int, least_gain: float | None
) -> Answer:
    """The answer of a product: the table's, on a GPU that it does not know the model's, which says
    that no other door has it. Further suggestions are by what the first is by: measurements or the
    model at a problem of the table, else the device's judge (:meth:`AnswerTable.next_best`).

    ``top``: suggestions; ``least_gain``: gain that must be sure; None: that of the table.
    """
    least = least_gain or table.stored.least_gain
    number = table.number(case.gpu)
    if number is None:
        found = answers(final, [case], top, least)[0]
        asked = tuple(case.problem[name] for name in table.parameters)
        far = min((one.outside(asked) for one in table.measured), key=lambda one: (one < 1, one))
        if far != 1:
            without: dict[str, Any] = dict.fromkeys(("expected_ms", "interval_ms", "gain_interval"))
            some = [replace(one, **without) for one in found.suggestions]
            found = replace(found, why=f"{found.why}; {NO_TIME.replace('this', 'any')}")
            found = table._sure(replace(found, suggestions=some, outside=far), least)
        return replace(found, off=table.off, why=f"{found.why}; {UNLISTED_GPU}")
    found = table.answer(case.gpu, case.problem, least)
    if top == 1:
        return found
    first = found.suggestions[0]
    more = [] if found.answered_for == case.problem else table.next_best(number, found)
    if not more:
        more = answers(final, [case], top + 1)[0].suggestions
        if found.answered_for != case.problem:
            # The model's times are no basis of a time that is scaled.
            more = [Suggestion(2, one.configuration, is_usual=one.is_usual) for one in more]
    others = [one for one in more if one.configuration != first.configuration][: top - 1]
    ranked = [first, *(replace(one, rank=rank) for rank, one in enumerate(others, start=2))]
    times = [one.expected_ms for one in ranked if one.expected_ms is not None]
    said = found.basis == MEASURED or UNORDERED in found.why or times == sorted(times)
    return replace(
        found, suggestions=ranked, why=found.why if said else f"{found.why}; {UNORDERED}"
    )


def table_of(domain: Domain, study: str, stored: Stored) -> AnswerTable:
    """A table of a study that asks as ``domain`` says."""
    spec = domain.spec
    return AnswerTable(study, spec, stored, Limits.of(spec), ExportedFormulas.of(domain))


def write_answer_table(path: Path, table: AnswerTable) -> None:
    write_sealed_json(path, table.stored.model_dump(), indent=None)


def read_answer_table(path: Path, domain: Domain, objective: str = TIME) -> AnswerTable:
    """Read a product's table, with the choices by an objective of the settings. Raises UserError
    when it cannot be read, was changed, or is not what it must be."""
    stored = by_objective(read_stored(path), objective)
    spec = domain.spec
    if (stored.workload, [*stored.parameters]) != (spec.workload, spec.problem_columns):
        raise UserError(path, "workload", f"is of {stored.workload}, not of {spec.workload}")
    if unknown := next((one for one in stored.configurations if not _is_of(one, spec)), None):
        raise UserError(path, "configurations", f"are of another workload: {assigned(unknown)}")
    kinds = name_kinds(spec)
    if any(kind_of(text, kinds) != "number" for both in stored.features for text in both):
        raise UserError(path, "features", "are of another workload")
    table = table_of(domain, path.stem, stored)
    for one in stored.entries:
        problem = table.problem(one.problem)
        strange = [value for name, value in problem.items() if spec.problem[name].check(value)]
        if strange or not 0 <= one.scale <= len(table.formulas.work):
            raise UserError(path, "entries", f"are of another workload: {one.problem}")
    return table


def _is_of(configuration: Mapping[str, Value], spec: Spec) -> bool:
    """Whether a workload has a variant with these tunables, of these kinds of values."""
    variant = spec.variants.get(str(configuration.get("variant")))
    if variant is None or configuration.keys() != {"variant", *variant.tunables}:
        return False
    kinds = {name: isinstance(value, str) for name, value in configuration.items()}
    return all(
        kinds[name] == isinstance(spec.tunables[name].neutral, str) for name in variant.tunables
    )
