"""Settings: typed, checked against workloads, and blamed on the file and key at fault."""

from __future__ import annotations

import copy
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml
from samples import Project, keep_study
from snakemake.utils import update_config

from launchwise.base.errors import UserError
from launchwise.experiment.blame import COMMAND_LINE, Sources
from launchwise.experiment.experiment import Experiment, load_experiment
from launchwise.experiment.method import Guesses, Method, Strategy
from launchwise.workflow import plan as workflow
from launchwise.workloads.space import baseline, configurations, narrowings

STUDY = "studies.acoustic_tile"
BASE: dict[str, Any] = {
    "seed": 1,
    "workloads": ["kernels"],
    "gpus": {"h200": {"source": "recorded"}, "h200.sm72": {"source": "recorded"}},
    "models": {"knn": {"kind": "knn", "title": "kNN"}, "tree": {"kind": "tree", "title": "x"}},
}
ASKED: dict[str, Any] = {
    "title": "x",
    "question": "x?",
    "models": ["knn"],
    "splits": {
        "sizes": {
            "kind": "problems",
            "title": "x",
            "train": {"n": [64]},
            "test": {"n": [100]},
        },
        "transfer": {"kind": "leave_one_gpu_out", "title": "x"},
    },
}
SWEPT = {"problems": [{"n": [64, 100], "dtype": ["float32"], "order": [2, 8]}]}


