"""What jobs ask of a cluster, and how long sweeps are taken to last."""

import copy
from types import SimpleNamespace

import pytest
import yaml

from launchwise.base.typed import read_yaml
from launchwise.experiment.loading import load_experiment
from launchwise.experiment.settings import Slurm
from launchwise.gpus.profile import Ceilings, write_profile
from launchwise.workflow.sweeps import (
    LONGEST_SHARD_S,
    MOST_SHARDS,
    Cluster,
    limit_minutes,
    memory_mb,
    nominal_bandwidth_gbs,
    shards_for,
    volume,
)
from launchwise.workloads.space import configurations, narrowings, problems
from tests.support.samples import ROOT, profile

CONFIG = yaml.safe_load((ROOT / "config.yaml").read_text())
ALIKE = {"dtype": ["float32", "float64"], "order": [2, 8, 16]}
SWEPT = [
    {"n": [256, 512, 1024], **ALIKE},
    {"n": [200, 300, 400, 450, 500, 650, 800, 1000], **ALIKE},
    {"n": [*range(200, 1150, 50)], **ALIKE, "only": {"variant": ["linear", "block3d"]}},
]
"""Many problems; blocks overlap."""


def experiment(sweep=None, **gpus):
    """The default settings with other GPUs and, if given, another sweep."""
    config = copy.deepcopy(CONFIG)
    config["gpus"] = gpus
    config["workloads"] = ["tests/support/kernels"]
    config["sweeps"] = {"stencil": {"problems": SWEPT, **(sweep or {})}}
    return load_experiment(config, [ROOT / "config.yaml"], ROOT)


def cluster(sweep=None, arch="sm_90", **entry):
    """What jobs of one live GPU, ``a``, ask for."""
    found = experiment(sweep, a={"source": "live", "arch": arch, **entry})
    return Cluster(found, {"a": arch})


@pytest.mark.parametrize(("gres", "model"), read_yaml(ROOT / "tests/workflow/data/gres.yaml"))
def test_a_gres_asks_for_one_gpu_of_a_kind(gres, model):
    assert Slurm(partition="p", gres=gres).model == model


@pytest.mark.parametrize("gres", ["gpu:4", "gpu:a100:2", "gpu:", "shard:1", "gpu:a-100", ""])
def test_a_gres_that_asks_for_something_else_is_refused(gres):
    with pytest.raises(ValueError, match="must ask for one GPU, such as gpu"):
        Slurm(partition="p", gres=gres)


def asked_of(found, **defaults):
    """Resources of the GPU ``a`` that are set."""
    requests = found.requests(defaults)
    texts = {name: ask(SimpleNamespace(gpu="a")) for name, ask in requests.items()}
    return {name: text for name, text in texts.items() if text is not None}


def test_a_gpu_is_sought_where_its_entry_says():
    entry = {"partition": "big", "gres": "gpu:a100", "constraint": "ib|opa"}
    entry |= {"account": "physics", "qos": "high", "reservation": "lab"}
    entry |= {"extra": ["--exclusive", "--exclude=n[1-3]"], "modules": ["gcc/13", "cuda/13.0"]}
    found = cluster(slurm=entry)
    assert asked_of(found) == {
        "slurm_partition": "big",
        "gpu_model": "a100",
        "constraint": "ib|opa",
        "slurm_account": "physics",
        "qos": "high",
        # A shell reads it.
        "slurm_extra": "--reservation=lab --exclusive '--exclude=n[1-3]'",
        "modules": "gcc/13 cuda/13.0",
    }
    assert found.modules("sm_90") == "gcc/13 cuda/13.0"
    assert found.modules("sm_80") is None


def test_a_gpu_that_says_nothing_has_what_the_profile_says():
    defaults = {"slurm_account": "'1234'", "qos": "low", "slurm_partition": "gpu"}
    assert asked_of(cluster()) == {}
    assert asked_of(cluster(), **defaults) == {**defaults, "slurm_account": "1234"}
    entry = {"partition": "big", "qos": "high"}
    assert asked_of(cluster(slurm=entry), **defaults) == {
        "slurm_partition": "big",
        "qos": "high",
        "slurm_account": "1234",
    }


def test_rows_are_counted_from_some_problems_of_those_alike(stencil_spec):
    blocks = SWEPT
    listed = problems(stencil_spec, blocks)
    parts = narrowings(stencil_spec, blocks)
    # Blocks overlap: what one of them measures whole counts once.
    rows = sum(
        len(configurations(stencil_spec, problem, None, parts[tuple(problem.values())]))
        for problem in listed
    )
    found = volume(stencil_spec, blocks, None)
    assert found.rows == pytest.approx(rows, rel=0.05)
    assert volume(stencil_spec, blocks, 7).rows == 7 * len(listed)
    assert volume(stencil_spec, blocks, 10**6) == found


