"""Settings: typed, checked against workloads, and blamed on the file and key at fault."""

import shutil
from pathlib import Path

import pytest
import yaml
from overlays import ASKED, BASE, BLOCK, STUDY, S, experiment, line_of, nested
from samples import ROOT
from snakemake.utils import update_config

from launchwise.base.typed import read_yaml
from launchwise.experiment.loading import load_experiment
from launchwise.experiment.method import Guesses, Method, Strategy
from launchwise.experiment.settings import COMMAND_LINE
from launchwise.workflow import checks
from launchwise.workloads.space import baseline, configurations, narrowings

FITS_NOTHING = read_yaml(ROOT / "tests" / "experiment" / "data" / "fits_nothing.yaml")
CONVOLUTION = ROOT / "docs" / "tutorial" / "example" / "convolution"


@pytest.mark.workloads
def test_the_settings_of_the_project_are_good(root):
    files = [root / "config.yaml"]
    found = load_experiment(yaml.safe_load(files[0].read_text()), files, root)
    assert set(found.specs) >= {"acoustic"}


@pytest.mark.workloads
@pytest.mark.parametrize("name", sorted(p.name for p in Path(__file__).parents[2].glob("config/*")))
def test_every_overlay_of_the_project_is_good(root, name):
    files = [root / "config.yaml", root / "config" / name]
    config = yaml.safe_load(files[0].read_text())
    update_config(config, yaml.safe_load(files[1].read_text()))
    load_experiment(config, files, root)


def test_the_command_line_is_blamed_for_what_it_says(home):
    assert line_of(said={"seed": -4}).startswith(f"{COMMAND_LINE}: seed: must be")
    assert line_of({"seed": 3}, said={"sed": 4}).startswith(f"{COMMAND_LINE}: sed: unknown key")
    assert line_of({"seed": -3}).startswith("overlay0.yaml: seed: must be")
    line = line_of(said=nested(f"{S}/near_best", 1))
    assert line.startswith(f"{COMMAND_LINE}: {STUDY}.near_best: unknown key 'near_best'")


@pytest.mark.parametrize("number", [".nan", "-.nan", ".inf", "-.inf"])
def test_a_file_is_blamed_for_what_is_no_number(home, number):
    seed = yaml.safe_load(number)
    assert line_of({"seed": seed}).startswith("overlay0.yaml: seed: must be")
    path = home / "config.yaml"
    path.write_text(yaml.safe_dump({**BASE, "seed": seed}))
    assert line_of({"models": {}}).startswith("config.yaml: seed: must be")
    assert line_of(said={"seed": seed}).startswith("config.yaml: seed: must be")
    path.write_text(yaml.safe_dump(BASE))
    assert line_of(said={"seed": seed}).startswith(f"{COMMAND_LINE}: seed: must be")


def test_a_sweep_measures_everything_unless_it_has_another_strategy(home):
    assert experiment().sweeps["stencil"].strategy == Strategy(kind="exhaustive")
    said = {"kind": "random", "budget": 40, "guesses": {"model": "results/models/a/knn"}}
    sweep = experiment(nested("sweeps/stencil/strategy", said)).sweeps["stencil"]
    assert sweep.strategy.budget == 40
    assert sweep.strategy.guesses == Guesses(model="results/models/a/knn", count=5)
    # What a job is given, which is also what a journal's fingerprint is made of.
    asked = {"problems", "anew"}
    given = sweep.model_dump(mode="json", exclude=asked)
    assert Method.model_validate(given).strategy == sweep.strategy
    plain = experiment().sweeps["stencil"]
    assert given != plain.model_dump(mode="json", exclude=asked)


def test_a_key_given_twice_is_refused_in_overlay_and_config(home):
    text, said = "seed: 1\nseed: 2\n", "line 2: 'seed' is given twice"
    assert line_of(text).startswith(f"overlay0.yaml: {said}")
    (home / "config.yaml").write_text(text)
    assert line_of().startswith(f"config.yaml: {said}")


def test_a_broken_spec_is_blamed_on_itself(home):
    path = home / "kernels" / "stencil" / "spec.yaml"
    path.write_text(path.read_text().replace("tz >= 2", "tzz >= 2"))
    assert line_of().startswith(
        f"{path}: variants.column.constraints: unknown name 'tzz', did you mean 'tz'?"
    )