@pytest.fixture
def home(tmp_path: Path, root: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with config.yaml and the kernels, to work in: one study, two recorded GPUs."""
    shutil.copytree(root / "kernels", tmp_path / "kernels")
    keep_study(tmp_path / "kernels", "acoustic", "acoustic_tile", ASKED)
    (tmp_path / "kernels" / "acoustic" / "sweep.yaml").write_text(yaml.safe_dump(SWEPT))
    for gpu in BASE["gpus"]:
        (tmp_path / "data" / "recorded" / gpu).mkdir(parents=True)
        (tmp_path / "data" / "recorded" / gpu / "acoustic.parquet").touch()
    (tmp_path / "config.yaml").write_text(yaml.safe_dump(BASE, sort_keys=False))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def experiment(
    *overlays: str | dict[str, Any], said: dict[str, Any] | None = None, home: Path | None = None
) -> Experiment:
    """Settings as Snakemake merges them from config.yaml, overlays and ``--config``."""
    files = [Path("config.yaml")]
    config = copy.deepcopy(yaml.safe_load(files[0].read_text()))
    for number, overlay in enumerate(overlays):
        path = Path(f"overlay{number}.yaml")
        path.write_text(overlay if isinstance(overlay, str) else yaml.safe_dump(overlay))
        update_config(config, yaml.safe_load(path.read_text()))
        files.append(path)
    update_config(config, said or {})
    return load_experiment(config, files, home or Path.cwd())


def line_of(*overlays: str | dict[str, Any], said: dict[str, Any] | None = None) -> str:
    """The one line that bad settings give."""
    with pytest.raises(UserError) as caught:
        experiment(*overlays, said=said)
    line = str(caught.value)
    assert "\n" not in line
    return line


def nested(key: str, value: Any) -> dict[str, Any]:
    """A mapping that sets one key; ``/`` goes down, so that names may have dots."""
    for part in reversed(key.split("/")):
        value = {part: value}
    return dict(value)


BLOCK = {"n": [64], "dtype": ["float32"], "order": [2]}


def test_the_settings_of_the_project_are_good(root: Path) -> None:
    files = [root / "config.yaml"]
    found = load_experiment(yaml.safe_load(files[0].read_text()), files, root)
    assert set(found.specs) >= {"acoustic"}


@pytest.mark.parametrize("name", sorted(p.name for p in Path(__file__).parents[2].glob("config/*")))
def test_every_overlay_of_the_project_is_good(root: Path, name: str) -> None:
    files = [root / "config.yaml", root / "config" / name]
    config = yaml.safe_load(files[0].read_text())
    update_config(config, yaml.safe_load(files[1].read_text()))
    load_experiment(config, files, root)


S = "studies/acoustic_tile"
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
        "constraint, gres, partition",
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
    "missing key": (
        nested(f"{S}/splits/new", {"kind": "problems"}),
        f"{STUDY}.splits.new.title: is missing",
        "",
    ),
    "unknown study": (
        nested("studies/acoustic_tiles", {"models": ["knn"]}),
        "studies.acoustic_tiles: unknown study 'acoustic_tiles', did you mean 'acoustic_tile'?",
        "",
    ),
    "unknown study of a GPU": (
        nested("gpus/h200/studies", ["acoustic_tiles"]),
        "gpus.h200.studies: unknown study 'acoustic_tiles', did you mean 'acoustic_tile'?",
        "",
    ),
    "no study at all": (
        nested("studies", {"acoustic_tile": None}),
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
        nested("sweeps/acoustic/repeats", {"minimum": 9, "maximum": 3}),
        "sweeps.acoustic.repeats: minimum 9 is above maximum 3",
        "",
    ),
    "strategy that does not exist": (
        nested("sweeps/acoustic/strategy", {"kind": "bayes", "budget": 5}),
        "sweeps.acoustic.strategy.kind: must be 'exhaustive', 'random', 'tpe' or 'transfer' "
        "(got 'bayes')",
        "",
    ),
    "strategy without a budget": (
        nested("sweeps/acoustic/strategy", {"kind": "random"}),
        "sweeps.acoustic.strategy: random needs a budget (rows per problem) or minutes",
        "",
    ),
    "time for everything": (
        nested("sweeps/acoustic/strategy", {"minutes": 5}),
        "sweeps.acoustic.strategy: exhaustive measures every configuration: remove minutes",
        "",
    ),
    "no time": (
        nested("sweeps/acoustic/strategy", {"kind": "tpe", "minutes": 0}),
        "sweeps.acoustic.strategy.minutes: must be greater than 0 (got 0)",
        "",
    ),
    "workloads of a recorded GPU": (
        nested("gpus/h200/workloads", ["acoustic"]),
        "gpus.h200: workloads: needs source live, not recorded",
        "",
    ),
    "workload that does not exist": (
        nested("gpus/x", {"source": "live", "arch": "sm_90", "workloads": ["acoustics"]}),
        "gpus.x.workloads: unknown workload 'acoustics', did you mean 'acoustic'?",
        "",
    ),
    "a strategy that cannot say what is to be gained": (
        nested("sweeps/acoustic/strategy", {"kind": "tpe", "budget": 5, "stop_below_percent": 1}),
        "sweeps.acoustic.strategy: tpe expects no gain: remove stop_below_percent",
        "",
    ),
    "strategy with nothing to spend": (
        nested("sweeps/acoustic/strategy", {"kind": "tpe", "budget": 0}),
        "sweeps.acoustic.strategy.budget: must be greater than or equal to 1 (got 0)",
        "",
    ),
    "budget of everything": (
        nested("sweeps/acoustic/strategy", {"budget": 5}),
        "sweeps.acoustic.strategy: exhaustive measures every configuration: remove budget",
        "",
    ),
    "guesses before everything": (
        nested("sweeps/acoustic/strategy", {"guesses": {"model": "x"}}),
        "sweeps.acoustic.strategy: exhaustive measures every configuration: remove guesses",
        "",
    ),
    "guesses of no model": (
        nested("sweeps/acoustic/strategy", {"kind": "tpe", "budget": 5, "guesses": {"count": 3}}),
        "sweeps.acoustic.strategy.guesses.model: is missing",
        "",
    ),
    "no guesses at all": (
        nested(
            "sweeps/acoustic/strategy",
            {"kind": "tpe", "budget": 5, "guesses": {"model": "x", "count": 0}},
        ),
        "sweeps.acoustic.strategy.guesses.count: must be greater than or equal to 1 (got 0)",
        "",
    ),
    "nothing to measure": (nested("sweeps/acoustic/problems", []), "sweeps.acoustic.problems:", ""),
    "no value to measure": (
        nested("sweeps/acoustic/problems", [{"n": [], "dtype": ["float32"], "order": [2]}]),
        "sweeps.acoustic.problems.0.n: must have at least 1 item",
        "",
    ),
    "unknown workload of a sweep": (
        nested("sweeps/stencil", {"problems": [{"n": [1]}]}),
        "sweeps.stencil: unknown workload 'stencil' "
        "(allowed: acoustic, granger, sentiment, tridiagonal)",
        "",
    ),
    "unknown workload of a GPU": (
        nested("gpus/h200.sm72/problems", {"stencil": [{"n": [64]}]}),
        "gpus.h200.sm72.problems: unknown workload 'stencil' (allowed: acoustic, ",
        "sentiment, tridiagonal)",
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
        f"{STUDY}.gpus: a100 is described and has no sweep; a study needs rows to learn from",
        "",
    ),
    "held-out GPU in the list of a study": (
        {**nested("gpus/h200.sm72/held_out", True), **nested(f"{S}/gpus", ["h200", "h200.sm72"])},
        f"{STUDY}.gpus: h200.sm72 is held out; a study needs rows to learn from: remove it",
        "",
    ),
    "described GPU that is held out": (
        nested("gpus/a100", {"source": "described", "held_out": True}),
        "gpus.a100: held_out: a described GPU is never measured: remove this key",
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
        "gpus.a100: shards: a described GPU is never measured: remove this key",
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
        nested("sweeps/acoustic/problems", [{"n": [8], "dtype": ["float32"], "order": [2]}]),
        "sweeps.acoustic.problems: n: 8 is below the minimum 20",
        "",
    ),
    "unknown tunable in a block": (
        nested("sweeps/acoustic/problems", [{**BLOCK, "only": {"bw": [1]}}]),
        "sweeps.acoustic.problems.only: unknown tunable 'bw'",
        "variant",
    ),
    "value in a block that no tunable has": (
        nested("sweeps/acoustic/problems", [{**BLOCK, "only": {"bx": [7]}}]),
        "sweeps.acoustic.problems.only.bx: unknown value '7'",
        "1024",
    ),
    "a block that narrows by a list": (
        nested("sweeps/acoustic/problems", [{**BLOCK, "only": [1]}]),
        "sweeps.acoustic.problems.only: must be tunables with their values",
        "",
    ),
    "a block with a mapping of values": (
        nested("sweeps/acoustic/problems", [{**BLOCK, "n": {"bx": [8]}}]),
        "sweeps.acoustic.problems.n: must be a list of values",
        "",
    ),
    "a narrowed block that is explored": (
        nested(
            "sweeps/acoustic",
            {
                "strategy": {"kind": "random", "budget": 5},
                "problems": [{**BLOCK, "only": {"bx": [8]}}],
            },
        ),
        "sweeps.acoustic.problems.only: needs an exhaustive sweep, not random",
        "",
    ),
    "problem parameter left out": (
        nested("gpus/h200.sm72/problems", {"acoustic": [{"n": [64]}]}),
        "gpus.h200.sm72.problems.acoustic: dtype is missing",
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


def test_the_same_mistake_in_config_yaml_is_blamed_on_it(home: Path) -> None:
    config = copy.deepcopy(BASE)
    config["gpus"]["h200.sm72"]["shard"] = 2
    (home / "config.yaml").write_text(yaml.safe_dump(config))
    assert line_of({"seed": 3}).startswith("config.yaml: gpus.h200.sm72.shard: unknown key")


def test_the_command_line_is_blamed_for_what_it_says(home: Path) -> None:
    assert line_of(said={"seed": -4}).startswith(f"{COMMAND_LINE}: seed: must be")
    assert line_of({"seed": 3}, said={"sed": 4}).startswith(f"{COMMAND_LINE}: sed: unknown key")
    assert line_of({"seed": -3}).startswith("overlay0.yaml: seed: must be")
    line = line_of(said=nested(f"{S}/near_best", 1))
    assert line.startswith(f"{COMMAND_LINE}: {STUDY}.near_best: unknown key 'near_best'")


def test_a_sweep_measures_everything_unless_it_has_another_strategy(home: Path) -> None:
    assert experiment().sweeps["acoustic"].strategy == Strategy(kind="exhaustive")
    said = {"kind": "tpe", "budget": 40, "guesses": {"model": "results/models/a/knn"}}
    sweep = experiment(nested("sweeps/acoustic/strategy", said)).sweeps["acoustic"]
    assert sweep.strategy.budget == 40
    assert sweep.strategy.guesses == Guesses(model="results/models/a/knn", count=5)
    # What a job is given, which is also what a journal's fingerprint is made of.
    asked = {"problems", "anew"}
    given = sweep.model_dump(mode="json", exclude=asked)
    assert Method.model_validate(given).strategy == sweep.strategy
    plain = experiment().sweeps["acoustic"]
    assert given != plain.model_dump(mode="json", exclude=asked)


def test_a_live_gpu_needs_a_sweep_of_what_the_studies_want(home: Path) -> None:
    config = {**BASE, "gpus": {"h200": {"source": "live"}}}
    (home / "config.yaml").write_text(yaml.safe_dump(config))
    path = home / "kernels" / "acoustic" / "sweep.yaml"
    path.unlink()
    assert line_of() == f"{path}: is missing, but gpus.h200 measures acoustic live"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("gpus:\n  h200: {source: recorded}\n  h200: {source: live}\n", "line 3: 'h200' is given"),
        ("gpus:\n  a.b: {source: live}\n  'a.b': {source: live}\n", "line 3: 'a.b' is given twice"),
        ("seed: 1\nsearch: {}\nseed: 1\n", "line 3: 'seed' is given twice"),
        ("gpus:\n  h200:\n    shards: 1\n    shards: 2\n", "line 4: 'shards' is given twice"),
    ],
)
def test_a_key_given_twice_is_refused_in_overlay_and_config(
    home: Path, text: str, said: str
) -> None:
    assert line_of(text).startswith(f"overlay0.yaml: {said}")
    (home / "config.yaml").write_text(text)
    assert line_of().startswith(f"config.yaml: {said}")


def test_two_workloads_of_one_name_are_refused(home: Path) -> None:
    shutil.copytree(home / "kernels" / "acoustic", home / "mine" / "acoustic")
    line = line_of(nested("workloads", ["kernels", "mine"]))
    assert "mine/acoustic/spec.yaml: workload 'acoustic' is also in" in line


def test_a_broken_spec_is_blamed_on_itself(home: Path) -> None:
    path = home / "kernels" / "acoustic" / "spec.yaml"
    path.write_text(path.read_text().replace("walked >= 2", "walkd >= 2"))
    assert line_of().startswith(
        f"{path}: variants.omp_tile.constraints: unknown name 'walkd', did you mean 'walked'?"
    )


@pytest.mark.parametrize(
    ("constraint", "said"),
    [
        ("n < 0", "no configuration satisfies the constraints for n=64, dtype=float32, order=2"),
        ("variant != 'linear'", "baseline: violates the constraints for n=64"),
        ("variant != 'block3d'", "variants.block3d.constraints: no configuration of any problem"),
        ("n // 0 < 3", "'n // 0 < 3' cannot be evaluated: integer division"),
    ],
)
def test_a_constraint_that_leaves_nothing_is_found_when_the_experiment_is_loaded(
    home: Path, constraint: str, said: str
) -> None:
    path = home / "kernels" / "acoustic" / "spec.yaml"
    path.write_text(f'{path.read_text()}\nconstraints: ["{constraint}"]\n')
    line = line_of()
    assert line.startswith(f"{path}: ")
    assert said in line
    assert line.endswith("(required by sweeps.acoustic.problems)")


def test_a_constraint_is_also_held_against_the_problems_of_one_gpu(home: Path) -> None:
    path = home / "kernels" / "acoustic" / "spec.yaml"
    path.write_text(f'{path.read_text()}\nconstraints: ["n < 200"]\n')
    own = {"acoustic": [{"n": [256], "dtype": ["float32"], "order": [2]}]}
    line = line_of(nested("gpus/h200.sm72/problems", own))
    assert "no configuration satisfies the constraints for n=256" in line
    assert line.endswith("(required by gpus.h200.sm72.problems.acoustic)")


def test_the_file_that_holds_most_of_a_key_is_blamed(tmp_path: Path) -> None:
    files = []
    for number, content in enumerate(
        [
            {"gpus": {"h200": {"source": "live"}, "h200.sm72": {"source": "live"}}},
            {"gpus": {"h200.sm72": {"shards": 2}}},
            {"gpus": {"h200": {"shards": 2}}},
            {"sweeps": {"acoustic": {"problems": [{"n": [1, 2]}]}}},
        ]
    ):
        files.append(tmp_path / f"{number}.yaml")
        files[-1].write_text(yaml.safe_dump(content))
    blame = {
        "gpus.h200.sm72.shards": 1,
        "gpus.h200.sm72.source": 0,
        "gpus.h200.sm72.arch": 1,
        "gpus.h200.shards": 2,
        "sweeps.acoustic.problems.0.n.1": 3,
    }
    for key, number in blame.items():
        assert Sources(files).error(key, "x").where == str(files[number]), key
    assert Sources([]).error("seed", "x").where == "config.yaml"


def test_a_study_asks_about_every_gpu_with_rows_of_its_workload(home: Path) -> None:
    recorded = home / "data" / "recorded"
    assert experiment().gpus_of("acoustic_tile") == ["h200", "h200.sm72"]
    (recorded / "h200.sm72" / "acoustic.parquet").unlink()
    assert experiment().gpus_of("acoustic_tile") == ["h200"]
    live = {"gpus": {"mine": {"source": "live", "arch": "sm_90"}}}
    assert experiment(live).gpus_of("acoustic_tile") == ["h200", "mine"]
    live["gpus"]["mine"]["studies"] = ["acoustic_tile"]
    assert experiment(live).workloads_of("mine") == ["acoustic"]
    named = nested(f"{S}/gpus", ["mine"])
    assert experiment(live, named).gpus_of("acoustic_tile") == ["mine"]
    (recorded / "h200" / "acoustic.parquet").unlink()
    path = home / "kernels" / "acoustic" / "studies" / "acoustic_tile" / "study.yaml"
    assert line_of().startswith(f"{path}: no GPU in the settings has rows of its workload acoustic")


def test_a_gpu_measures_workloads_beside_those_of_its_studies(home: Path) -> None:
    mine = {"source": "live", "arch": "sm_90", "workloads": ["acoustic", "granger"]}
    (home / "kernels" / "granger" / "sweep.yaml").write_text(
        yaml.safe_dump(
            {
                "problems": [
                    {
                        **{"county": [5], "countx": [5], "rows": [100], "cols": [10]},
                        "dtype": ["float32"],
                    }
                ]
            }
        )
    )
    found = experiment({"gpus": {"mine": mine}})
    assert found.workloads_of("mine") == ["acoustic", "granger"]
    assert found.alone_on("mine") == ["granger"]
    assert found.alone_on("h200") == []
    # Without any study there is something to measure still.
    alone = experiment({"gpus": {"mine": mine}, "studies": {"acoustic_tile": None}})
    assert alone.workloads_of("mine") == alone.alone_on("mine") == ["acoustic", "granger"]


def test_a_split_of_a_live_sweep_needs_problems_of_it(home: Path) -> None:
    path = home / "kernels" / "acoustic" / "studies" / "acoustic_tile" / "study.yaml"
    live = {"gpus": {"mine": {"source": "live", "arch": "sm_90"}}}
    only = nested(f"{S}/gpus", ["mine"])
    asked = {**ASKED, "gpus": ["mine"]}
    asked["splits"] = {
        "sizes": {"kind": "problems", "title": "x", "train": {"n": [64]}, "test": {"n": [999]}}
    }
    path.write_text(yaml.safe_dump(asked))
    said = line_of(live)
    assert said.startswith(f"{path}: splits.sizes.test: the sweep measures none of them (n: ")
    # An overlay that holds the split is to blame, not the file beneath.
    more = nested(f"{S}/splits/sizes/test", {"n": [998]})
    assert line_of(live, only, more).startswith(
        "overlay2.yaml: studies.acoustic_tile.splits.sizes.test: the sweep measures none of them"
    )
    # What a recorded sweep holds is known when it is read.
    found = experiment(nested(f"{S}/gpus", ["h200"]))
    assert found.holders_of_splits("acoustic_tile") == {"sizes": [str(path), "splits.sizes"]}


def test_an_overlay_reaches_every_key_of_a_study_and_null_takes_one_away(home: Path) -> None:
    found = experiment(nested(S, {"models": ["tree"], "splits": {"transfer": None}}))
    study = found.studies["acoustic_tile"]
    assert (study.models, list(study.splits)) == (["tree"], ["sizes"])
    assert study.splits["sizes"].title == "x"
    block = {"n": [64], "dtype": ["float32"], "order": [2]}
    found = experiment(nested("sweeps/acoustic", {"problems": [block], "slow_factor": 5}))
    assert found.sweeps["acoustic"].slow_factor == 5
    assert len(found.problems_of("h200", "acoustic")) == 1


def test_a_mistake_in_a_study_is_blamed_on_its_file(home: Path) -> None:
    path = home / "kernels" / "acoustic" / "studies" / "acoustic_tile" / "study.yaml"
    for key, value, said in [
        ("near_best", 1, "near_best: unknown key 'near_best', did you mean 'near_best_percent'?"),
        ("candidates", {"bw": [1]}, "candidates: unknown tunable 'bw'"),
        ("splits", {}, "splits: must have at least 1 item"),
        ("workload", "acoustic", "workload: unknown key 'workload'"),
    ]:
        path.write_text(yaml.safe_dump({**ASKED, key: value}))
        assert line_of().startswith(f"{path}: {said}")
    path.write_text(yaml.safe_dump({key: ASKED[key] for key in ASKED if key != "models"}))
    assert line_of({"studies": {"acoustic_tile": {}}}) == f"{path}: models: is missing"
    path.write_text("- 1\n")
    assert line_of() == f"{path}: must map keys to values"


def test_folders_that_lack_something_are_one_line(home: Path) -> None:
    kernels = home / "kernels"
    study = kernels / "acoustic" / "studies" / "other"
    (study / "published").mkdir(parents=True)
    assert line_of() == f"{study / 'study.yaml'}: is missing: every study has one"
    shutil.copy(study.parent / "acoustic_tile" / "study.yaml", study)
    twin = kernels / "granger" / "studies" / "other"
    shutil.copytree(study, twin)
    assert line_of() == f"{twin / 'study.yaml'}: study 'other' is also in {study}"
    shutil.rmtree(twin)
    bad = study.rename(study.parent / "Other-1")
    assert line_of().startswith(f"{bad / 'study.yaml'}: the folder's name must match")
    shutil.rmtree(bad)
    # What git leaves behind of a renamed folder is no study.
    (study / "__pycache__").mkdir(parents=True)
    assert list(experiment().studies) == ["acoustic_tile"]
    (kernels / "new").mkdir()
    assert "new" not in experiment().folders
    (kernels / "new" / "kernel.cu").touch()
    assert line_of() == f"{kernels / 'new' / 'spec.yaml'}: is missing: every workload has one"
    shutil.rmtree(kernels / "new")
    assert list(experiment({"workloads": ["kernels/acoustic"]}).folders) == ["acoustic"]
    line = line_of({"workloads": ["kernels", "kernels/acoustic"]})
    assert f"workload 'acoustic' is also in {kernels}" in line
    (home / "empty").mkdir()
    assert "holds no workload" in line_of({"workloads": ["kernels", "empty"]})


def test_a_variant_that_is_not_verified_cannot_be_recommended(home: Path) -> None:
    folder = home / "kernels" / "granger" / "studies" / "mine"
    folder.mkdir(parents=True)
    selection = {"train": {"county": [5]}, "test": {"county": [10]}}
    splits = {"sizes": {"kind": "problems", "title": "x", **selection}}
    study = {**ASKED, "splits": splits, "candidates": {"variant": ["smem", "published"]}}
    (folder / "study.yaml").write_text(yaml.safe_dump(study))
    (home / "data" / "recorded" / "h200" / "granger.parquet").touch()
    said = "candidates.variant: 'published' is not verified: it cannot be recommended"
    assert line_of() == f"{folder / 'study.yaml'}: {said}"


def test_problems_may_be_narrowed_by_constraints(home: Path) -> None:
    block = {**BLOCK, "only": {"variant": ["block3d"]}, "constraints": ["bx == 2 * by", "bz == 1"]}
    found = experiment(nested("sweeps/acoustic/problems", [block]))
    spec = found.specs["acoustic"]
    parts = narrowings(spec, found.blocks_of("h200", "acoustic"))
    problem = {"n": 64, "dtype": "float32", "order": 2}
    first, *rest = configurations(spec, problem, None, parts[64, "float32", 2])
    assert first == baseline(spec)
    assert {each["variant"] for each in rest} == {"block3d"}
    shapes = {(each["bx"], each["by"], each["bz"]) for each in rest}
    assert shapes == {(16, 8, 1), (32, 16, 1)}
    for wrong, said in [
        (["bx == width"], ".constraints: 'bx == width': unknown name 'width'"),
        (["bx =="], ".constraints: 'bx ==' is not an expression"),
        ("bx == by", ".constraints: must be"),
    ]:
        line = line_of(nested("sweeps/acoustic/problems", [{**BLOCK, "constraints": wrong}]))
        assert line.startswith("overlay0.yaml: sweeps.acoustic.problems")
        assert said.removeprefix(".") in line


def test_what_the_studies_want_of_a_gpu_is_in_the_order_of_the_settings(home: Path) -> None:
    found = experiment(nested(f"{S}/gpus", ["h200.sm72"]))
    assert found.gpus_of("acoustic_tile") == ["h200.sm72"]
    assert found.workloads_of("h200.sm72") == ["acoustic"]
    assert found.workloads_of("h200") == []
    own = {"acoustic": [{"n": [256], "dtype": ["float32"], "order": [2]}]}
    found = experiment(nested("gpus/h200.sm72/problems", own))
    assert [each["n"] for each in found.problems_of("h200.sm72", "acoustic")] == [256]
    assert [each["n"] for each in found.problems_of("h200", "acoustic")] == [64, 64, 100, 100]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("seed: [1\n", "line 2: not valid YAML"),
        ("", "must map keys to values"),
        ("- 1\n", "must map keys to values"),
        (None, "cannot be read: No such file or directory"),
        ("seed: 1\nseed: 2\n", "line 2: 'seed' is given twice"),
    ],
)
def test_a_file_that_snakemake_could_not_read_is_one_line(
    home: Path, capsys: pytest.CaptureFixture[str], content: str | None, said: str
) -> None:
    path = home / "config.yaml"
    path.unlink()
    if content is not None:
        path.write_text(content)
    with pytest.raises(SystemExit) as ended:
        workflow.readable("config.yaml")
    assert ended.value.code == 1
    line = capsys.readouterr().err
    assert line.startswith("launchwise: config.yaml: ")
    assert said in line
    assert line.count("\n") == 1


def test_config_yaml_may_be_missing_where_an_overlay_says_everything(home: Path) -> None:
    (home / "config.yaml").unlink()
    assert workflow.readable("config.yaml", ["other.yaml"]) == "config.yaml"


def test_recorded_folders_and_files_must_be_there(
    project: Project, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(project.folder)
    monkeypatch.setattr(workflow, "ROOT", project.folder)
    start = workflow.start
    start(project.config(), "config.yaml", [])
    sweep = project.folder / "data" / "recorded" / "test" / "acoustic.parquet"
    sweep.unlink()
    no_file = "no file 'acoustic.parquet' in 'data/recorded/test'"
    asked = {"gpus": ["test"]}
    for overlay, said in [
        ({}, "kernels/acoustic/studies/acoustic_tile/study.yaml: no GPU in the settings has rows"),
        ({"studies": {"acoustic_tile": asked}}, f"config.yaml: gpus.test: {no_file}"),
        ({"gpus": {"test": {"path": "old"}}}, "o.yaml: gpus.test: no folder 'old'"),
        ({"gpus": {"b.1": {"source": "recorded"}}}, "o.yaml: gpus.b.1: no folder 'data/recorded/b"),
    ]:
        config = project.config()
        update_config(config, overlay)
        if "b.1" in config["gpus"]:
            config["gpus"].pop("test")
        Path("o.yaml").write_text(yaml.safe_dump(overlay))
        with pytest.raises(SystemExit):
            start(config, "config.yaml", ["o.yaml"])
        assert capsys.readouterr().err.startswith(f"launchwise: {said}")


def test_a_described_gpu_is_part_of_no_study_and_has_nothing_to_measure(home: Path) -> None:
    found = experiment(nested("gpus/a100", {"source": "described"}))
    assert found.gpus_of("acoustic_tile") == ["h200", "h200.sm72"]
    assert found.workloads_of("a100") == []
    assert workflow.architectures(found) == {}
    config = {**BASE, "gpus": {"a100": {"source": "described"}}}
    (home / "config.yaml").write_text(yaml.safe_dump(config))
    assert line_of() == (
        "config.yaml: gpus: all are described or held out; studies need a recorded or live GPU"
    )


def test_no_study_learns_from_a_held_out_gpu(home: Path) -> None:
    found = experiment(nested("gpus/h200.sm72/held_out", True))
    assert found.gpus_of("acoustic_tile") == ["h200"]
    assert found.tested_blindly("acoustic_tile") == ["h200", "h200.sm72"]
    assert found.workloads_of("h200.sm72") == []
    live = {"source": "live", "arch": "sm_80", "held_out": True}
    found = experiment(nested("gpus/a100", {**live, "studies": ["acoustic_tile"]}))
    assert found.gpus_of("acoustic_tile") == ["h200", "h200.sm72"]
    assert found.tested_blindly("acoustic_tile") == ["h200", "h200.sm72", "a100"]
    assert found.workloads_of("a100") == []
    config = {**BASE, "gpus": {"h200": {"source": "recorded", "held_out": True}}}
    (home / "config.yaml").write_text(yaml.safe_dump(config))
    assert line_of() == (
        "config.yaml: gpus: all are described or held out; studies need a recorded or live GPU"
    )


def test_a_recorded_blind_test_stays_where_its_gpu_takes_no_part(home: Path) -> None:
    folder = home / "data" / "recorded" / "h200.sm72"
    (folder / "acoustic.parquet").unlink()
    assert experiment().tested_blindly("acoustic_tile") == ["h200"]
    (folder / "blind").mkdir()
    (folder / "blind" / "acoustic_tile.pairs.parquet").touch()
    found = experiment()
    assert found.gpus_of("acoustic_tile") == ["h200"]
    assert found.tested_blindly("acoustic_tile") == ["h200", "h200.sm72"]


@pytest.mark.parametrize(
    ("entries", "rows", "said"),
    [
        (
            {"a10": {"source": "described"}},
            (),
            "o.yaml: gpus.a10: unknown card 'a10', did you mean 'a100'? (allowed: a100, ",
        ),
        (
            {"old": {"source": "described", "card": "titan"}},
            (),
            "o.yaml: gpus.old: unknown card 'titan', did you mean 'titan_",
        ),
        (
            {"mine": {"source": "described"}},
            ("mine,sms,8,1,its box",),
            "o.yaml: gpus.mine: mine in data/cards.csv lacks compute_capability, boost_clock_mhz, ",
        ),
        (
            {"mine": {"source": "described", "card": "a100"}},
            ("a100,sms,108,1,its box",),
            "data/cards.csv: a100.sms: is given twice",
        ),
    ],
)
def test_a_described_gpu_needs_a_card_with_all_of_its_figures(
    project: Project,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    entries: dict[str, Any],
    rows: tuple[str, ...],
    said: str,
) -> None:
    monkeypatch.chdir(project.folder)
    monkeypatch.setattr(workflow, "ROOT", project.folder)
    table = project.folder / "data" / "cards.csv"
    # A card that lacks something is well as long as nobody asks for it.
    table.write_text("\n".join([table.read_text().rstrip(), "rare,sms,8,1,its box", *rows, ""]))
    config = project.config()
    update_config(config, {"gpus": {"a100": {"source": "described"}}})
    if not rows:
        workflow.start(config, "config.yaml", [])
    Path("o.yaml").write_text(yaml.safe_dump({"gpus": entries}))
    update_config(config, {"gpus": entries})
    with pytest.raises(SystemExit):
        workflow.start(config, "config.yaml", ["o.yaml"])
    line = capsys.readouterr().err
    assert line.startswith(f"launchwise: {said}")
    assert line.count("\n") == 1


def test_a_kind_of_model_that_does_not_exist_is_one_line(
    project: Project, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(project.folder)
    monkeypatch.setattr(workflow, "ROOT", project.folder)
    overlay = {"models": {"mine": {"kind": "xgbost", "title": "x"}}}
    Path("o.yaml").write_text(yaml.safe_dump(overlay))
    config = project.config()
    update_config(config, overlay)
    with pytest.raises(SystemExit):
        workflow.start(config, "config.yaml", ["o.yaml"])
    assert capsys.readouterr().err.startswith(
        "launchwise: o.yaml: models.mine.kind: unknown kind of model 'xgbost', did you mean "
        "'xgboost'? (allowed: analytical, c45, committee, forest, gaussian_process, knn, "
        "lambdarank, learnt, lightgbm, nearest_optimum, roofline, stream_law, tree, xgboost"
    )


def test_a_live_gpu_without_an_architecture_needs_a_card_here(
    home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from launchwise.measuring.cards import Card

    mixed = [Card(0, "GPU-1", "NVIDIA A", "sm_80", "1"), Card(1, "GPU-2", "NVIDIA B", "sm_90", "1")]
    found = experiment({"gpus": {"local": {"source": "live"}}})
    monkeypatch.setattr(workflow, "cards", lambda: mixed[1:])
    assert workflow.architectures(found) == {"local": "sm_90"}
    for cards, said in [
        ([], "this machine has no NVIDIA GPU; give its arch"),
        (mixed, "several kinds of GPU, select one by device: NVIDIA A (sm_80), NVIDIA B (sm_90)"),
    ]:
        monkeypatch.setattr(workflow, "cards", lambda cards=cards: cards)
        with pytest.raises(SystemExit):
            workflow.architectures(found)
        line = capsys.readouterr().err
        assert line.startswith("launchwise: overlay0.yaml: gpus.local: ")
        assert said in line
        assert line.count("\n") == 1
    named = experiment({"gpus": {"local": {"source": "live", "device": "B"}}})
    assert workflow.architectures(named) == {"local": "sm_90"}
    given = experiment({"gpus": {"local": {"source": "live", "arch": "sm_75"}}})
    assert workflow.architectures(given) == {"local": "sm_75"}


def test_rows_to_measure_anew_are_named_by_known_columns(home: Path) -> None:
    key = "sweeps/acoustic/anew"
    said = [{"variant": ["block3d"], "n": [512], "status": ["slow"]}]
    assert experiment(nested(key, said)).sweeps["acoustic"].anew == said
    for wrong, words in [
        ({"tiles": [8]}, "sweeps.acoustic.anew: unknown column 'tiles'"),
        ({"status": ["lost"]}, "sweeps.acoustic.anew.status: unknown status 'lost'"),
        ({"variant": ["block4d"]}, "sweeps.acoustic.anew.variant: unknown value 'block4d'"),
        ({"n": ["many"]}, "sweeps.acoustic.anew.n: must be of type integer"),
        ({"n": []}, "sweeps.acoustic.anew.0.n: "),
    ]:
        assert words in line_of(said=nested(key, [wrong]))


def test_only_a_live_gpu_is_extended(home: Path) -> None:
    said = nested("gpus/test", {"source": "recorded", "extend": True})
    assert "gpus.test: extend: needs source live, not recorded" in line_of(said=said)
    said = nested("gpus/test", {"source": "live", "path": "data/recorded/test"})
    assert "gpus.test: path: a live GPU has recorded rows only with extend: true" in line_of(
        said=said
    )


def test_a_mistake_in_the_prices_stops_the_workflow_before_it_begins(
    project: Project, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(project.folder)
    monkeypatch.setattr(workflow, "ROOT", project.folder)
    path = project.folder / "prices.csv"
    path.write_text("gpu,euro,euro_per_hour,date,source\ntest,,-3,2026-11-01,a cloud\n")
    config = {**project.config(), "prices": "prices.csv"}
    with pytest.raises(SystemExit) as stopped:
        workflow.start(config, "config.yaml", [])
    assert stopped.value.code == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.endswith("prices.csv: line 2: euro_per_hour: must be a positive number (got '-3')")
