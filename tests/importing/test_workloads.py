"""Workloads without a kernel, made of sweeps that others measured."""

import json

import foreign
import numpy as np
import pandas as pd
import pytest
import yaml
from samples import ROOT, STENCIL, measurements

from launchwise.base.errors import UserError
from launchwise.base.typed import read_yaml
from launchwise.experiment.loading import load_experiment
from launchwise.gpus.profile import read_profile
from launchwise.importing.command import export_sweep, import_sweeps, told
from launchwise.learning.features import Domain
from launchwise.learning.splits import Case
from launchwise.tables.files import read_table, write_table
from launchwise.tables.measurements import measurement_schema
from launchwise.workloads.space import baseline, configurations, feasible, launch, universe
from launchwise.workloads.spec import load_spec

CARDS = ("NVIDIA RTX A4000", "NVIDIA RTX A6000", "AMD Radeon PRO W7800")
NAMES = ["a4000", "a6000", "w7800"]


def imported(tmp_path, files, **options):
    """An import into a folder of the test."""
    return import_sweeps(
        files,
        "blur",
        tmp_path / "workloads",
        tmp_path / "gpus",
        **{"bytes_": "8 * w * h", **options},
    )


def caches(tmp_path, scales=(1.0, 0.6, 0.8)):
    """A cache per card."""
    return [
        foreign.write(tmp_path / f"{name}.json.gz", foreign.cache(device, scale))
        for name, device, scale in zip(NAMES, CARDS, scales, strict=False)
    ]


def t1(tmp_path, *condition):
    """The space of the made-up sweep."""
    return foreign.write(tmp_path / "t1.json", foreign.t1(*condition))


def rows_of(tmp_path, gpu):
    """Rows of one GPU, checked."""
    spec = load_spec(tmp_path / "workloads" / "blur")
    return read_table(tmp_path / "gpus" / gpu / "blur.parquet", measurement_schema(spec))


def test_caches_become_a_workload_with_rows_and_profiles(tmp_path):
    found = imported(tmp_path, caches(tmp_path), space=t1(tmp_path))
    spec = load_spec(found.folder)
    assert not spec.has_kernel
    assert spec.constraints == ["pad == 0 or block_size_x % 32 == 0"]
    assert {tuple(one.values())[1:] for one in universe(spec)} >= set(foreign.space())
    assert len(configurations(spec, {"w": 4096, "h": 2048})) == len(foreign.space())
    assert spec.baseline == {"variant": "blur_kernel", "block_size_x": 32, "tile": 2, "pad": 0}
    assert found.flagged == {}
    for name in NAMES:
        assert read_profile(tmp_path / "gpus" / name / "profile.json", name).source == "described"
        rows = rows_of(tmp_path, name)
        assert dict(rows["status"].value_counts()) == {"ok": len(foreign.space()) - 2, "failed": 2}
        # What files lack is empty.
        for column in ("driver", "toolkit", "card", "commit", "l2", "timer"):
            assert set(rows[column]) == {""}
        assert rows[["max_error", "power_w", "first_ms", "control_ratio"]].isna().all(axis=None)
        assert (rows[["seed", "launches_per_repeat"]] == 0).all(axis=None)
        assert (rows["attempt"] == 1).all()
    row = rows_of(tmp_path, "a4000").query("block_size_x == 16 and tile == 1 and pad == 0").iloc[0]
    times = foreign.repeats_of(foreign.time_of(16, 1, 0))
    assert row["times_ms"].tolist() == times
    assert row["time_ms"] == np.median(times)
    assert row["stated_ms"] == sum(times) / len(times)
    assert row["spread_ms"] == pytest.approx(1.4826 * times[2] * 0.001)
    assert row["bandwidth_gbs"] == pytest.approx(8 * 4096 * 2048 / row["time_ms"] / 1e6)


def test_t4_and_cache_of_one_sweep_give_the_same_table(tmp_path):
    imported(tmp_path, [caches(tmp_path)[0]], space=t1(tmp_path))
    of_cache = rows_of(tmp_path, "a4000")
    results = foreign.write(tmp_path / "t4.json", foreign.t4())
    imported(tmp_path, [results], space=t1(tmp_path), devices=["t4.json=NVIDIA RTX A4000"])
    pd.testing.assert_frame_equal(rows_of(tmp_path, "a4000"), of_cache, check_exact=True)


@pytest.mark.parametrize("name", ["", "blur_kernel"])
def test_kernel_tuner_reads_what_goes_back(tmp_path, name):
    found = imported(
        tmp_path, [foreign.write(tmp_path / "a4000.json", foreign.cache(kernel_name=name))]
    )
    cache = tmp_path / "back.json"
    export_sweep(tmp_path / "gpus/a4000/blur.parquet", found.folder, cache, "kernel-tuner")
    space = json.loads(cache.read_text())["tune_params"]
    results = foreign.tuned(name or "blur", space, cache)
    assert {one["time"] for one in results if "__error__" not in one} == {
        row.time_ms for row in foreign.read_one(cache).rows if row.status == "ok"
    }