@pytest.mark.parametrize("constraint", FITS_NOTHING)
def test_a_constraint_that_fits_nothing_is_found_when_the_experiment_is_loaded(home, constraint):
    where, said = FITS_NOTHING[constraint]
    path = home / "kernels" / "stencil" / "spec.yaml"
    path.write_text(f'{path.read_text()}\nconstraints: ["{constraint}"]\n')
    line = line_of()
    assert line.startswith(f"{path.with_name(where)}: {'problems: ' * (where == 'sweep.yaml')}")
    assert said in line
    assert line.endswith("(required by sweeps.stencil.problems)") == (where == "spec.yaml")


def test_problems_that_a_user_chooses_need_not_reach_every_variant(home):
    path = home / "kernels" / "stencil" / "spec.yaml"
    constraint = "variant != 'block3d' or order == 2"
    path.write_text(f'{path.read_text()}\nconstraints: ["{constraint}"]\n')
    few = [{"n": [64], "dtype": ["float32"], "order": [8]}]
    assert experiment(nested("sweeps/stencil/problems", few)).sweeps["stencil"].problems
    (home / "kernels" / "stencil" / "sweep.yaml").write_text(yaml.safe_dump({"problems": few}))
    assert "variants.block3d.constraints: no configuration of any problem" in line_of()


def test_an_overlay_reaches_every_key_of_a_study_and_null_takes_one_away(home):
    found = experiment(nested(S, {"models": ["tree"], "splits": {"transfer": None}}))
    study = found.studies["stencil_block"]
    assert (study.models, list(study.splits)) == (["tree"], ["sizes"])
    assert study.splits["sizes"].title == "x"
    block = {"n": [64], "dtype": ["float32"], "order": [2]}
    found = experiment(nested("sweeps/stencil", {"problems": [block], "slow_factor": 5}))
    assert found.sweeps["stencil"].slow_factor == 5
    assert len(found.problems_of("h200", "stencil")) == 1


def test_a_mistake_in_a_study_is_blamed_on_its_file(home):
    path = home / "kernels" / "stencil" / "studies" / "stencil_block" / "study.yaml"
    for key, value, said in [
        ("near_best", 1, "near_best: unknown key 'near_best', did you mean 'near_best_percent'?"),
        ("candidates", {"bw": [1]}, "candidates: unknown tunable 'bw'"),
        ("splits", {}, "splits: must have at least 1 item"),
        ("workload", "stencil", "workload: unknown key 'workload'"),
    ]:
        path.write_text(yaml.safe_dump({**ASKED, key: value}))
        assert line_of().startswith(f"{path}: {said}")
    path.write_text(yaml.safe_dump({key: ASKED[key] for key in ASKED if key != "models"}))
    assert line_of({"studies": {"stencil_block": {}}}) == f"{path}: models: is missing"
    path.write_text("- 1\n")
    assert line_of() == f"{path}: must map keys to values"


def test_folders_that_lack_something_are_one_line(home):
    kernels = home / "kernels"
    study = kernels / "saxpy" / "studies" / "other"
    (study / "published").mkdir(parents=True)
    assert line_of() == f"{study / 'study.yaml'}: is missing: every study has one"
    shutil.copy(kernels / "stencil" / "studies" / "stencil_block" / "study.yaml", study)
    twin = kernels / "stencil" / "studies" / "other"
    shutil.copytree(study, twin)
    assert line_of() == f"{twin / 'study.yaml'}: study 'other' is also in {study}"
    shutil.rmtree(twin)
    bad = study.rename(study.parent / "Other-1")
    assert line_of().startswith(f"{bad / 'study.yaml'}: the folder's name must match")
    shutil.rmtree(bad)
    # What git leaves behind of a renamed folder is no study.
    (study / "__pycache__").mkdir(parents=True)
    assert list(experiment().studies) == ["stencil_block"]
    (kernels / "new").mkdir()
    assert "new" not in experiment().folders
    (kernels / "new" / "kernel.cu").touch()
    assert line_of() == f"{kernels / 'new' / 'spec.yaml'}: is missing: every workload has one"
    shutil.rmtree(kernels / "new")
    assert list(experiment({"workloads": ["kernels/stencil"]}).folders) == ["stencil"]
    line = line_of({"workloads": ["kernels", "kernels/stencil"]})
    assert f"workload 'stencil' is also in {kernels}" in line
    (home / "empty").mkdir()
    assert "holds no workload" in line_of({"workloads": ["kernels", "empty"]})


