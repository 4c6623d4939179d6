"""A search that is asked for configurations and told their times, and what it knows of candidates.

A candidate is known by its key: the values of its tunables, in one order. Rows of another GPU weigh
by how unlike it is: ``benchmarks/likeness.py`` holds pairs of GPUs against each other, by how much
their losses differ over all kernels that both measured. Its ``coefficients``, in
``benchmarks/results/likeness.json``, are those below. Shared memory, threads and FP32 lanes per SM
tell nothing beside these.
"""

from __future__ import annotations

import itertools
import math
import numbers
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from launchwise.search.transfer_search import SURE, TransferSearch
from launchwise.workloads.spec import Spec

Key = tuple[Any, ...]


def losses_of(times: Mapping[Key, float | None]) -> dict[Key, float]:
    """log(time / best time) on one other GPU; inf for what failed. Empty where nothing has a time
    (ms; None where a candidate failed)."""
    logs = {key: math.inf if time is None else math.log(time) for key, time in times.items()}
    best = min(logs.values(), default=math.inf)
    return {key: log - best for key, log in logs.items()} if best < math.inf else {}


def fastest_elsewhere(losses: Iterable[Mapping[Key, float]], most: int) -> list[Key]:
    """Keys that other GPUs measured, the fastest on any of them first, at most so many."""
    smallest: dict[Key, float] = {}
    for each in losses:
        for key, loss in each.items():
            smallest[key] = min(loss, smallest.get(key, math.inf))
    return sorted(smallest, key=smallest.__getitem__)[:most]


def texts_of(spec: Spec) -> list[list[Any]]:
    """Of each tunable of a workload the values that are texts, as :func:`described` takes them."""
    return [
        list(spec.variants)
        if name == "variant"
        else [each for each in spec.tunables[name].values if isinstance(each, str)]
        for name in spec.tunable_columns
    ]


def described(
    keys: Sequence[Key], texts: Sequence[Sequence[Any]], losses: Sequence[Mapping[Key, float]]
) -> tuple[np.ndarray, np.ndarray]:
    """Points and losses of candidates, as ``TransferSearch`` takes them. ``texts``: of each tunable
    the values that stand for themselves, as one column each; empty for numbers. ``losses``: of each
    other GPU (:func:`losses_of`)."""
    columns = []
    for place, values in enumerate(texts):
        here = [key[place] for key in keys]
        if values:
            columns += [[float(value == text) for value in here] for text in values]
        else:
            columns.append([float(value) for value in here])
    known = [[each.get(key, math.nan) for key in keys] for each in losses]
    shape = len(known), len(keys)
    return np.array(columns, dtype=float).T, np.array(known, dtype=float).reshape(shape).T


class KeyedSearch(TransferSearch):
    """A search among candidates that are known by their keys. ``keys``: of the candidates, each
    once. ``texts``, ``losses``: see :func:`described`. ``away``, ``winners``: see
    :class:`TransferSearch`."""

    def __init__(
        self,
        keys: Iterable[Key],
        texts: Sequence[Sequence[Any]],
        losses: Sequence[Mapping[Key, float]],
        away: Sequence[float] | None = None,
        winners: Sequence[bool] | None = None,
    ) -> None:
        self.keys = list(dict.fromkeys(keys))
        self.places = {key: place for place, key in enumerate(self.keys)}
        self._texts, self._elsewhere = texts, losses
        super().__init__(*described(self.keys, texts, losses), away, winners)

    def add(self, keys: Iterable[Key]) -> None:
        """Further candidates; those that are known stay."""
        new = [key for key in dict.fromkeys(keys) if key not in self.places]
        if new:
            self.extend(*described(new, self._texts, self._elsewhere))
            self.places |= {key: place for place, key in enumerate(new, len(self.keys))}
            self.keys += new

    def ask(self) -> Key | None:
        """Key of the candidate to measure next; None when all were measured."""
        return self.keys[self.propose()] if len(self.tried) < len(self.keys) else None


Value = int | float | str | bool
Configuration = Mapping[str, Any]
Told = tuple[Configuration, float | None]
"""A configuration and its time in ms; None where it failed."""

MOST_CANDIDATES = 20_000
"""Candidates that a search chooses among: all that are allowed, where there are no more."""

MOST_LISTED = 1_000_000  # Combinations of values that are looked through; of more, some are drawn
DRAWS = 50  # Draws for each candidate, where most combinations are not allowed


