"""Small problems that a check draws, moved to where the constraints hold."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence

from launchwise.workloads.corners import corner_configurations
from launchwise.workloads.fitting_sizes import nearest_problem
from launchwise.workloads.parts import UNKNOWN_GPU, Value
from launchwise.workloads.space import Configuration, Problem, baseline, feasible
from launchwise.workloads.spec import Spec

Wish = Callable[[Problem], bool]

MOST_DOUBLINGS = 16
MOST_ITEMS = 1 << 16
MOST_BYTES = 1 << 23
"""Work items and memory of the largest problem that is drawn for its number of blocks."""


def drawn_problems(spec: Spec, wanted: Sequence[Problem]) -> list[Problem]:
    """Problems near wanted ones that the baseline may run, then those that only others may run.

    A problem that fits as it is stays. Others are moved to the nearest that meets the constraints
    of the problem and of the baseline. The first is the smallest; the others, odd sizes that fill
    no block, remain as odd as the constraints allow: different from the smallest and from each
    other, and odd multiples.

    Parameters
    ----------
    wanted
        The smallest problem, then the odd ones.
    """
    first, *odd = wanted
    runs = _configurations(spec)
    smallest = nearest_problem(spec, first, runs) or nearest_problem(spec, first)
    wishes = [] if smallest is None else _wishes(spec, smallest)
    found = [] if smallest is None else [smallest]
    alone = []
    for problem in odd:
        moved = _moved(spec, problem, runs, wishes)
        plain = _moved(spec, problem, [], wishes)
        found += [each for each in (moved or plain,) if each is not None]
        # Another variant may have what the baseline's constraints keep from being seen.
        if plain is not None and plain != moved and _others_run(spec, plain):
            alone.append(plain)
    return list({tuple(each.values()): each for each in (*found, *alone)}.values())


def with_several_blocks(
    spec: Spec, starts: Sequence[Problem], configurations: Sequence[Configuration]
) -> Problem:
    """A problem whose grids, of all launches, have two blocks or more along each axis that grows.

    A mistake at the border of blocks, or in a loop over tiles, shows in no problem that one block
    covers. Sizes that grids read are doubled until then, as long as the work is little.

    Parameters
    ----------
    starts
        Problems to begin with: the first from which the fewest axes keep a single block counts.
    configurations
        Whose grids count.
    """
    grown = [_grown(spec, each, configurations) for each in starts]
    return min(grown, key=lambda each: len(single_axes(spec, each, configurations)))


def _grown(spec: Spec, problem: Problem, configurations: Sequence[Configuration]) -> Problem:
    found = dict(problem)
    for _ in range(MOST_DOUBLINGS):
        larger: dict[str, Value] = {}
        for names in single_axes(spec, found, configurations):
            larger |= _cheapest(spec, found, names, larger)
        whole = {**found, **larger}
        if larger and not is_small(spec, whole):
            # One axis may still grow where all together are too much work.
            alone = [{**found, name: size} for name, size in larger.items()]
            whole = next((each for each in alone if is_small(spec, each)), found)
        if whole == found:
            break
        found = whole
    return found


def _cheapest(
    spec: Spec, problem: Problem, names: Sequence[str], taken: Mapping[str, Value]
) -> dict[str, Value]:
    """Larger values of those parameters of an axis that cost least: of n in ``n * 4**k``."""
    sizes: dict[str, Value] = {}
    if not taken.keys().isdisjoint(names):
        return {}
    for name in names:
        size = 2 * int(problem[name]) - 1
        # A width remains no height.
        while size in {**problem, **taken, **sizes}.values():
            size += 2
        if spec.problem[name].check(size) is None:
            sizes[name] = size
    work = {name: _bytes(spec, {**problem, name: size}) for name, size in sizes.items()}
    least = min(work.values(), default=0.0)
    return {name: size for name, size in sizes.items() if work[name] <= 1.5 * least}


def is_small(spec: Spec, problem: Problem) -> bool:
    """Whether the CPU, which runs one thread at a time, has little work with a problem."""
    items = float(spec.value(spec.work.items, problem))
    return items <= MOST_ITEMS and _bytes(spec, problem) <= MOST_BYTES


def _bytes(spec: Spec, problem: Problem) -> float:
    return float(spec.value(spec.work.footprint_bytes, problem))


def single_axes(
    spec: Spec, problem: Problem, configurations: Sequence[Configuration]
) -> list[tuple[str, ...]]:
    """Integer parameters that each axis of a grid reads which has a single block, without doubles.

    Grids of all launches of a run; counters of repetitions are 0.
    """
    free = {n for n, one in spec.problem.items() if one.type == "integer" and not one.values}
    short: dict[tuple[str, ...], None] = {}
    for configuration in configurations:
        variant = spec.variants[str(configuration["variant"])]
        counters = {name: 0 for part in (variant, *variant.kernels) for name in part.repeat}
        names = {**counters, **problem, **configuration, **UNKNOWN_GPU}
        for text in itertools.chain(*variant.grids):
            read = set(spec.formulas.raw_names(text)) & free
            try:
                single = read and spec.value(text, names) < 2
            except ValueError:
                continue
            if single:
                short[tuple(name for name in spec.problem if name in read)] = None
    return list(short)


def _configurations(spec: Spec) -> list[Configuration]:
    """The baseline, and the configuration that computes what is expected, if one does."""
    found = [baseline(spec)]
    if spec.reference is not None and spec.reference.variant is not None:
        neutral = spec.neutral
        found.append({"variant": spec.reference.variant, **neutral})
    return found


def _others_run(spec: Spec, problem: Problem) -> bool:
    expected = _configurations(spec)[1:]
    return all(feasible(spec, problem, each) for each in expected) and any(
        feasible(spec, problem, each) for each in corner_configurations(spec)
    )


def _moved(
    spec: Spec, wanted: Problem, runs: Sequence[Configuration], wishes: Sequence[Wish]
) -> Problem | None:
    """The wanted problem if it fits, else the nearest that grants the most of the wishes."""
    nearest = nearest_problem(spec, wanted, runs)
    if nearest is None or nearest == wanted:
        return nearest
    for wish in wishes:
        if (granted := nearest_problem(spec, wanted, runs, wish)) is not None:
            return granted
    return nearest


def _wishes(spec: Spec, smallest: Problem) -> list[Wish]:
    """What an odd problem should be, the best first."""
    integers = [
        name
        for name, one in spec.problem.items()
        if one.type == "integer" and one.values is None and one.minimum != one.maximum
    ]

    def differs(problem: Problem) -> bool:
        return any(problem[name] != smallest[name] for name in integers)

    def is_odd(problem: Problem) -> bool:
        # Not a multiple of a larger power of two than the smallest size is.
        return differs(problem) and all(
            _power(int(problem[name])) <= _power(int(smallest[name])) for name in integers
        )

    def all_differ(problem: Problem) -> bool:
        values = [problem[name] for name in integers]
        moved = all(problem[name] != smallest[name] for name in integers)
        return moved and len(set(values)) == len(values)

    def is_odd_everywhere(problem: Problem) -> bool:
        return is_odd(problem) and all_differ(problem)

    return [is_odd_everywhere, is_odd, all_differ, differs]


def _power(value: int) -> int:
    """Largest power of two that divides a number."""
    return value & -value