def test_without_conditions_the_listed_configurations_are_the_space(tmp_path):
    for space in (None, t1(tmp_path, "pad in set(block_size_x)")):
        found = imported(tmp_path, caches(tmp_path), space=space)
        spec = load_spec(found.folder)
        problem = {"w": 4096, "h": 2048}
        listed = foreign.space()
        assert spec.size == len(listed) < 18
        assert [tuple(one.values())[1:] for one in universe(spec)] == listed
        assert len(configurations(spec, problem)) == len(listed)
        outside = {"variant": "blur_kernel", "block_size_x": 16, "tile": 1, "pad": 1}
        assert not feasible(spec, problem, outside)
        # Recommendations are of the list alone, also of a part of the values.
        profiles = {"a4000": read_profile(tmp_path / "gpus" / "a4000" / "profile.json")}
        domain = Domain(spec, profiles, candidates={"pad": [1]})
        choices = domain.choices([Case("a4000", dict(problem))])
        told_of = set(choices[["block_size_x", "tile", "pad"]].itertuples(index=False, name=None))
        default = tuple(baseline(spec).values())[1:]
        assert told_of == {default, *(one for one in listed if one[2])}


@pytest.mark.parametrize(
    ("scales", "bytes_", "flagged", "why"), read_yaml(ROOT / "tests/importing/data/doubts.yaml")
)
def test_times_that_cannot_be_are_flagged(tmp_path, scales, bytes_, flagged, why):
    found = imported(tmp_path, caches(tmp_path, scales), bytes_=bytes_)
    assert list(found.flagged) == flagged
    assert found.studied is (len(scales) - len(flagged) > 1)
    for line, (gpu, said) in zip(told(found), found.flagged.items(), strict=False):
        assert why in said[0]
        provenance = json.loads((tmp_path / f"gpus/{gpu}/blur.provenance.json").read_text())
        assert provenance["doubts"] == said
        assert line.startswith(f"FLAGGED {gpu}: ")


def test_flagged_files_of_another_problem_are_a_workload_of_their_own(tmp_path):
    files = caches(tmp_path, (0.001, 0.001, 0.001))
    assert len(imported(tmp_path, files).flagged) == 3
    found = imported(tmp_path, files, problem=["size=unstated"], bytes_=None)
    assert found.flagged == {}
    spec = load_spec(found.folder)
    assert spec.problem["size"].values == ["unstated"]
    # Of unknown bytes there is no bandwidth.
    assert rows_of(tmp_path, "a4000")["bandwidth_gbs"].isna().all()
    assert set(rows_of(tmp_path, "a4000")["size"]) == {"unstated"}
    with pytest.raises(UserError, match="bytes: unknown name 'n'"):
        imported(tmp_path, files, problem=["size=unstated"], bytes_="8 * n")


def test_flagged_rows_take_part_only_when_trusted(tmp_path):
    found = imported(tmp_path, caches(tmp_path, (1.0, 90.0, 0.8)), bytes_=None)
    entries = yaml.safe_load(found.settings.read_text())["gpus"]
    config = {"workloads": [str(tmp_path / "workloads")], "gpus": entries}
    experiment = load_experiment(config, [], ROOT)
    assert experiment.gpus_of("blur_transfer") == ["a4000", "w7800"]
    assert list(experiment.kept_out("blur_transfer")) == ["a6000"]
    named = {**config, "studies": {"blur_transfer": {"gpus": NAMES}}}
    with pytest.raises(UserError, match=r"a6000 are flagged.*trusted"):
        load_experiment(named, [], ROOT)
    trusted = {**entries, "a6000": {**entries["a6000"], "trusted": True}}
    for settings in (config, named):
        experiment = load_experiment({**settings, "gpus": trusted}, [], ROOT)
        assert experiment.gpus_of("blur_transfer") == NAMES
        assert experiment.kept_out("blur_transfer") == {}
    with pytest.raises(UserError, match="trusted: needs source recorded"):
        load_experiment({**config, "gpus": {"x": {"source": "live", "trusted": True}}}, [], ROOT)