def test_a_part_of_a_space_takes_a_part_of_the_time(stencil_spec):
    block = {"n": [256, 512], "dtype": ["float32"], "order": [2]}
    part = {**block, "only": {"variant": ["block3d"], "bx": [32], "by": [4], "bz": [1, 2]}}
    whole, some = (volume(stencil_spec, [each], None) for each in (block, part))
    assert 2 <= some.rows / 2 <= 6 < whole.rows / 2
    assert some.seconds(1000) < whole.seconds(1000) / 10


def test_a_slower_card_takes_longer(stencil_spec):
    found = volume(stencil_spec, SWEPT, None)
    assert found.seconds(300) > 5 * found.seconds(3000) > 0


def test_shards_are_as_few_as_the_longest_job_allows():
    assert shards_for(1) == shards_for(LONGEST_SHARD_S) == 1
    assert shards_for(LONGEST_SHARD_S + 1) == 2
    assert shards_for(1e9) == MOST_SHARDS


def test_shards_follow_the_estimate_unless_they_are_given():
    assert cluster(arch="sm_100").shards("a", "stencil") == 1
    slow = cluster(arch="sm_75").shards("a", "stencil")
    assert slow > 1
    assert cluster(arch="sm_75", shards=3).shards("a", "stencil") == 3
    # Each would compile everything.
    assert cluster(arch="sm_75", compile="alongside").shards("a", "stencil") == 1


def test_the_number_of_shards_does_not_follow_what_was_measured(tmp_path):
    asked = cluster(arch="sm_75")
    before = asked.shards("a", "stencil")
    path = tmp_path / "a.json"
    ceilings = Ceilings(copy_bandwidth_gbs=9000.0, launch_overhead_us=2.0)
    write_profile(path, profile("a", ceilings=ceilings))
    asked.minutes("a", "stencil", str(path), 1)
    assert asked.shards("a", "stencil") == before


def test_a_limit_follows_the_measured_bandwidth_and_the_attempt(tmp_path):
    asked = cluster(arch="sm_90", shards=1)
    nominal = asked.minutes("a", "stencil", str(tmp_path / "none.json"), 1)
    path = tmp_path / "a.json"
    ceilings = Ceilings(
        copy_bandwidth_gbs=4 * nominal_bandwidth_gbs("sm_90"), launch_overhead_us=2.0
    )
    write_profile(path, profile("a", ceilings=ceilings))
    measured = asked.minutes("a", "stencil", str(path), 1)
    assert 15 < measured < nominal
    assert asked.minutes("a", "stencil", str(path), 2) == 2 * measured
    assert asked.memory_mb("a", "stencil", 3) == 3 * asked.memory_mb("a", "stencil", 1)
    path.write_text("damaged")
    assert asked.minutes("a", "stencil", str(path), 1) == nominal
    strategy = {"kind": "random", "budget": 10**6, "minutes": 1}
    asked = {"problems": SWEPT[:2], "strategy": strategy}
    ends = cluster(asked, arch="sm_90", shards=1)
    assert ends.minutes("a", "stencil", str(path), 1) == 15 + 3
    assert limit_minutes(0, 1, 1) == 15
    assert limit_minutes(3600, 2, 1) == 15 + 90


def test_an_architecture_has_the_bandwidth_of_its_slowest_card():
    # H100 PCIe, TITAN V, A2, B200; of no card in the table as the P4, the slowest of all.
    found = [nominal_bandwidth_gbs(arch) for arch in ("sm_90", "sm_70", "sm_86", "sm_100")]
    assert found == [2000, 652.8, 200, 7700]
    assert nominal_bandwidth_gbs("sm_999") == 192
    assert nominal_bandwidth_gbs("sm_90a") == nominal_bandwidth_gbs("sm_90f") == 2000


def test_memory_holds_the_arrays_of_the_host(stencil_spec):
    work = stencil_spec.work.model_copy(update={"host_bytes": "5 * itemsize * points"})
    by_host = stencil_spec.model_copy(update={"work": work})
    block = {"n": [1100], "dtype": ["float64"], "order": [2]}
    needed = memory_mb(by_host, [block])
    assert needed > 5 * 8 * 1098**3 / 1e6
    assert memory_mb(stencil_spec, [block]) == 4000
