"""Kernels of many hands on the CPU device: right ones are right, planted faults are found."""

import re
from typing import get_args

import pytest
from strangers import FOLDERS, FOUND, STRANGERS, each_problem, expectation, faulty, few, planted

from launchwise.base.arrays import TYPES
from launchwise.base.names import SPEC_FILE
from launchwise.base.typed import read_yaml
from launchwise.cli.check.on_cpu import outcome
from launchwise.cpu.device import CpuDevice
from launchwise.workloads.arguments import Argument, Fill, Reference, Role, Step
from launchwise.workloads.declared.declared_workload import load_workload
from launchwise.workloads.spec import load_spec

SEED = 2026


def runs(folder, problem, chosen, cache):
    """Status and reason of each configuration."""
    spec = load_spec(folder)
    workload = load_workload(folder, spec)
    device = CpuDevice(folder, spec.headers, cache=cache, watched=True)
    for configuration in chosen:
        found = outcome(workload, spec, device, problem, configuration, SEED)
        yield found["status"], found["reason"]


def expected_of(name):
    """What is expected of a folder; skips what the CPU device cannot run."""
    expected = expectation(name)
    if expected.needs:
        pytest.skip(expected.needs)
    return expected


@pytest.mark.parametrize("name", FOLDERS)
def test_a_kernel_of_any_hand_is_right_on_the_cpu(name, kernel_cache):
    expected = expected_of(name)
    spec = load_spec(STRANGERS / name)
    for problem in each_problem(expected.problem):
        chosen = few(spec, problem)
        assert len(chosen) > 1
        for status in runs(STRANGERS / name, problem, chosen, kernel_cache):
            assert status == ("ok", ""), status[1]


@pytest.mark.parametrize("name", FOLDERS)
def test_every_planted_fault_is_found_on_the_cpu(name, kernel_cache, tmp_path):
    expected = expected_of(name)
    (problem, *_) = each_problem(expected.problem)
    for number, fault in enumerate(each for each in expected.faults if "cpu" in each.devices):
        folder = planted(name, fault, tmp_path / str(number))
        chosen = [faulty(load_spec(folder), fault)]
        ((status, reason),) = runs(folder, problem, chosen, kernel_cache)
        assert status in FOUND, f"{fault.name}: {reason}"
        assert re.search(fault.says, reason), f"{fault.name}: {reason}"


@pytest.mark.parametrize("name", FOLDERS)
def test_a_fault_replaces_one_passage(name, tmp_path):
    for number, fault in enumerate(expectation(name).faults):
        planted(name, fault, tmp_path / str(number))


def test_every_folder_of_the_corpus_says_what_is_expected():
    assert sorted(path.parent.name for path in STRANGERS.glob(f"*/{SPEC_FILE}")) == FOLDERS


SPECS = [read_yaml(STRANGERS / name / SPEC_FILE) for name in FOLDERS]
ARGUMENTS = [one for spec in SPECS for one in spec["arguments"].values()]


def keys_of(model):
    """Keys that a part of ``spec.yaml`` may have."""
    return set(model.model_fields)


def test_every_type_is_in_the_corpus():
    used = set()
    for spec in SPECS:
        listed = {**spec["problem"], **spec["tunables"]}
        for one in spec["arguments"].values():
            kinds = one["type"].values() if isinstance(one["type"], dict) else [one["type"]]
            for kind in kinds:
                used |= set(listed[kind]["values"] if kind in listed else [kind])
    assert used >= set(TYPES)


def test_every_role_and_every_key_is_in_the_corpus():
    """Whoever adds a key adds a folder that uses it, or a use of it."""
    references = [spec["reference"] for spec in SPECS]
    variants = [one for spec in SPECS for one in spec["variants"].values()]
    steps = [step for one in variants for step in one.get("kernels", [])]
    fills = [one["fill"] for one in ARGUMENTS if "fill" in one]
    assert {one.get("role", "input") for one in ARGUMENTS} == set(get_args(Role))
    for model, parts in (
        (Argument, ARGUMENTS),
        (Reference, references),
        (Step, steps),
        (Fill, [one for one in fills if isinstance(one, dict)]),
    ):
        assert {key for part in parts for key in part} == keys_of(model), model
    assert {one for one in fills if isinstance(one, str)} == {"normal", "uniform", "zeros", "iota"}
    assert {"inputs", "constraints", "macros", "derived"} <= {key for spec in SPECS for key in spec}
