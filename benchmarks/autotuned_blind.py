"""What ``triton.autotune`` chooses for the problems of a blind test, by timing on the same GPU.

Its choice needs the problem on the card; the answers of the blind test were written down without.
Two lists of configurations of the workload's Triton function:

- ``tutorial``: those of Triton's tutorial on matrix products, for every problem. What the
  workload's space lacks (five stages, two warps, more shared memory than a block may have, tiles
  that are mostly empty) is left out.
- ``all``: every feasible configuration, for every eighth problem. They are compiled beforehand, by
  as many processes as there are cores.

Rows are divided among experts as the sweep divides them. ``blind_rivals.py`` judges the choices by
the sweep of the blind test.

    python benchmarks/autotuned_blind.py benchmarks/results/autotuned_blind.json
"""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import pandas as pd
from harness.command_line import arguments, card_facts, write_result
from harness.expert_products import (
    MOST_EXPERTS,
    TUNABLES,
    WORKLOAD,
    autotuned,
    choice,
    function,
    given,
    launch,
    routed,
)
from harness.needs import gpu_and_packages
from harness.projects import ROOT

from launchwise.base.work import usable_cores
from launchwise.gpus.profile import read_profile
from launchwise.learning.blind import problem_of, read_frozen
from launchwise.workloads.space import configurations, gpu_facts
from launchwise.workloads.spec import Spec, load_spec

GPU, STUDY = "h200", "expert_product_tile"
RECORDED = ROOT / "data" / "recorded" / GPU
TUTORIAL = ROOT / "data" / "public" / "shipped" / "triton_tutorial_products.csv"
EVERY = 8

Problem = Mapping[str, Any]
Configuration = dict[str, int]


def every(spec: Spec, problem: Problem, facts: Mapping[str, Any]) -> list[Configuration]:
    """Feasible configurations of the Triton function for a problem."""
    return [
        {name: int(each[name]) for name in TUNABLES}
        for each in configurations(spec, problem, facts)
        if each["variant"] == "triton"
    ]


@cache
def tutorial() -> list[Configuration]:
    """The tutorial's configurations."""
    table = pd.read_csv(TUTORIAL)[[*TUNABLES]].itertuples(index=False)
    return [dict(zip(TUNABLES, map(int, each), strict=True)) for each in table]


def of_tutorial(feasible: Sequence[Configuration]) -> list[Configuration]:
    """Those of the tutorial that are feasible, in its order. The space has no groups of tiles where
    no tile lies below another: such a configuration is the one without groups."""
    either = [(each, {**each, "GROUP_M": 1}) for each in tutorial()]
    found = [next((each for each in both if each in feasible), None) for both in either]
    return [each for each in found if each is not None]


def even(given_names: Mapping[str, Any]) -> int:
    """``EVEN_K`` of a launch, by the names of its arguments."""
    return int(given_names["k"] % given_names["BLOCK_K"] == 0)


def build_key(problem: Problem, configuration: Configuration) -> tuple[Any, ...]:
    """What a compiled function depends on."""
    own = tuple(configuration[name] for name in TUNABLES)
    return (problem["dtype"], even({**problem, **configuration}), *own)


def compile_one(key: tuple[Any, ...]) -> None:
    """Compile a function into Triton's cache."""
    import torch
    from triton.runtime.jit import MockTensor

    kind, even_k, *values = key
    elements = MockTensor(getattr(torch, kind))
    floats, integers = MockTensor(torch.float32), MockTensor(torch.int32)
    chosen = dict(zip(TUNABLES, values, strict=True))
    # Any numbers of the same divisibility: 16 divides every n and k.
    arrays = (elements, elements, elements, elements, floats, integers)
    function().warmup(
        *(*arrays, 8, 1024, 1024), grid=(1,), EVEN_K=even_k, MOST_EXPERTS=MOST_EXPERTS, **chosen
    )


def compiled(keys: Sequence[tuple[Any, ...]]) -> float:
    """Compile functions on all cores; seconds."""
    begin = time.perf_counter()
    with multiprocessing.get_context("spawn").Pool(usable_cores()) as pool:
        pool.map(compile_one, keys, chunksize=4)
    return time.perf_counter() - begin


def tuned(problem: Problem, listed: Sequence[Configuration]) -> dict[str, Any]:
    """What ``triton.autotune`` chooses among configurations, and its seconds."""
    import torch
    import triton

    kernel = autotuned(triton.heuristics({"EVEN_K": even})(function()), listed)
    arrays = given(problem, routed(problem))
    torch.cuda.synchronize()
    begin = time.perf_counter()
    launch(kernel, problem, arrays)
    torch.cuda.synchronize()
    return {
        "problem": dict(problem),
        "configurations": len(listed),
        "seconds": time.perf_counter() - begin,
        "configuration": choice(kernel),
    }


def main() -> None:
    """Tune the problems, and write the choices."""
    wanted = arguments(__doc__).parse_args()
    with gpu_and_packages():
        import torch
        import triton
    spec = load_spec(WORKLOAD)
    facts = gpu_facts(read_profile(RECORDED / "profile.json", GPU).model_dump())
    frozen = read_frozen(RECORDED / "blind" / f"{STUDY}.frozen.json")
    problems = [problem_of(each, spec) for each in frozen.answers]
    spaces = [every(spec, problem, facts) for problem in problems]
    cases = {
        "tutorial": [
            (problem, of_tutorial(space)) for problem, space in zip(problems, spaces, strict=True)
        ],
        "all": [*zip(problems, spaces, strict=True)][::EVERY],
    }
    if wanted.smallest:
        cases = {mode: [(of[0][0], of[0][1][:2])] for mode, of in cases.items()}
    keys = sorted({build_key(a, b) for of in cases.values() for a, listed in of for b in listed})
    seconds = compiled(keys)
    print(f"{len(keys)} functions compiled in {seconds:.1f} s", flush=True)
    choices = {}
    for mode, of in cases.items():
        choices[mode] = [tuned(problem, listed) for problem, listed in of]
        print(mode, f"{sum(each['seconds'] for each in choices[mode]):.1f} s", flush=True)
    about = {"gpu": GPU, "study": STUDY, "digest": frozen.digest}
    result = {**about, **card_facts(), "choices": choices}
    write_result(wanted.output, result, torch=torch.__version__, triton=triton.__version__)


if __name__ == "__main__":
    main()
