"""Features and lower bounds of a (GPU, problem, configuration), without measurement."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from launchwise.base.errors import UserError
from launchwise.base.expressions import parsed
from launchwise.base.vectors import Columns
from launchwise.experiment.method import Selection
from launchwise.experiment.study import Study
from launchwise.gpus.profile import GpuProfile, read_profile
from launchwise.learning.analytical import CostModel
from launchwise.learning.row_arrays import arrays, of_gpus, records_of
from launchwise.learning.splits import Case
from launchwise.tables.rows import is_baseline, row_numbers, selected
from launchwise.workloads import space
from launchwise.workloads.spec import Spec, load_spec
from launchwise.workloads.usual import Usual, check_usual, usual_configuration


def following_tunables(spec: Spec, constraints: Iterable[str]) -> dict[str, str]:
    """Tunables that a constraint equates with an expression over the problem alone. Returns each
    tunable to the expression's text."""
    tunables = set(spec.tunable_columns)
    found: dict[str, str] = {}
    for text in constraints:
        tree = parsed(text)
        if not (isinstance(tree, ast.Compare) and [type(each) for each in tree.ops] == [ast.Eq]):
            continue
        for name, value in ((tree.left, tree.comparators[0]), (tree.comparators[0], tree.left)):
            if not (isinstance(name, ast.Name) and name.id in spec.tunables):
                continue
            expression = ast.unparse(value)
            if tunables.isdisjoint(spec.formulas.raw_names(expression)):
                found[name.id] = expression
    return found


_KEPT = "feature:"


