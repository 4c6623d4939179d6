"""Runs that take the CPU device too long: what is left out, and what is tried in their place."""

from __future__ import annotations

import json

from launchwise.cli.check.small_runs import drawn_small_problems, is_small
from launchwise.workloads.fitting_sizes import nearest_problem
from launchwise.workloads.space import Configuration, Problem
from launchwise.workloads.spec import Spec

SMALLER = 4
"""Sizes of a problem in place of one that took too long are so many times nearer to the least."""


class SlowRuns:
    """Runs of a check that did not end in time.

    Such a run fails where its problem is small and its kernel compiled by g++: then it does not
    end. In Triton's interpreter, which takes longer, it fails where no run of its variant ended.
    """

    def __init__(self, spec: Spec) -> None:
        self._spec = spec
        self._ended: set[str] = set()
        self._slow: dict[str, list[float]] = {}

    def ended(self, configuration: Configuration) -> None:
        """Note that a run ended in time."""
        self._ended.add(str(configuration["variant"]))

    def may_be(self, problem: Problem, configuration: Configuration) -> bool:
        """Whether a run that did not end in time may be too much work, rather than endless."""
        variant = str(configuration["variant"])
        if not is_small(self._spec, problem):
            return True
        return self._spec.variants[variant].is_triton and variant in self._ended

    def add(self, problem: Problem, configuration: Configuration) -> None:
        """Note a run that was too much work."""
        small = is_small(self._spec, problem)
        key = json.dumps(configuration) if small else str(configuration["variant"])
        self._slow.setdefault(key, []).append(self._bytes(problem))

    def covers(self, problem: Problem, configuration: Configuration) -> bool:
        """Whether a run is as much work as one that was too much, or more.

        Of a large problem that one may be another configuration of the variant.
        """
        kept = json.dumps(configuration), str(configuration["variant"])
        slow = [each for key in kept for each in self._slow.get(key, [])]
        return bool(slow) and self._bytes(problem) >= min(slow)

    def smaller(self, problem: Problem) -> list[Problem]:
        """Problems to try in place of one that was too much work."""
        if not is_small(self._spec, problem):
            return drawn_small_problems(self._spec)
        near = nearest_problem(self._spec, self._nearer_to_least(problem))
        return [] if near is None or near == problem else [near]

    def _nearer_to_least(self, problem: Problem) -> Problem:
        found = dict(problem)
        for name, parameter in self._spec.problem.items():
            if parameter.type == "integer" and parameter.values is None:
                low = parameter.minimum if parameter.minimum is not None else 1
                found[name] = low + (int(problem[name]) - low) // SMALLER
        return found

    def _bytes(self, problem: Problem) -> float:
        return float(self._spec.value(self._spec.work.footprint_bytes, problem))