def test_a_variant_that_is_not_verified_cannot_be_recommended(home):
    folder = home / "kernels" / "stencil"
    spec = yaml.safe_load((folder / "spec.yaml").read_text())
    spec["variants"]["column"]["verified"] = False
    (folder / "spec.yaml").write_text(yaml.safe_dump(spec, sort_keys=False))
    path = folder / "studies" / "stencil_block" / "study.yaml"
    path.write_text(yaml.safe_dump({**ASKED, "candidates": {"variant": ["linear", "column"]}}))
    said = "candidates.variant: 'column' is not verified: it cannot be recommended"
    assert line_of() == f"{path}: {said}"


def test_problems_may_be_narrowed_by_constraints(home):
    block = {**BLOCK, "only": {"variant": ["block3d"]}, "constraints": ["bx == 8 * by", "bz == 1"]}
    found = experiment(nested("sweeps/stencil/problems", [block]))
    spec = found.specs["stencil"]
    parts = narrowings(spec, found.blocks_of("h200", "stencil"))
    problem = {"n": 64, "dtype": "float32", "order": 2}
    first, *rest = configurations(spec, problem, None, parts[64, "float32", 2])
    assert first == baseline(spec)
    assert {each["variant"] for each in rest} == {"block3d"}
    shapes = {(each["bx"], each["by"], each["bz"]) for each in rest}
    assert shapes == {(32, 4, 1), (64, 8, 1)}


@pytest.mark.parametrize("where", ["sweep.yaml", "settings", "gpu"])
@pytest.mark.parametrize(
    ("block", "said"),
    [
        ({"wide": [64, 65], "h": [64]}, "unknown problem parameter 'wide'"),
        ({"w": [64], "high": [64]}, "unknown problem parameter 'high'"),
        ({"h": [64]}, "w is missing"),
        ({"w": [64, "many"], "h": [64]}, "w: must be of type integer"),
    ],
)
def test_problems_of_a_workload_without_a_study_are_checked_before_one_is_derived(
    home, where, block, said
):
    shutil.copytree(CONVOLUTION, home / "kernels" / "convolution")
    problems = [block]
    overlay = {"gpus": {"mine": {"source": "live", "arch": "sm_90"}}}
    path, key = "overlay0.yaml", "sweeps.convolution.problems"
    if where == "sweep.yaml":
        path = str(home / "kernels" / "convolution" / "sweep.yaml")
        key = "problems"
        Path(path).write_text(yaml.safe_dump({"problems": problems}))
    elif where == "settings":
        overlay["sweeps"] = {"convolution": {"problems": problems}}
    else:
        overlay["gpus"]["mine"]["problems"] = {"convolution": problems}
        key = "gpus.mine.problems.convolution"
    assert line_of(overlay).startswith(f"{path}: {key}: {said}")


@pytest.mark.parametrize(
    ("content", "said"), read_yaml(ROOT / "tests/experiment/data/unreadable.yaml")
)
def test_a_file_that_snakemake_could_not_read_is_one_line(home, capsys, content, said):
    path = home / "config.yaml"
    path.unlink()
    if content is not None:
        path.write_text(content)
    with pytest.raises(SystemExit) as ended:
        checks.readable("config.yaml")
    assert ended.value.code == 1
    line = capsys.readouterr().err
    assert line.startswith("launchwise: config.yaml: ")
    assert said in line
    assert line.count("\n") == 1


def test_config_yaml_may_be_missing_where_an_overlay_says_everything(home):
    (home / "config.yaml").unlink()
    assert checks.readable("config.yaml", ["other.yaml"]) == "config.yaml"


def test_a_kind_of_model_that_does_not_exist_is_one_line(line_at_start):
    assert line_at_start({"models": {"mine": {"kind": "xgbost", "title": "x"}}}).startswith(
        "o.yaml: models.mine.kind: unknown kind of model 'xgbost', did you mean "
        "'xgboost'? (allowed: analytical, best_tree, committee, forest, gaussian_process, knn, "
        "learnt, lightgbm, nearest, roofline, tree, xgboost"
    )


def test_rows_to_measure_anew_are_named_by_known_columns(home):
    key = "sweeps/stencil/anew"
    said = [{"variant": ["block3d"], "n": [512], "status": ["slow"]}]
    assert experiment(nested(key, said)).sweeps["stencil"].anew == said