@dataclass(frozen=True)
class Domain:
    """A workload, the GPUs, and which configurations may be recommended."""

    spec: Spec  # the workload
    profiles: Mapping[str, GpuProfile]  # every GPU that may be asked for, trained on or not
    # Tunable to the values that may be recommended; every tunable when empty. The baseline is
    # always among the candidates, a variant that is not verified never.
    candidates: Selection = field(default_factory=dict)
    # Expressions over problem and configuration that candidates keep to, beside the workload's
    # own: where a sweep did not measure every combination, only what it may have measured.
    constraints: Sequence[str] = ()
    # Configurations this near the best of a case count as good as it.
    near_best_percent: float = 2.0
    # Names of the features that models use; all when None.
    only_features: Sequence[str] | None = None
    # Usual choices (see `launchwise.workloads.usual.Usual`), in place of the workload's
    # ``usual.yaml``.
    usual: Sequence[Mapping[str, Any]] = ()

    @classmethod
    def of(cls, study: Study, spec: Spec, profiles: Mapping[str, GpuProfile]) -> Domain:
        """The workload of a study on some GPUs, as the study asks about it."""
        return cls(spec, profiles, **study.asked)

    def _is_used(self, feature: str) -> bool:
        return self.only_features is None or feature in self.only_features

    @cached_property
    def cost_model(self) -> CostModel:
        """Estimates of the workload on the GPUs, the same for all models that begin with them."""
        return CostModel(self.spec, self.profiles)

    @cached_property
    def problem_features(self) -> list[str]:
        """Names of features that no tunable changes: the inputs of a classifier."""
        tunables = set(self.spec.tunable_columns)
        return [
            name
            for name, text in self._expressions.items()
            if tunables.isdisjoint(self.spec.formulas.raw_names(text))
        ] + self.gpu_features

    @cached_property
    def gpu_features(self) -> list[str]:
        every = next(iter(self.profiles.values())).features()
        return [name for name in every if self._is_used(name)]

    @cached_property
    def _expressions(self) -> dict[str, str]:
        """The workload's features; every numeric column where it declares none."""
        if self.spec.features:
            return {name: text for name, text in self.spec.features.items() if self._is_used(name)}
        found: dict[str, str] = {}
        values = {name: one.values or [] for name, one in self.spec.problem.items()}
        values |= {name: one.values for name, one in self.spec.tunables.items()}
        values |= {"variant": list(self.spec.variants)}
        for name, allowed in values.items():
            words = [value for value in allowed if isinstance(value, str)]
            if words:
                found |= {f"{name}_is_{word}": f"1 if {name} == {word!r} else 0" for word in words}
            else:
                found[name] = name
        return found

    def features(self, rows: pd.DataFrame) -> pd.DataFrame:
        """Features of rows that hold a GPU, a problem and a configuration. Raises ValueError when a
        feature cannot be evaluated, or is no finite number. Returns float64, shape (rows,
        features): the workload's features, then the GPU's (units in their names)."""
        kept = [name for name in rows if str(name).startswith(_KEPT)]
        if kept:
            return rows[kept].rename(columns=lambda name: name.removeprefix(_KEPT))
        of_gpu = of_gpus(rows, {gpu: one.features() for gpu, one in self.profiles.items()})
        columns = Columns(self.spec.derived, {**arrays(rows, self.spec), **of_gpu})
        found = {name: columns.value(text) for name, text in self._expressions.items()}
        found |= {name: of_gpu[name] for name in self.gpu_features}
        table = pd.DataFrame(found, index=rows.index, dtype=float)
        bad = ~np.isfinite(table.to_numpy()).all(axis=0)
        if bad.any():
            raise ValueError(f"feature {table.columns[bad][0]!r} is not finite for every row")
        return table

    def keeping_features(self, rows: pd.DataFrame) -> pd.DataFrame:
        """``rows`` with their features beside them, so that :meth:`features` need not compute. A
        search fits on parts of the same rows again and again, and models of a study rank the same
        candidates. Rows that hold them already come back as they are."""
        if any(str(name).startswith(_KEPT) for name in rows):
            return rows
        return pd.concat([rows, self.features(rows).add_prefix(_KEPT)], axis=1)

    def bounds_ms(self, rows: pd.DataFrame) -> np.ndarray:
        """Time that moving the problem's least bytes at the GPU's copy bandwidth takes. Returns ms,
        shape (rows,)."""
        columns = Columns(self.spec.derived, arrays(rows, self.spec, self.spec.problem_columns))
        rates = {
            gpu: {"gbs": one.ceilings.copy_bandwidth_gbs} for gpu, one in self.profiles.items()
        }
        moved_bytes = columns.value(self.spec.work.bytes).astype(float)
        return np.asarray(moved_bytes / of_gpus(rows, rates)["gbs"] / 1e6)

    def choices(self, cases: Iterable[Case]) -> pd.DataFrame:
        """Every feasible candidate of every case, the baseline first in each. Returns columns
        ``gpu``, the problem's and the configuration's; cases in order."""
        named = list(cases)
        pieces = [self._feasible(case) for case in named]
        columns = ["gpu", *self.spec.problem_columns, *self.spec.tunable_columns]
        if not pieces:
            return pd.DataFrame(columns=columns)
        table = self._universe.take(np.concatenate(pieces)).reset_index(drop=True)
        lengths = [len(piece) for piece in pieces]
        for name in self.spec.problem_columns:
            table[name] = np.repeat([case.problem[name] for case in named], lengths)
        table["gpu"] = np.repeat([case.gpu for case in named], lengths)
        return table[columns]

    @cached_property
    def following(self) -> dict[str, str]:
        return following_tunables(self.spec, self.constraints)

    @cached_property
    def choice_columns(self) -> list[str]:
        """Tunables that are chosen: all but those that follow from the problem. Configurations of
        different problems are the same choice where they agree in these."""
        return [name for name in self.spec.tunable_columns if name not in self.following]

    def follows(self, rows: pd.DataFrame) -> np.ndarray:
        """Which rows have what follows from their problem: booleans, shape (rows,)."""
        found = np.ones(len(rows), dtype=bool)
        if self.following and len(rows):
            columns = Columns(self.spec.derived, arrays(rows, self.spec))
            for name, text in self.following.items():
                found &= np.asarray(columns.value(f"{name} == ({text})"), dtype=bool)
        return found

    def last_of_ties(self, rows: pd.DataFrame) -> np.ndarray:
        """Rows that yield to others of the same score: booleans, shape (rows,). The baseline comes
        first; but not the one that has another value than what follows from the problem, beside its
        twin that has it."""
        return ~self.is_baseline(rows) if not self.following else ~self.follows(rows)

    @cached_property
    def narrowed(self) -> Spec:
        """The workload with candidates alone."""
        narrowed = self.spec.recommendable.narrowed(self.candidates)
        constraints = [*narrowed.constraints, *self.constraints]
        return narrowed.model_copy(update={"constraints": constraints})

    @cached_property
    def _universe(self) -> pd.DataFrame:
        """Every candidate, feasible anywhere or not, the baseline first."""
        if self.narrowed.size > space.MOST_LISTED:
            message = f"{self.narrowed.size:,} configurations are too many to rank: restrict"
            raise UserError(self.spec.workload, "candidates", f"{message} candidates in the study")
        baseline = space.baseline(self.spec)
        rest = [one for one in space.universe(self.narrowed) if one != baseline]
        return pd.DataFrame([baseline, *rest])

    @cached_property
    def _universe_arrays(self) -> dict[str, Any]:
        return arrays(self._universe, self.spec, self.spec.tunable_columns)

    @cached_property
    def _facts(self) -> dict[str, dict[str, Any]]:
        return {
            gpu: space.gpu_facts(profile.model_dump()) for gpu, profile in self.profiles.items()
        }

    @cached_property
    def _remembered(self) -> dict[tuple[Any, ...], np.ndarray]:
        return {}

    @cached_property
    def _conditions(self) -> list[tuple[str, np.ndarray | None, list[str]]]:
        """Conditions of candidates: expression, rows of other variants, names read of a case. Rows
        of other variants need not satisfy it; they are None where every row must. The names are
        those of problem parameters and of facts of the GPU."""
        variants = self._universe_arrays["variant"]
        texts = [(text, None) for text in (*self.spec.constraints, *self.constraints)]
        for name, variant in self.spec.variants.items():
            texts += [(text, variants != name) for text in variant.constraints]
        facts = next(iter(self._facts.values()), {})
        of_case = [*self.spec.problem_columns, *facts]
        read = {text: self.spec.formulas.raw_names(text) for text, _ in texts}
        return [
            (text, exempt, [name for name in of_case if name in read[text]])
            for text, exempt in texts
        ]

    @cached_property
    def _satisfied(self) -> dict[tuple[Any, ...], np.ndarray]:
        """Expression of a condition and the values that it reads of a case to where it holds."""
        return {}

    def _feasible(self, case: Case) -> np.ndarray:
        """Rows of the universe that may be recommended for a case: int64, the baseline first."""
        facts = self._facts[case.gpu]
        key = (*case.key[1:], *facts.values())
        if key not in self._remembered:
            values = {**case.problem, **facts}
            columns = Columns(self.spec.derived, {**self._universe_arrays, **values})
            allowed = np.ones(len(self._universe), dtype=bool)
            for text, exempt, names in self._conditions:
                # Most conditions read one or two values of a case, which many cases share.
                asked = (text, *(values[name] for name in names))
                if asked not in self._satisfied:
                    self._satisfied[asked] = columns.value(text).astype(bool)
                holds = self._satisfied[asked]
                allowed &= holds if exempt is None else exempt | holds
            # Doing nothing is always possible: the baseline stays whatever the constraints say.
            allowed[0] = True
            self._remembered[key] = np.flatnonzero(allowed)
        return self._remembered[key]

    def is_candidate(self, rows: pd.DataFrame) -> np.ndarray:
        """Which rows hold a candidate for their problem: booleans, shape (rows,)."""
        allowed = np.array(rows["variant"].isin(list(self.spec.recommendable.variants)), dtype=bool)
        allowed &= self.is_of(rows, self.candidates, self.constraints)
        return allowed | self.is_baseline(rows)

    def is_of(
        self, rows: pd.DataFrame, candidates: Mapping[str, Any], constraints: Sequence[str]
    ) -> np.ndarray:
        """Which rows hold these values and satisfy these conditions: booleans, shape (rows,)."""
        allowed = np.array(selected(rows, candidates), dtype=bool)
        if constraints and len(rows):
            columns = Columns(self.spec.derived, arrays(rows, self.spec))
            for text in constraints:
                allowed &= columns.value(text).astype(bool)
        return allowed

    def is_baseline(self, rows: pd.DataFrame) -> np.ndarray:
        """See :func:`launchwise.tables.rows.is_baseline`."""
        return is_baseline(rows, self.spec)

    @cached_property
    def usual_rules(self) -> tuple[Usual, ...]:
        """Usual choices of the study, else of its workload."""
        if not self.usual:
            return self.spec.usual
        own = tuple(Usual.model_validate(each) for each in self.usual)
        check_usual(own, self.spec)
        return own

    def is_usual(self, rows: pd.DataFrame) -> np.ndarray:
        """Rows with the usual choice of their problem: booleans, shape (rows,). The baseline where
        nothing else is said. Raises ValueError when the usual choice cannot be evaluated for a
        problem."""
        if not self.usual_rules or rows.empty:
            return self.is_baseline(rows)
        columns = self.spec.problem_columns
        problems = row_numbers(rows, columns)
        first = np.unique(problems, return_index=True)[1]
        default = space.baseline(self.spec)
        usual = [
            usual_configuration(self.usual_rules, problem, self.spec) or default
            for problem in records_of(rows[columns].iloc[first])
        ]
        found = np.ones(len(rows), dtype=bool)
        for name in self.spec.tunable_columns:
            wanted = np.array([each[name] for each in usual], dtype=object)
            found &= rows[name].to_numpy(dtype=object) == wanted[problems]
        return found


def without_features(rows: pd.DataFrame) -> pd.DataFrame:
    """``rows`` without what :meth:`Domain.keeping_features` put beside them."""
    return rows[[name for name in rows if not str(name).startswith(_KEPT)]]


def read_domain(
    folder: Path, gpus: Sequence[str], profiles: Sequence[Path], question: Mapping[str, Any]
) -> Domain:
    """The workload in ``folder`` on some GPUs, as a study asks about it.

    ``gpus``, ``profiles``: names, and the file of each; ``question``: :attr:`Study.asked`. Raises
    UserError when a profile cannot be read or is of another GPU.
    """
    known = {gpu: read_profile(path, gpu) for gpu, path in zip(gpus, profiles, strict=True)}
    return Domain(load_spec(folder), known, **question)
