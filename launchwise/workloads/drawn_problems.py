"""Small problems that a check draws, moved to where the constraints hold."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from launchwise.workloads.corners import corner_configurations
from launchwise.workloads.fitting_sizes import nearest_problem
from launchwise.workloads.space import UNKNOWN_GPU, Configuration, Problem, baseline, feasible
from launchwise.workloads.spec import Spec

Wish = Callable[[Problem], bool]

MOST_DOUBLINGS = 16
MOST_ITEMS = 1 << 16
"""Work items of the largest problem that is drawn: the CPU runs one thread at a time."""


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


def with_several_blocks(spec: Spec, problem: Problem) -> Problem:
    """A problem like this one whose grids have two blocks or more along each axis that grows.

    A mistake at the border of blocks, or in a loop over tiles, shows in no problem that one block
    covers. Sizes that grids read are doubled until then, or up to :data:`MOST_ITEMS`.
    """
    found = dict(problem)
    for _ in range(MOST_DOUBLINGS):
        larger: dict[str, int] = {}
        for name in _sizes_of_single_blocks(spec, found):
            size = 2 * int(found[name]) - 1
            # A width remains no height.
            while size in {**found, **larger}.values():
                size += 2
            if spec.problem[name].check(size) is None:
                larger[name] = size
        grown = {**found, **larger}
        if not larger or _items(spec, grown) > MOST_ITEMS:
            break
        found = grown
    return found


def _items(spec: Spec, problem: Problem) -> float:
    return float(spec.value(spec.work.items, problem))


def _sizes_of_single_blocks(spec: Spec, problem: Problem) -> list[str]:
    """Integer parameters of the problem that grid axes read which have a single block."""
    free = {n for n, one in spec.problem.items() if one.type == "integer" and not one.values}
    short: dict[str, None] = {}
    for configuration in corner_configurations(spec):
        names = {**problem, **configuration, **UNKNOWN_GPU}
        variant = spec.variants[str(configuration["variant"])]
        for text in variant.grid or ():
            read = set(spec.formulas.raw_names(text)) & free
            try:
                single = read and spec.value(text, names) < 2
            except ValueError:
                continue
            if single:
                short |= dict.fromkeys(name for name in spec.problem if name in read)
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