class Search:
    """Proposes which configuration to measure next, from what is known of other GPUs.

    Raises ValueError when there is no tunable, one has no value or others than numbers and texts,
    nothing is allowed, ``known`` has another shape or a configuration that lacks a tunable, a fact
    of a GPU is no number above 0, or none of the ``winners`` of a list is of the space.

    Parameters
    ----------
    tunables
        Name of each tunable to its values: numbers, or texts.
    allowed
        Whether a configuration may be measured; every one when left out.
    known
        For each other GPU a list of its configurations with their times in ms, None where one
        failed, of the same problem or of one that is near. Those that are not of this space do not
        count.
    seed
        Decides between candidates that are as promising.
    gpu, known_gpus
        Facts of this GPU, and of each one of ``known`` (see :func:`differences`): the more alike,
        the more its rows count. A GPU that lacks one, or is None, counts like the mean of the
        others.
    winners
        Configurations that are known to be fast, without times: for each GPU, or each near problem,
        a list of those that a library ships or a table names. What it does not name was not faster.

    Examples
    --------
    >>> from launchwise.search import Search
    >>> search = Search({"block": [32, 64, 128, 256], "unroll": [1, 2, 4]})
    >>> while (configuration := search.ask()) is not None and not search.is_sure(percent=2):
    ...     search.tell(configuration, abs(configuration["block"] - 128) + configuration["unroll"])
    >>> search.best
    ({'block': 128, 'unroll': 1}, 1.0)
    """

    def __init__(
        self,
        tunables: Mapping[str, Sequence[Value]],
        allowed: Callable[[Configuration], bool] | None = None,
        known: Iterable[Iterable[Told]] = (),
        seed: int = 0,
        gpu: Mapping[str, Any] | None = None,
        known_gpus: Sequence[Mapping[str, Any] | None] | None = None,
        winners: Iterable[Iterable[Configuration]] = (),
    ) -> None:
        if not tunables:
            raise ValueError("there is no tunable")
        self._tunables = {name: _listed(name, values) for name, values in tunables.items()}
        self._allowed = allowed or (lambda _: True)
        every = [self._losses_of(rows) for rows in known]
        gpus = [None] * len(every) if known_gpus is None else known_gpus
        if len(gpus) != len(every):
            raise ValueError(f"known_gpus has {len(gpus)} GPUs, known {len(every)}")
        pairs = [
            (losses, away(gpu, other)) for losses, other in zip(every, gpus, strict=True) if losses
        ]
        won = [self._won(each) for each in winners]
        self._known = [*(losses for losses, _ in pairs), *won]
        away_from = [*(each for _, each in pairs), *[math.nan] * len(won)]
        elsewhere = fastest_elsewhere(self._known, MOST_CANDIDATES)
        found = [*self._drawn(random.Random(seed)), *elsewhere]
        if not found:
            raise ValueError("no configuration is allowed")
        texts = [
            values if any(isinstance(value, str) for value in values) else []
            for values in self._tunables.values()
        ]
        are_winners = [False] * len(pairs) + [True] * len(won)
        self._search = KeyedSearch(found, texts, self._known, away_from, are_winners)
        self._best: tuple[dict[str, Value], float] | None = None

    @property
    def best(self) -> tuple[dict[str, Value], float] | None:
        """The fastest configuration so far and its time in ms; None before the first success."""
        return None if self._best is None else (dict(self._best[0]), self._best[1])

    def ask(self) -> dict[str, Value] | None:
        """Configuration to measure next; the same until something is told. None: none is left."""
        key = self._search.ask()
        return None if key is None else self._configuration(key)

    def tell(self, configuration: Configuration, time_ms: float | None) -> None:
        """Take in a measurement, whether it was asked for or not. ``time_ms``: time in ms; None, or
        what is not finite or not above 0, where it failed. Raises ValueError when the configuration
        lacks a tunable, has something else, is not of the space or was told before; when the time
        is no number."""
        key = self._key(configuration)
        if others := [name for name in configuration if name not in self._tunables]:
            raise ValueError(f"{others[0]!r} is no tunable, in {dict(configuration)}")
        if not self._is_of_space(key):
            raise ValueError(f"is not of the space: {dict(configuration)}")
        time_ms = _time(time_ms)
        self._search.add([key])
        place = self._search.places[key]
        if place in self._search.tried:
            raise ValueError(f"was told before: {dict(configuration)}")
        self._search.tell(place, time_ms)
        if time_ms is not None and (self._best is None or time_ms < self._best[1]):
            self._best = self._configuration(key), time_ms

    def chance_left(self, percent: float = 2.0) -> float:
        """Chance that something faster than the best by more than ``percent`` was not measured.
        Raises ValueError when it is not above 0 and below 100."""
        if not 0 < percent < 100:
            raise ValueError(f"percent must be above 0 and below 100, not {percent}")
        return self._search.chance_left(percent / 100)

    def is_sure(self, percent: float = 2.0, chance: float = SURE) -> bool:
        """Whether that chance is at most ``chance``; never before some measurements. Their number
        is the square root of that of the candidates. Raises ValueError when ``percent`` is not
        above 0 and below 100, or ``chance`` not above 0 and below 1."""
        if not 0 < chance < 1:
            raise ValueError(f"chance must be above 0 and below 1, not {chance}")
        return self.chance_left(percent) <= chance and self._search.has_looked_around()

    def _key(self, configuration: Configuration) -> Key:
        if missing := [name for name in self._tunables if name not in configuration]:
            raise ValueError(f"tunable {missing[0]!r} is missing in {dict(configuration)}")
        return tuple(configuration[name] for name in self._tunables)

    def _configuration(self, key: Key) -> dict[str, Value]:
        return dict(zip(self._tunables, key, strict=True))

    def _losses_of(self, rows: Iterable[Told]) -> dict[Key, float]:
        try:
            pairs = [(dict(configuration), time_ms) for configuration, time_ms in rows]
        except (TypeError, ValueError) as error:
            message = "known must hold, for each GPU, a list of (configuration, time in ms)"
            raise ValueError(message) from error
        keyed = [(self._key(configuration), _time(time_ms)) for configuration, time_ms in pairs]
        return losses_of({key: time_ms for key, time_ms in keyed if self._is_of_space(key)})

    def _won(self, configurations: Iterable[Configuration]) -> dict[Key, float]:
        keys = [self._key(each) for each in configurations]
        if not (found := [key for key in keys if self._is_of_space(key)]):
            raise ValueError(f"none of the {len(keys)} winners of a list is of the space")
        return dict.fromkeys(found, 0.0)

    def _is_of_space(self, key: Key) -> bool:
        pairs = zip(key, self._tunables.values(), strict=True)
        return all(value in values for value, values in pairs) and self._may(key)

    def _may(self, key: Key) -> bool:
        return bool(self._allowed(self._configuration(key)))

    def _drawn(self, dice: random.Random) -> list[Key]:
        """All that is allowed, or a part drawn at random, in a random order."""
        values = list(self._tunables.values())
        if math.prod(map(len, values)) <= MOST_LISTED:
            every = [key for key in itertools.product(*values) if self._may(key)]
            return dice.sample(every, min(len(every), MOST_CANDIDATES))
        found: dict[Key, None] = {}
        for _ in range(DRAWS * MOST_CANDIDATES):
            key = tuple(dice.choice(each) for each in values)
            if key not in found and self._may(key):
                found[key] = None
            if len(found) == MOST_CANDIDATES:
                break
        return list(found)