def test_a_study_without_a_kernel_and_without_rows_is_left_out(tmp_path):
    imported(tmp_path, caches(tmp_path))
    config = {
        "workloads": [str(ROOT / "kernels"), str(tmp_path / "workloads")],
        "gpus": {"mine": {"source": "live", "arch": "sm_90"}},
    }
    assert "blur_transfer" not in load_experiment(config, [], ROOT).studies
    with pytest.raises(UserError, match="no GPU in the settings has rows of its workload blur"):
        load_experiment({**config, "studies": {"blur_transfer": {}}}, [], ROOT)
    with pytest.raises(UserError, match="no GPU in the settings has rows"):
        load_experiment({**config, "workloads": config["workloads"][1:]}, [], ROOT)


def test_a_workload_without_a_kernel_is_not_swept(tmp_path):
    found = imported(tmp_path, caches(tmp_path))
    entries = yaml.safe_load(found.settings.read_text())["gpus"]
    live = {"source": "live", "arch": "sm_90"}
    config = {"workloads": [str(tmp_path / "workloads")], "gpus": {**entries, "mine": live}}
    # A live GPU measures everything that has a kernel.
    assert load_experiment(config, [], ROOT).gpus_of("blur_transfer") == NAMES
    for asked in (
        {"studies": {"blur_transfer": {"gpus": ["mine", "a4000"]}}},
        {"gpus": {**entries, "mine": {**live, "studies": ["blur_transfer"]}}},
        {"sweeps": {"blur": {"problems": [{"w": [1], "h": [1]}]}}},
    ):
        with pytest.raises(UserError, match="has no kernel"):
            load_experiment({**config, **asked}, [], ROOT)
    spec = load_spec(found.folder)
    with pytest.raises(UserError, match="has no kernel"):
        launch(spec, {"w": 1, "h": 1}, universe(spec)[0])


def test_what_a_file_lacks_is_asked_for(tmp_path):
    nameless = foreign.write(tmp_path / "some.json", foreign.cache(""))
    with pytest.raises(UserError, match=r"states no device.*--device some\.json=NAME"):
        imported(tmp_path, [nameless])
    found = imported(tmp_path, [nameless], devices=["some.json=AMD Instinct MI250X"])
    assert list(found.rows) == ["mi250x"]
    kernel = foreign.write(tmp_path / "ktt.json", foreign.ktt())
    with pytest.raises(UserError, match="states no problem"):
        imported(tmp_path, [kernel])
    found = imported(tmp_path, [kernel], problem=["n=4096"], bytes_="8 * n")
    assert set(rows_of(tmp_path, "a4000")["registers"]) == {0, 17, 18, 20}
    assert "no study" in " ".join(found.notes)


def test_an_unknown_card_keeps_its_rows_and_is_said(tmp_path):
    path = foreign.write(tmp_path / "some.json", foreign.cache("Made-up GPU 9000 (x)"))
    found = imported(tmp_path, [path])
    assert list(found.rows) == ["made_up_gpu_9000_x"]
    assert "no card for the device 'Made-up GPU 9000 (x)'" in " ".join(found.notes)
    assert found.settings is None
    incomplete = foreign.write(tmp_path / "some.json", foreign.cache("NVIDIA A2"))
    assert "lacks sms, boost_clock_mhz" in " ".join(imported(tmp_path, [incomplete]).notes)


def test_names_that_a_spec_may_not_have_are_changed_and_come_back(tmp_path):
    content = foreign.cache()
    names = {"block_size_x": "rank", "tile": "1st tile", "pad": "h"}
    content["tune_params_keys"] = list(names.values())
    content["tune_params"] = {names[name]: v for name, v in content["tune_params"].items()}
    for entry in content["cache"].values():
        for old, new in names.items():
            entry[new] = entry.pop(old)
    found = imported(tmp_path, [foreign.write(tmp_path / "a.json", content)])
    spec = load_spec(found.folder)
    assert list(spec.tunables) == ["rank_", "p1st_tile", "h_"]
    export_sweep(
        tmp_path / "gpus/a4000/blur.parquet", found.folder, tmp_path / "b.json", "kernel-tuner"
    )
    assert list(foreign.read_one(tmp_path / "b.json").tunables) == list(names.values())


def test_files_that_do_not_fit_are_refused_in_one_line(tmp_path):
    first, second, _ = caches(tmp_path)
    same = foreign.write(tmp_path / "again.json", foreign.cache(CARDS[0]))
    with pytest.raises(UserError, match="same GPU and problem as"):
        imported(tmp_path, [first, same])
    imported(tmp_path, [first, same], gpus=["again.json=a4000.again"])
    content = foreign.cache(CARDS[1], tune_params_keys=["block_size_x", "tile"])
    other = foreign.write(second, content)
    with pytest.raises(UserError, match=r"has other parameters than .*pad"):
        imported(tmp_path, [first, other])
    empty = foreign.write(tmp_path / "empty.json", foreign.cache(cache={}))
    with pytest.raises(UserError, match="holds no configuration"):
        imported(tmp_path, [empty])
    with pytest.raises(UserError, match=r"unknown file 'x\.json'"):
        imported(tmp_path, [first], devices=["x.json=NVIDIA A2"])
    with pytest.raises(UserError, match="unknown value of tile"):
        imported(tmp_path, [first], baseline=["tile=3", "block_size_x=16", "pad=0"])


