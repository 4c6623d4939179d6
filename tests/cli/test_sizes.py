"""Sizes that meet conditions are drawn, swept and tuned; what is said of others: test_check.py."""

import re
import shutil

import pytest
import yaml
from samples import ROOT
from test_check import DATA, written

from launchwise.base.errors import UserError
from launchwise.base.typed import read_yaml
from launchwise.cli.app import main
from launchwise.cli.check.checking import chosen_builds
from launchwise.cli.check.small_problems import SmallProblems
from launchwise.cli.tuning import Question, prepared
from launchwise.cli.words import problem_of
from launchwise.experiment.discovery import derived_study, derived_sweep, problems_in
from launchwise.workloads.checks.corners import corner_problems
from launchwise.workloads.declared.declared_workload import load_workload
from launchwise.workloads.parts import UNKNOWN_GPU
from launchwise.workloads.space import baseline, feasible
from launchwise.workloads.spec import load_spec

CASES = read_yaml(ROOT / "tests/cli/data/sizes.yaml")

GUIDE = ROOT / "docs" / "how-to" / "add_a_kernel.md"
SPEC = yaml.safe_load(DATA["bases"]["vec"]["spec.yaml"])
OWN = "n % (4 * block_size_x) == 0"
"""Condition of the variant."""

needs_gxx = pytest.mark.skipif(shutil.which("g++") is None, reason="g++ runs kernels on the CPU")


@pytest.fixture
def folder(tmp_path, in_one_process, monkeypatch):
    """A kernel that is right for multiples of 256 only."""
    monkeypatch.chdir(tmp_path)
    return written({"of": "vec"}, tmp_path)


def write(folder, variant=None, **changes):
    """The spec with changes of its top level, and conditions of its variant."""
    raw = {**SPEC, **changes}
    if variant is not None:
        raw["variants"] = {"vec": {**SPEC["variants"]["vec"], "constraints": variant}}
    (folder / "spec.yaml").write_text(yaml.safe_dump(raw, sort_keys=False))
    return load_spec(folder)


def drawn(spec):
    """Small problems that a check draws."""
    return SmallProblems(spec, UNKNOWN_GPU).drawn()


def chosen(spec, problem):
    """Configurations of one that it runs."""
    return SmallProblems(spec, UNKNOWN_GPU).chosen(problem)


def sizes(**limits):
    """Integers between limits, and parameters of other kinds as they are."""

    def parameter(low, high):
        return {"type": "integer", "minimum": low, "maximum": high}

    return {name: own if isinstance(own, dict) else parameter(*own) for name, own in limits.items()}


def tuned(folder, *words):
    """Problems of ``launchwise tune``, without the run."""
    project = prepared(Question(str(folder), words, cores=1, dry_run=True), "sm_90")
    return problems_in(project.experiment.blocks_of("local", folder.name))


@needs_gxx
@pytest.mark.parametrize("place", ["variant", "problem", "derived"])
def test_drawn_sizes_keep_multiples(folder, place, capsys):
    if place == "variant":
        write(folder, [OWN])
    elif place == "problem":
        write(folder, constraints=["n % 256 == 0"])
    else:
        write(folder, derived={"rest": "round_up(n, 256) - n"}, constraints=["rest == 0"])
    assert main(["check", str(folder), "--cpu"]) == 0
    lines = [line for line in capsys.readouterr().out.splitlines() if "cpu:" in line]
    assert all(line.startswith("ok") for line in lines)
    # The odd size is an odd multiple, and one run is beyond 16 bits.
    ran = [int(n) for line in lines for n in re.findall(r"n=(\d+)", line)]
    assert ran == [1024, 1024, 1280, 1280, 65536]
    problems = tuned(folder)
    assert len(problems) == 5
    assert all(problem["n"] % 256 == 0 for problem in problems)


def test_a_study_names_sizes_that_fit(folder, capsys):
    spec = write(folder, constraints=["n % 256 == 0"])
    assert spec.check_value("n", 1024) is None
    assert "fits is n=1024" in (spec.check_value("n", 1025) or "")
    assert spec.check_problem({"n": 1024}) is None
    study = derived_study(spec, problems_in(derived_sweep(spec).problems))
    split = study.splits["interpolation"]
    assert all(n % 256 == 0 for part in (split.train, split.test) for n in part["n"])