def _listed(name: str, values: Sequence[Value]) -> list[Value]:
    """Values of a tunable; ValueError when they are no list of numbers or texts."""
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise ValueError(f"values of tunable {name!r} must be a list, not {values!r}")
    found = list(values)
    if not found:
        raise ValueError(f"tunable {name!r} has no value")
    for value in found:
        if not isinstance(value, str | numbers.Real | np.bool_):
            raise ValueError(f"tunable {name!r} has {value!r}, which is no number and no text")
    return found


def _time(time_ms: float | None) -> float | None:
    """A time in ms; None for what failed; ValueError when it is no number."""
    if time_ms is None:
        return None
    if not isinstance(time_ms, numbers.Real):
        raise ValueError(f"a time must be a number of ms or None, not {time_ms!r}")
    return float(time_ms) if math.isfinite(time_ms) and time_ms > 0 else None


COEFFICIENTS = {"sms": 0.889, "bandwidth_per_flop": 1.584, "maker": 3.245, "generation": 0.0}
"""By difference: doublings of SMs, of bandwidth per FLOP; other maker; compute capability."""

NUMBERS = ("sms", "cores", "clock_mhz", "memory_bandwidth_gbs")


def differences(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, float]:
    """By the names of :data:`COEFFICIENTS`; NaN where a fact is missing. The facts are those of a
    profile: ``sms``, ``cores`` (FP32 lanes of all SMs), ``clock_mhz``, ``memory_bandwidth_gbs``,
    ``arch`` (such as ``sm_90``, ``gfx1100``), ``compute_capability`` (major, minor). Raises
    ValueError when one is no number above 0."""
    a, b = _facts(one), _facts(other)
    found = {name: abs(a[name] - b[name]) for name in a}
    # Generations of two makers have no order.
    return found if found["maker"] == 0 else {**found, "generation": 0.0 * found["maker"]}


def away(one: Mapping[str, Any] | None, other: Mapping[str, Any] | None) -> float:
    """How unlike two GPUs are, 0 and more; NaN where a fact of one is missing."""
    found = differences(one or {}, other or {})
    return sum(COEFFICIENTS[name] * each for name, each in found.items())


def _facts(gpu: Mapping[str, Any]) -> dict[str, float]:
    sms, cores, clock_mhz, bandwidth = (_number(gpu, name) for name in NUMBERS)
    arch, version = gpu.get("arch"), gpu.get("compute_capability")
    is_amd = math.nan if arch is None else float(str(arch).startswith("gfx"))
    return {
        "sms": math.log2(sms),
        "bandwidth_per_flop": math.log2(bandwidth / (cores * clock_mhz)),
        "maker": is_amd,
        "generation": math.nan if version is None else version[0] + version[1] / 10,
    }


def _number(gpu: Mapping[str, Any], name: str) -> float:
    found = gpu.get(name, math.nan)
    if isinstance(found, str | bool) or found <= 0:
        raise ValueError(f"{name} of a GPU must be a number above 0, not {found!r}")
    return float(found)
