"""A product over experts, made up for tests, and mappings to files of libraries that have one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from guides import shown_files

from launchwise.workloads.spec import Spec, load_spec

SPEC = Path(__file__).with_name("specs").joinpath("grouped.yaml").read_text()
VALUES = {
    **{"BLOCK_M": 16, "BLOCK_N": 32, "BLOCK_K": 64, "GROUP_M": 1},
    **{"num_warps": 4, "num_stages": 3},
}
THEIRS = {
    **{"BLOCK_M": "BLOCK_SIZE_M", "BLOCK_N": "BLOCK_SIZE_N", "BLOCK_K": "BLOCK_SIZE_K"},
    **{"GROUP_M": "GROUP_SIZE_M"},
}
"""Tunable to its name in the files."""


def theirs(**changed: int) -> dict[str, int]:
    """Values of a configuration, by their names in the files."""
    return {THEIRS.get(name, name): value for name, value in {**VALUES, **changed}.items()}


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


def documented_mappings() -> dict[str, str]:
    """Mappings that the guide shows, each by the name of its file."""
    return shown_files("config_files")
