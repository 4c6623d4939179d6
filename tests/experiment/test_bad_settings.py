"""Bad overlays: one line with the file, the key and what is allowed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from overlays import BLOCK, STUDY, S, line_of, nested

BAD: dict[str, tuple[dict[str, Any], str, str]] = {
    "unknown key": (nested("sed", 1), "sed: unknown key 'sed', did you mean 'seed'?", "gpus"),
    "unknown key of a GPU with a dot in its name": (
        nested("gpus/h200.sm72/shard", 2),
        "gpus.h200.sm72.shard: unknown key 'shard', did you mean 'shards'?",
        "slice_sms",
    ),
    "unknown key of Slurm": (
        nested("gpus/h200/slurm", {"partition": "x", "gress": "y"}),
        "gpus.h200.slurm.gress: unknown key 'gress', did you mean 'gres'? (allowed:",
        "account, constraint, extra, gres, modules, partition, qos, reservation",
    ),
    "several GPUs for one sweep": (
        nested("gpus/h200/slurm", {"partition": "x", "gres": "gpu:a100:2"}),
        "gpus.h200.slurm.gres: must ask for one GPU, such as gpu, gpu:h200 or gpu:h200:1",
        "",
    ),
    "unknown key of a split": (
        nested(f"{S}/splits/sizes/tests", {"n": [3]}),
        f"{STUDY}.splits.sizes.tests: unknown key 'tests', did you mean 'test'? (allowed:",
        "kind, test, title, train)",
    ),
    "training sizes of a split by GPU": (
        nested(f"{S}/splits/transfer/train", {"n": [3]}),
        f"{STUDY}.splits.transfer.train: unknown key 'train' (allowed: among, kind, title)",
        "",
    ),
    "address instead of a DOI": (
        nested(f"{S}/doi", "https://doi.org/10.5281/zenodo.15364124"),
        f"{STUDY}.doi: must be a DOI without an address, such as 10.5281/zenodo.15364124",
        "",
    ),
    "missing key": (
        nested(f"{S}/splits/new", {"kind": "problems"}),
        f"{STUDY}.splits.new.title: is missing",
        "",
    ),
    "unknown study": (
        nested("studies/stencil_blocks", {"models": ["knn"]}),
        "studies.stencil_blocks: unknown study 'stencil_blocks', did you mean 'stencil_block'?",
        "",
    ),
    "unknown study of a GPU": (
        nested("gpus/h200/studies", ["stencil_blocks"]),
        "gpus.h200.studies: unknown study 'stencil_blocks', did you mean 'stencil_block'?",
        "",
    ),
    "no study at all": (
        nested("studies", {"stencil_block": None}),
        "studies: every study is left out: keep at least one",
        "",
    ),
    "unknown kind of split": (
        nested(f"{S}/splits/sizes/kind", "problem"),
        f"{STUDY}.splits.sizes.kind: unknown kind 'problem', did you mean 'problems'?",
        "leave_one_gpu_out",
    ),
    "split without a kind": (
        nested(f"{S}/splits/new", {"title": "x"}),
        f"{STUDY}.splits.new.kind: is missing (allowed: leave_one_gpu_out, problems)",
        "",
    ),
    "required key that is misspelt": (
        nested("gpus/a100", {"sorce": "live", "arch": "sm_80"}),
        "gpus.a100.sorce: unknown key 'sorce', did you mean 'source'? (allowed:",
        "shards",
    ),
    "split whose kind is misspelt": (
        nested(f"{S}/splits/new", {"title": "x", "knd": "problems"}),
        f"{STUDY}.splits.new.knd: unknown key 'knd', did you mean 'kind'? (allowed:",
        "kind",
    ),
    "wrong type": (nested("seed", "x"), "seed: must be a valid integer", "(got 'x')"),
    "list for a mapping": (nested("gpus", ["h200"]), "gpus: must be a mapping", ""),
    "nothing for a mapping": (nested("sweeps", None), "sweeps: must be a mapping", ""),
    "number for a list": (
        nested(f"{S}/splits/sizes/train/n", 64),
        f"{STUDY}.splits.sizes.train.n: must be a valid list (got 64)",
        "",
    ),
    "fraction for a size": (
        nested(f"{S}/splits/sizes/train/n", [64, 1.5]),
        f"{STUDY}.splits.sizes.train.n.1: must be a valid integer",
        "or be a valid string (got 1.5)",
    ),
    "below its range": (nested("seed", -1), "seed: must be greater than or equal to 0", "-1"),
    "several shards that would all compile": (
        nested("gpus/x", {"source": "live", "shards": 2, "compile": "alongside"}),
        "gpus.x: compile: alongside needs one shard",
        "(shards: 2)",
    ),
    "above its range": (
        nested("gpus/h200.sm72/shards", 5000),
        "gpus.h200.sm72.shards: must be less than or equal to 1000 (got 5000)",
        "",
    ),
    "not among the choices": (
        nested("gpus/h200.sm72/source", "recroded"),
        "gpus.h200.sm72.source: must be 'recorded', 'live' or 'described' (got 'recroded')",
        "",
    ),
    "architecture that is none": (
        nested("gpus/h200/arch", "hopper"),
        "gpus.h200.arch: must match pattern",
        "(got 'hopper')",
    ),
    "name of a GPU with a hyphen": (
        nested("gpus/h200-2", {"source": "live"}),
        "gpus.h200-2: its name must match pattern",
        "",
    ),
    "name of a GPU that leaves its folder": (
        nested("gpus/..", {"source": "live"}),
        "gpus...: its name must match pattern",
        "",
    ),
    "minimum above maximum": (
        nested("sweeps/stencil/repeats", {"minimum": 9, "maximum": 3}),
        "sweeps.stencil.repeats: minimum 9 is above maximum 3",
        "",
    ),
    "strategy that does not exist": (
        nested("sweeps/stencil/strategy", {"kind": "bayes", "budget": 5}),
        "sweeps.stencil.strategy.kind: must be 'exhaustive', 'random', 'tpe' or 'transfer' "
        "(got 'bayes')",
        "",
    ),
    "strategy without a budget": (
        nested("sweeps/stencil/strategy", {"kind": "random"}),
        "sweeps.stencil.strategy: random needs a budget (rows per problem) or minutes",
        "",
    ),
    "time for everything": (
        nested("sweeps/stencil/strategy", {"minutes": 5}),
        "sweeps.stencil.strategy: exhaustive measures every configuration: remove minutes",
        "",
    ),
    "no time": (
        nested("sweeps/stencil/strategy", {"kind": "tpe", "minutes": 0}),
        "sweeps.stencil.strategy.minutes: must be greater than 0 (got 0)",
        "",
    ),
    "workloads of a recorded GPU": (
        nested("gpus/h200/workloads", ["stencil"]),
        "gpus.h200: workloads: needs source live, not recorded",
        "",
    ),
    "workload that does not exist": (
        nested("gpus/x", {"source": "live", "arch": "sm_90", "workloads": ["stencils"]}),
        "gpus.x.workloads: unknown workload 'stencils', did you mean 'stencil'?",
        "",
    ),
    "a strategy that cannot say what is to be gained": (
        nested("sweeps/stencil/strategy", {"kind": "tpe", "budget": 5, "stop_below_percent": 1}),
        "sweeps.stencil.strategy: tpe expects no gain: remove stop_below_percent",
        "",
    ),
    "strategy with nothing to spend": (
        nested("sweeps/stencil/strategy", {"kind": "tpe", "budget": 0}),
        "sweeps.stencil.strategy.budget: must be greater than or equal to 1 (got 0)",
        "",
    ),
    "budget of everything": (
        nested("sweeps/stencil/strategy", {"budget": 5}),
        "sweeps.stencil.strategy: exhaustive measures every configuration: remove budget",
        "",
    ),
    "guesses before everything": (
        nested("sweeps/stencil/strategy", {"guesses": {"model": "x"}}),
        "sweeps.stencil.strategy: exhaustive measures every configuration: remove guesses",
        "",
    ),
    "guesses of no model": (
        nested("sweeps/stencil/strategy", {"kind": "tpe", "budget": 5, "guesses": {"count": 3}}),
        "sweeps.stencil.strategy.guesses.model: is missing",
        "",
    ),
    "no guesses at all": (
        nested(
            "sweeps/stencil/strategy",
            {"kind": "tpe", "budget": 5, "guesses": {"model": "x", "count": 0}},
        ),
        "sweeps.stencil.strategy.guesses.count: must be greater than or equal to 1 (got 0)",
        "",
    ),
    "nothing to measure": (nested("sweeps/stencil/problems", []), "sweeps.stencil.problems:", ""),
    "no value to measure": (
        nested("sweeps/stencil/problems", [{"n": [], "dtype": ["float32"], "order": [2]}]),
        "sweeps.stencil.problems.0.n: must have at least 1 item",
        "",
    ),
    "unknown workload of a sweep": (
        nested("sweeps/other", {"problems": [{"n": [1]}]}),
        "sweeps.other: unknown workload 'other' (allowed: saxpy, stencil)",
        "",
    ),
    "unknown workload of a GPU": (
        nested("gpus/h200.sm72/problems", {"other": [{"n": [64]}]}),
        "gpus.h200.sm72.problems: unknown workload 'other' (allowed: ",
        "saxpy, stencil)",
    ),
    "unknown GPU of a study": (
        nested(f"{S}/gpus", ["h200.sm27"]),
        f"{STUDY}.gpus: unknown GPU 'h200.sm27', did you mean 'h200.sm72'?",
        "(allowed: h200, h200.sm72)",
    ),
    "GPU named twice by a study": (
        nested(f"{S}/gpus", ["h200", "h200"]),
        f"{STUDY}.gpus: 'h200' is given twice",
        "",
    ),
    "described GPU in the list of a study": (
        {**nested("gpus/a100", {"source": "described"}), **nested(f"{S}/gpus", ["h200", "a100"])},
        f"{STUDY}.gpus: a100 is datasheet-only and has no sweep; a study needs rows to learn from",
        "",
    ),
    "held-out GPU in the list of a study": (
        {**nested("gpus/h200.sm72/held_out", True), **nested(f"{S}/gpus", ["h200", "h200.sm72"])},
        f"{STUDY}.gpus: h200.sm72 is held out; a study needs rows to learn from: remove it",
        "",
    ),
    "described GPU that is held out": (
        nested("gpus/a100", {"source": "described", "held_out": True}),
        "gpus.a100: held_out: a datasheet-only GPU is never measured: remove this key",
        "",
    ),
    "card of a GPU that is measured": (
        nested("gpus/h200.sm72/card", "a100"),
        "gpus.h200.sm72: card: needs source described, not recorded",
        "",
    ),
    "host link of a GPU that is measured": (
        nested("gpus/h200.sm72/host_gbs", 25),
        "gpus.h200.sm72: host_gbs: needs source described, not recorded",
        "",
    ),
    "host link of no rate": (
        nested("gpus/a100", {"source": "described", "host_gbs": 0}),
        "gpus.a100.host_gbs:",
        "greater than 0",
    ),
    "sweep of a GPU that is described": (
        nested("gpus/a100", {"source": "described", "shards": 2}),
        "gpus.a100: shards: a datasheet-only GPU is never measured: remove this key",
        "",
    ),
    "model named twice": (
        nested(f"{S}/models", ["knn", "knn"]),
        f"{STUDY}.models: 'knn' is given twice",
        "",
    ),
    "unknown tunable": (
        nested(f"{S}/candidates", {"bw": [1]}),
        f"{STUDY}.candidates: unknown tunable 'bw'",
        "variant",
    ),
    "unknown feature": (
        nested(f"{S}/features", ["n", "tile"]),
        f"{STUDY}.features: unknown feature 'tile'",
        "planes_over_l2",
    ),
    "value that no tunable has": (
        nested(f"{S}/candidates", {"bx": [8, 7]}),
        f"{STUDY}.candidates.bx: unknown value '7'",
        "1024",
    ),
    "a constraint on what nobody has": (
        nested(f"{S}/constraints", ["bx == width"]),
        f"{STUDY}.constraints: 'bx == width': unknown name 'width'",
        "bx",
    ),
    "a constraint that is not an expression": (
        nested(f"{S}/constraints", ["bx =="]),
        f"{STUDY}.constraints: 'bx ==' is not an expression",
        "",
    ),
    "a design of what is no tunable": (
        nested(f"{S}/designs", {"wide": {"title": "wide", "candidates": {"bw": [32]}}}),
        f"{STUDY}.designs.wide.candidates: unknown tunable 'bw'",
        "variant",
    ),
    "a design whose condition asks for what nobody has": (
        nested(f"{S}/designs", {"wide": {"title": "wide", "constraints": ["bx == width"]}}),
        f"{STUDY}.designs.wide.constraints: 'bx == width': unknown name 'width'",
        "bx",
    ),
    "counters by what is no tunable": (
        nested(f"{S}/counters", {"by": ["bw"]}),
        f"{STUDY}.counters.by: unknown tunable 'bw'",
        "variant",
    ),
    "counters of a problem outside its range": (
        nested(f"{S}/counters", {"by": ["variant"], "among": {"n": [4096]}}),
        f"{STUDY}.counters.among.n: 4096 is above the maximum 2048",
        "",
    ),
    "a problem outside its range that is left out": (
        nested(f"{S}/leave_out", {"h200": {"n": [4096]}}),
        f"{STUDY}.leave_out.h200.n: 4096 is above the maximum 2048",
        "",
    ),
    "unknown variant": (
        nested(f"{S}/candidates", {"variant": ["blok3d"]}),
        f"{STUDY}.candidates.variant: unknown value 'blok3d', did you mean 'block3d'?",
        "",
    ),
    "unknown problem parameter of a split": (
        nested(f"{S}/splits/sizes/train", {"m": [64]}),
        f"{STUDY}.splits.sizes.train: unknown problem parameter 'm'",
        "(allowed: dtype, n, order)",
    ),
    "value of a split outside its range": (
        nested(f"{S}/splits/sizes/test/n", [64, 4096]),
        f"{STUDY}.splits.sizes.test.n: 4096 is above the maximum 2048",
        "",
    ),
    "value of a sweep outside its range": (
        nested("sweeps/stencil/problems", [{"n": [8], "dtype": ["float32"], "order": [2]}]),
        "sweeps.stencil.problems: n: 8 is below the minimum 20",
        "",
    ),
    "unknown tunable in a block": (
        nested("sweeps/stencil/problems", [{**BLOCK, "only": {"bw": [1]}}]),
        "sweeps.stencil.problems.only: unknown tunable 'bw'",
        "variant",
    ),
    "value in a block that no tunable has": (
        nested("sweeps/stencil/problems", [{**BLOCK, "only": {"bx": [7]}}]),
        "sweeps.stencil.problems.only.bx: unknown value '7'",
        "1024",
    ),
    "a block that narrows by a list": (
        nested("sweeps/stencil/problems", [{**BLOCK, "only": [1]}]),
        "sweeps.stencil.problems.only: must be tunables with their values",
        "",
    ),
    "a block with a mapping of values": (
        nested("sweeps/stencil/problems", [{**BLOCK, "n": {"bx": [8]}}]),
        "sweeps.stencil.problems.n: must be a list of values",
        "",
    ),
    "a narrowed block that is explored": (
        nested(
            "sweeps/stencil",
            {
                "strategy": {"kind": "random", "budget": 5},
                "problems": [{**BLOCK, "only": {"bx": [8]}}],
            },
        ),
        "sweeps.stencil.problems.only: needs an exhaustive sweep, not random",
        "",
    ),
    "problem parameter left out": (
        nested("gpus/h200.sm72/problems", {"stencil": [{"n": [64]}]}),
        "gpus.h200.sm72.problems.stencil: dtype is missing",
        "",
    ),
    "folder of workloads that is not there": (
        nested("workloads", ["kernels", "mine"]),
        "workloads: no folder 'mine'",
        "",
    ),
}


@pytest.mark.parametrize("what", BAD)
def test_a_bad_overlay_is_one_line_with_its_file_key_and_what_is_allowed(
    home: Path, what: str
) -> None:
    overlay, start, part = BAD[what]
    line = line_of({"search": {"folds": 2}}, overlay, {"search": {"trials": 1}})
    assert line.startswith(f"overlay1.yaml: {start}")
    assert part in line
