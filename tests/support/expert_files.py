"""A product over experts, made up for tests, and mappings to files of libraries that have one."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from samples import ROOT

from launchwise.workloads.spec import Spec, load_spec

SPEC = """\
workload: grouped
title: a product per expert
problem:
  tokens: {type: integer, minimum: 1, maximum: 100000}
  experts: {type: integer, minimum: 1, maximum: 1024}
  n: {type: integer, minimum: 1, maximum: 100000}
  k: {type: integer, minimum: 1, maximum: 100000}
  dtype: {type: category, values: [float16, bfloat16]}
tunables:
  BLOCK_M: {kind: build, values: [16, 64]}
  BLOCK_N: {kind: build, values: [32, 64]}
  BLOCK_K: {kind: build, values: [32, 64]}
  GROUP_M: {kind: build, values: [1, 8]}
  num_warps: {kind: build, values: [4, 8]}
  num_stages: {kind: build, values: [2, 3]}
work:
  items: tokens * n
  item: numbers
  bytes: 2 * experts * n * k
  flop: 2 * tokens * n * k
  footprint_bytes: 4 * experts * n * k
variants:
  triton: {tunables: [BLOCK_M, BLOCK_N, BLOCK_K, GROUP_M, num_warps, num_stages]}
baseline:
  {variant: triton, BLOCK_M: 64, BLOCK_N: 64, BLOCK_K: 32, GROUP_M: 8, num_warps: 4, num_stages: 2}
"""
VALUES = {
    **{"BLOCK_M": 16, "BLOCK_N": 32, "BLOCK_K": 64, "GROUP_M": 1},
    **{"num_warps": 4, "num_stages": 3},
}
THEIRS = {
    **{"BLOCK_M": "BLOCK_SIZE_M", "BLOCK_N": "BLOCK_SIZE_N", "BLOCK_K": "BLOCK_SIZE_K"},
    **{"GROUP_M": "GROUP_SIZE_M"},
}
"""Tunable to its name in the files."""


def grouped_spec(folder: Path) -> Spec:
    """The workload, written to ``folder``."""
    folder.mkdir(parents=True)
    (folder / "spec.yaml").write_text(SPEC)
    return load_spec(folder)


def grouped_table(*listed: tuple[str, dict[str, Any], dict[str, Any]]) -> dict[str, Any]:
    """An exported table: of each answer the device, its problem, and what is not as in VALUES."""
    devices = list(dict.fromkeys(device for device, _, _ in listed))
    names = {"big": ["Made-up Big 80GB"], "slice": ["Made-up Big 80GB"]}
    return {
        "study": "grouped_sizes",
        "parameters": ["tokens", "experts", "n", "k", "dtype"],
        "tunables": ["variant", *VALUES],
        "devices": [{"name": each, "cuda_names": names.get(each, [each])} for each in devices],
        "entries": [
            {
                "device": devices.index(device),
                "problem": [*problem.values()],
                "configuration": ["triton", *{**VALUES, **changed}.values()],
            }
            for device, problem, changed in listed
        ],
    }


def problem(tokens: int, **changed: int | str) -> dict[str, Any]:
    """A problem of 8 experts."""
    usual = {"experts": 8, "n": 2048, "k": 4096, "dtype": "float16"}
    return {"tokens": tokens, **usual, **changed}


def documented_mappings(page: str = "config_files") -> dict[str, str]:
    """Mappings that the guide shows, each by the name of its file."""
    text = (ROOT / "docs" / "how-to" / f"{page}.md").read_text(encoding="utf-8")
    found = re.findall(r"^`([\w.]+)`\n\n```yaml\n(.*?)```", text, re.MULTILINE | re.DOTALL)
    return dict(found)