def test_another_configuration_runs_where_the_baseline_may_not(folder):
    scalar = {**SPEC["variants"]["vec"], "grid": ["ceil_div(n, block_size_x)"]}
    both = {"vec": {**SPEC["variants"]["vec"], "constraints": [OWN]}, "scalar": scalar}
    spec = write(folder, variants=both)
    # The nearest size that the baseline may run stands beside the ends of the range.
    assert [problem["n"] for problem in corner_problems(spec)] == [1000, 1048576, 1024]
    problems = drawn(spec)
    # The odd size stays for the variant that may run it.
    assert [problem["n"] for problem in problems] == [1024, 1280, 1013]
    runs = [(problem, each) for problem in problems for each in chosen(spec, problem)]
    assert all(feasible(spec, problem, each) for problem, each in runs)
    assert [each["variant"] for problem, each in runs if problem["n"] == 1013] == ["scalar"] * 2
    # Not where the expected values come from a variant that may not run it.
    spec = write(folder, variants=both, reference={"variant": "vec"})
    assert [problem["n"] for problem in drawn(spec)][:2] == [1024, 1280]


def test_a_variant_without_a_feasible_corner_is_run_and_compiled(folder):
    middle = {**SPEC["variants"]["vec"], "constraints": [OWN, "block_size_x == 64"]}
    spec = write(
        folder,
        variants={"vec": {**SPEC["variants"]["vec"], "constraints": [OWN]}, "middle": middle},
        tunables={"block_size_x": {"kind": "build", "values": [32, 64, 128]}},
        baseline={"variant": "vec", "block_size_x": 128},
    )
    shapes = [(each["variant"], each["block_size_x"]) for each in chosen(spec, {"n": 1024})]
    assert ("middle", 64) in shapes
    named = chosen_builds(spec, load_workload(folder, spec), [{"n": 1024}])
    assert "middle block_size_x=64" in named.values()


def test_sizes_without_constraints_are_drawn_as_ever(folder):
    spec = write(folder, problem=sizes(n=(1000, 1048576)))
    assert drawn(spec) == [{"n": 1000}, {"n": 1013}]
    assert derived_sweep(spec).problems == [{"n": [1000, 5690, 32382, 184268, 1048576]}]
    assert corner_problems(spec) == [{"n": 1000}, {"n": 1048576}]


@pytest.mark.parametrize(("problem", "constraints", "derived"), CASES["conditions"])
def test_drawn_sizes_keep_conditions_of_every_kind(folder, problem, constraints, derived):
    spec = write(folder, problem=sizes(**problem), constraints=constraints, derived=derived)
    small = drawn(spec)
    swept = problems_in(derived_sweep(spec).problems)
    corners = corner_problems(spec)
    for each in (*small, *swept, *corners):
        assert spec.check_problem(each) is None
        assert feasible(spec, each, baseline(spec))
    assert len(small) >= 2
    assert len(corners) >= 2
    assert len(swept) >= 4
    assert derived_study(spec, swept) is not None
    # The second is another size than the first.
    assert any(small[0][name] != small[1][name] for name in problem)


def test_odd_sizes_remain_odd_multiples_and_apart(folder):
    limits = sizes(n=(16, 4096), k=(16, 4096))
    spec = write(folder, problem=limits, constraints=["n % 16 == 0", "k % 16 == 0"])
    smallest, odd, *_ = drawn(spec)
    assert smallest == {"n": 16, "k": 16}
    assert odd["n"] != odd["k"]
    assert all(int(value) % 32 == 16 and int(value) > 16 for value in odd.values())
    assert all(int(value) < 100 for value in odd.values())


def test_a_question_about_a_size_that_breaks_a_constraint_is_refused(folder):
    spec = write(folder, constraints=["n % 256 == 0"])
    assert problem_of(spec, ["n=2048"], "recommend") == {"n": 2048}
    with pytest.raises(UserError) as refused:
        problem_of(spec, ["n=2000"], "recommend")
    assert str(refused.value).startswith("recommend: n=2000: n % 256 == 0 does not hold")
    assert str(refused.value).endswith("fits is n=2048")


def test_the_guide_is_right(folder):
    text = GUIDE.read_text().split("## Sizes that must be multiples")[1].split("\n## ")[0]
    example = yaml.safe_load(text.split("```yaml\n")[1].split("```")[0])
    spec = write(folder, **example)
    assert [problem["n"] for problem in drawn(spec)] == [1024, 1280]
    condition = re.findall(r'`constraints: \["(.*?)"\]`', text)[0]
    assert condition == OWN