def test_texts_and_repeated_rows(tmp_path):
    content = foreign.cache()
    for entry in content["cache"].values():
        entry["tile"] = {1: "1", 2: "two", 4: 4.0}[entry["tile"]]
    content["tune_params"]["tile"] = ["1", "two", 4.0]
    content["cache"]["again"] = {**content["cache"]["16,1,0"], "time": 9.5, "times": [9.5]}
    found = imported(tmp_path, [foreign.write(tmp_path / "a.json", content)])
    rows = rows_of(tmp_path, "a4000")
    assert set(rows["tile"]) == {"1", "two", "4"}
    assert len(rows) == len(foreign.space())
    assert rows.query("block_size_x == 16 and tile == '1'")["time_ms"].tolist() == [9.5]
    said = "1 rows repeat a configuration (w=4096, h=2048, block_size_x=16, "
    assert said in " ".join(found.notes)


@pytest.mark.parametrize("kind", ["kernel-tuner", "t4"])
def test_several_variants_are_a_tunable_of_the_other_tuner(kind, tmp_path):
    spec = load_spec(STENCIL)
    table = measurements(spec, [{"n": [64], "dtype": ["float32"], "order": [2]}])
    write_table(tmp_path / "a.parquet", table, measurement_schema(spec))
    export_sweep(tmp_path / "a.parquet", STENCIL, tmp_path / "back.json", kind)
    back = foreign.read_one(tmp_path / "back.json")
    # Rows of two variants that agree in all tunables stay apart.
    assert len({*map(tuple, (row.configuration.values() for row in back.rows))}) == len(table)
    assert {row.configuration["variant"] for row in back.rows} == {*spec.variants}
    assert sorted(back.times_ms.values()) == sorted(table["time_ms"])


def test_of_several_problems_one_must_be_named(tmp_path):
    spec = load_spec(STENCIL)
    write_table(tmp_path / "a.parquet", measurements(spec), measurement_schema(spec))
    with pytest.raises(UserError, match="4 of 4 problems fit: name one, such as --problem n=64 --"):
        export_sweep(tmp_path / "a.parquet", STENCIL, tmp_path / "b.json", "t4")


def test_a_t1_without_conditions_says_that_all_is_feasible(tmp_path):
    space = foreign.t1()
    space["ConfigurationSpace"]["Conditions"] = []
    # A value that no file measured, and a default among texts.
    first, *_ = space["ConfigurationSpace"]["TuningParameters"]
    first["Values"] = str([*foreign.X, 4096])
    path = foreign.write(tmp_path / "t1.json", space)
    found = imported(tmp_path, caches(tmp_path), space=path)
    spec = load_spec(found.folder)
    assert spec.tunables["block_size_x"].values == [*foreign.X, 4096]
    assert "space: the product of all values, as T1 states no condition" in " ".join(found.notes)
    product = (len(foreign.X) + 1) * len(foreign.Y) * len(foreign.PAD)
    assert len(configurations(spec, {"w": 4096, "h": 2048})) == product


def test_the_default_of_t1_is_found_among_texts(tmp_path):
    given = foreign.cache()
    for entry in given["cache"].values():
        entry["pad"] = "a half" if entry["pad"] == 1 else entry["pad"]
    given["tune_params"]["pad"] = [0, "a half"]
    space = foreign.t1()
    space["ConfigurationSpace"]["Conditions"] = []
    files = [foreign.write(tmp_path / "a.json", given)]
    found = imported(tmp_path, files, space=foreign.write(tmp_path / "t1.json", space))
    assert "baseline: the defaults of T1" in found.notes
    assert load_spec(found.folder).baseline["pad"] == "0"


def test_files_that_cannot_be_used_are_named(tmp_path):
    nameless = foreign.write(tmp_path / "b.json", foreign.cache("设备"))
    with pytest.raises(UserError, match=r"b\.json: device_name: .* makes no name of a GPU"):
        imported(tmp_path, [nameless])
    assert imported(tmp_path, [nameless], gpus=["b.json=mine"]).rows.keys() == {"mine"}
    given = foreign.cache()
    for entry in given["cache"].values():
        entry["time"] = "RuntimeFailedConfig"
    failed = foreign.write(tmp_path / "c.json", given)
    with pytest.raises(UserError, match=r"c\.json: holds no configuration with a time"):
        imported(tmp_path, [failed])
