"""Live GPUs through the command line, on made-up cards whose kernels run on the CPU."""

import hashlib
import json

import pandas as pd
import pytest
from fake_cluster import ROWS_PER_SWEEP, ClusterProject

from launchwise.gpus.profile import read_profile


@pytest.fixture(scope="module")
def live(tmp_path_factory, kernel_cache):
    """A project on a machine with cards of three kinds, one of its GPUs measured and recorded."""
    folder = tmp_path_factory.mktemp("live")
    project = ClusterProject.make(folder, kernel_cache, haste=True)
    project.run("record_h200.sm4", "sweep_a100")
    return project


def test_a_slice_is_described_measured_and_recorded(live):
    profile = read_profile(live.results / "gpus" / "h200.sm4.json", "h200.sm4")
    assert (profile.sms, profile.whole_card_sms, profile.arch) == (4, 8, "sm_90")
    recorded = live.project.folder / "data" / "recorded" / "h200.sm4"
    rows = pd.read_parquet(recorded / "stencil.parquet")
    assert len(rows) == ROWS_PER_SWEEP
    assert set(rows["status"]) == {"ok"}
    assert set(rows["gpu"]) == {"h200.sm4"}
    # Hashes of cards that really were there; which of two equal ones was free is chance.
    there = json.loads(live.cards.read_text())["h200"]
    marks = {hashlib.sha256(card["uuid"].encode()).hexdigest()[:16] for card in there}
    assert {*rows["card"], profile.card} <= marks
    assert json.loads((recorded / "stencil.provenance.json").read_text())


def test_shards_measure_everything_once(live):
    sweeps = live.results / "sweeps" / "a100"
    whole = pd.read_parquet(sweeps / "stencil.parquet")
    parts = [pd.read_parquet(sweeps / "stencil" / f"{shard}.parquet") for shard in (1, 2)]
    assert len(whole) == sum(map(len, parts)) == ROWS_PER_SWEEP
    assert not whole.duplicated(["n", "variant", "bx", "by", "bz"]).any()


def test_what_was_measured_is_not_measured_again(live):
    assert "Nothing to be done" in live.run("record_h200.sm4", "sweep_a100")
    # A new check, or one on another machine, is no reason either.
    path = live.results / "checks" / "a100.json"
    path.touch()
    assert "Nothing to be done" in live.run("sweep_a100")


def test_a_deleted_shard_is_measured_again(live):
    tables = [live.results / "sweeps" / "a100" / "stencil" / f"{shard}.parquet" for shard in (1, 2)]
    # Which shard took how many problems is chance.
    gone = max(tables, key=lambda path: len(pd.read_parquet(path)))
    rows = pd.read_parquet(gone)
    gone.unlink()
    (live.results / "journal" / "a100" / "stencil" / f"{gone.stem}.jsonl").unlink()
    live.run("sweep_a100")
    whole = pd.read_parquet(live.results / "sweeps" / "a100" / "stencil.parquet")
    assert len(whole) == ROWS_PER_SWEEP
    assert (whole["measured_at"] > rows["measured_at"].max()).sum() >= len(rows)


def test_a_recorded_sweep_is_extended(live):
    recorded = live.project.folder / "data" / "recorded" / "h200.sm4"
    before = pd.read_parquet(recorded / "stencil.parquet")
    profile = (recorded / "profile.json").read_bytes()
    asked = live.project.config()
    config = live.project.config()
    config["gpus"]["h200.sm4"]["extend"] = True
    sweep = config["sweeps"]["stencil"]
    sweep["problems"][0]["n"] = [*sweep["problems"][0]["n"], 32]
    sweep["anew"] = [{"n": [20], "bx": [128]}]
    live.project.configure(config)
    try:
        live.run("record_h200.sm4")
        config["gpus"]["a100"]["extend"] = True
        live.project.configure(config)
        wanted = "gpus.a100.extend: no file 'profile.json' in 'data/recorded/a100'"
        assert wanted in live.run("sweep_a100", fails=True)
    finally:
        live.project.configure(asked)
    after = pd.read_parquet(recorded / "stencil.parquet")
    columns = ["n", "variant", "bx", "by", "bz"]
    assert len(after) == ROWS_PER_SWEEP + ROWS_PER_SWEEP // 4
    both = before.merge(after, on=columns, suffixes=("_before", "_after"))
    again = both[both["measured_at_before"] != both["measured_at_after"]]
    wide = (before["n"] == 20) & (before["bx"] == 128)
    assert set(zip(again["n"], again["bx"], strict=True)) == {(20, 128)}
    assert len(again) == wide.sum()
    (entry,) = json.loads((recorded / "stencil.provenance.json").read_text())["joined"]
    assert entry["rows"] == len(after) - len(before)
    assert entry["rows_anew"] == len(again)
    # Baseline and best of that size were measured again beside them.
    (card,) = entry["cards"].values()
    assert len(again) <= card["anchors"] <= len(again) + 2
    assert entry["anew"] == sweep["anew"]
    assert (recorded / "profile.json").read_bytes() == profile


def test_a_machine_that_lacks_a_card_says_so_before_anything_else_is_done(live):
    config = live.project.config()
    config["gpus"]["other"] = {"source": "live", "arch": "sm_80", "device": "Made-up h200"}
    live.project.configure(config)
    said = live.run("--keep-going", "sweep_other", "check_gpus", fails=True)
    assert "gpus.other: " in said
    assert "no matching GPU: wanted Made-up h200 of sm_80, found Made-up a100 (sm_80)" in said
    assert not (live.results / "gpus" / "other.json").exists()
    assert (live.results / "checks" / "h200.json").exists()


@pytest.mark.slow
def test_a_new_gpu_is_searched_from_what_a_recorded_one_measured(live):
    asked, config = live.project.config(), live.project.config()
    config["gpus"] = {"h200.sm4": {"source": "recorded"}, "h200": config["gpus"]["h200"]}
    sweep = config["sweeps"]["stencil"]
    # 22 was not measured: the nearest size is; a budget wants the whole space.
    sweep["problems"] = [{"n": [20, 22], "dtype": ["float32"], "order": [2]}]
    sweep["strategy"] = {"kind": "transfer", "budget": 5}
    live.project.configure(config)
    try:
        live.run("sweep_h200")
    finally:
        live.project.configure(asked)
    prior = pd.read_parquet(live.results / "priors" / "h200" / "stencil.parquet")
    recorded = live.project.folder / "data" / "recorded" / "h200.sm4" / "stencil.parquet"
    elsewhere = pd.read_parquet(recorded).set_index(["n", "variant", "bx", "by", "bz"])["time_ms"]
    for size, measured_size in ((20, 20), (22, 21)):
        found = prior[prior["n"] == size].set_index(["variant", "bx", "by", "bz"])["time_ms"]
        assert found.to_dict() == elsewhere[measured_size].to_dict()
    assert set(prior["gpu"]) == {"h200.sm4"}
    rows = pd.read_parquet(live.results / "sweeps" / "h200" / "stencil.parquet")
    assert rows.groupby("n").size().to_dict() == {20: 5, 22: 5}
    names = [*rows.columns[rows.columns.get_loc("variant") : rows.columns.get_loc("status")]]
    assert not rows.duplicated(["n", *names]).any()
    # What was fastest elsewhere is tried: by chance, 4 of 75 configurations would be at each size.
    tried = set(rows[["n", "variant", "bx", "by", "bz"]].itertuples(index=False, name=None))
    assert {(20, *elsewhere[20].idxmin()), (22, *elsewhere[21].idxmin())} <= tried
