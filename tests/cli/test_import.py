"""``launchwise import`` and ``export-sweep`` in an empty folder, and the line that they print."""

import json
import shlex
from pathlib import Path

import foreign
import pytest
import yaml
from command_line import line_of
from forks import at_home, forked, run_snakemake

from launchwise.base.typed import laid_over
from launchwise.cli.app import main
from launchwise.experiment.loading import load_experiment
from launchwise.tables.files import read_table, write_table
from launchwise.tables.measurements import measurement_schema
from launchwise.workloads.spec import load_spec

DEVICES = {
    "a4000": "NVIDIA RTX A4000",
    "a6000": "NVIDIA RTX A6000",
    "w7800": "AMD Radeon PRO W7800",
}


@pytest.fixture
def here(tmp_path, monkeypatch):
    """An empty folder with a cache per card, where the command is run."""
    for (name, device), scale in zip(DEVICES.items(), (1.0, 0.6, 0.8), strict=True):
        foreign.write(tmp_path / f"{name}.json.gz", foreign.cache(device, scale))
    monkeypatch.chdir(tmp_path)
    return tmp_path


BYTES = ("--bytes", "8 * w * h")
ALL = tuple(f"{name}.json.gz" for name in DEVICES)


def experiment_after(here, said):
    """The settings that the last line of an import names, laid over the project's own."""
    path = Path(shlex.split(said.splitlines()[-1])[-1])
    own, imported = (yaml.safe_load(each.read_text()) for each in (Path("config.yaml"), path))
    return load_experiment(laid_over(own, imported), [], here)


def test_snakemake_plans_what_the_printed_line_says(here, capsys):
    assert main(["import", *ALL, "--as", "blur", *BYTES]) == 0
    *_, line = capsys.readouterr().out.splitlines()
    _, *words = shlex.split(line.removeprefix("run: "))
    done = forked(run_snakemake, [*words, "-n"], here, at_home(here), seconds=200)
    assert done.returncode == 0, done.stderr[-3000:]
    said = done.stdout + done.stderr
    for name in DEVICES:
        assert f"data/recorded/{name}/blur.parquet" in said
    for stage in ("profiles", "data_blur", "learn_blur_transfer", "report"):
        assert f"rule {stage}:" in said


def test_flags_come_first_and_json_has_everything(here, capsys):
    foreign.write(here / "a6000.json.gz", foreign.cache(DEVICES["a6000"], 90.0))
    assert main(["import", *ALL, "--as", "blur"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("FLAGGED a6000: ")
    assert "a4000: 2 failed, 13 ok" in lines
    assert main(["import", *ALL, "--as", "blur", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert list(found["flagged"]) == ["a6000"]
    assert found["rows"]["a4000"] == {"ok": 13, "failed": 2}


@pytest.mark.parametrize("kind", ["kernel-tuner", "t4"])
def test_a_sweep_goes_out_and_comes_back(here, capsys, kind):
    assert main(["import", "a4000.json.gz", "--as", "blur"]) == 0
    sweep = "data/recorded/a4000/blur.parquet"
    words = ["--workload", "kernels/blur", "--format", kind]
    assert main(["export-sweep", sweep, "out.json", *words]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "out.json"
    known = ["--problem", "w=4096", "--problem", "h=2048"] if kind == "t4" else []
    device = ["--device", f"out.json={DEVICES['a4000']}"] if kind == "t4" else []
    there = ["--folder", "again", "--recorded", "gpus", *known, *device]
    assert main(["import", "out.json", "--as", "blur", *there]) == 0
    assert capsys.readouterr().out.splitlines()[0] == "a4000: 2 failed, 13 ok"
    # Every digit is kept.
    back, given = (foreign.read_one(here / name) for name in ("out.json", "a4000.json.gz"))
    assert (back.device_name, back.problem) == (given.device_name, given.problem)
    assert {str(row.configuration): row for row in back.rows} == {
        str(row.configuration): row for row in given.rows
    }


@pytest.mark.parametrize("facts", [[1], {"device": {"a": [1]}, "tunables": [1], "kernel": 3}])
def test_facts_that_no_import_wrote_end_no_export(here, facts):
    assert main(["import", "a4000.json.gz", "--as", "blur"]) == 0
    sweep, schema = (
        "data/recorded/a4000/blur.parquet",
        measurement_schema(load_spec(Path("kernels/blur"))),
    )
    write_table(sweep, read_table(sweep, schema), schema, {"foreign": facts})
    assert main(["export-sweep", sweep, "out.json", "--workload", "kernels/blur"]) == 0
    assert len(json.loads((here / "out.json").read_text())["cache"]) == 15


def test_files_of_other_programs(here, capsys):
    foreign.write(here / "results.json", foreign.results())
    known = ["--device", f"results.json={DEVICES['a4000']}", "--problem", "n=4096"]
    assert main(["import", "results.json", "--as", "blur", *known]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "a4000: 2 failed, 13 ok" in lines
    # Nothing to run, since there is no study.
    assert not any(line.startswith("run: ") for line in lines)


def test_recommend_says_what_a_study_of_one_gpu_lacks(here, capsys):
    assert main(["import", "a4000.json.gz", "--as", "blur"]) == 0
    needed = "needs two GPUs with a card and no flag, or three sizes of one problem parameter"
    assert needed in capsys.readouterr().out
    question = ["recommend", "blur_transfer", "w=4096", "h=2048"]
    assert "--configfile kernels/blur/settings.yaml" in line_of(capsys, *question)
    alone = line_of(capsys, *question, "--configfile", "kernels/blur/settings.yaml")
    assert "workloads: blur: no study; " in alone
    assert needed in alone
    # Beside a workload with a study.
    assert main(["import", *ALL, "--as", "other"]) == 0
    capsys.readouterr()
    said = line_of(capsys, *question, "--configfile", "kernels/other/settings.yaml")
    assert "recommend: blur has no study: " in said
    assert needed in said


def test_imported_studies_are_not_rechecked(here, capsys):
    assert main(["import", *ALL, "--as", "blur", *BYTES]) == 0
    said = line_of(capsys, "recheck", "--configfile", "kernels/blur/settings.yaml")
    assert "recheck: all studies are of imported sweeps, without a kernel" in said


def test_an_import_joins_the_rows_that_the_settings_name(here, capsys):
    """The study of the printed line has every GPU, whatever ``config.yaml`` says of them."""
    assert main(["import", *ALL, "--as", "other", "--recorded", "shared"]) == 0
    theirs = {
        "a4000": {"source": "recorded", "path": "shared/a4000"},
        "a6000": {"source": "recorded", "studies": ["other_transfer"], "path": "shared/a6000"},
        "w7800": {"source": "described", "host_gbs": 12.0},
    }
    (here / "config.yaml").write_text(yaml.safe_dump({"gpus": theirs}))
    assert main(["import", *ALL, "--as", "blur", *BYTES]) == 0
    out = capsys.readouterr().out
    assert "note: a4000: rows are in shared/a4000, which config.yaml names for it\n" in out
    assert (here / "shared" / "a4000" / "blur.parquet").is_file()
    assert (here / "data" / "recorded" / "w7800" / "blur.parquet").is_file()
    assert not (here / "data" / "recorded" / "a4000").exists()
    experiment = experiment_after(here, out)
    assert experiment.gpus_of("blur_transfer") == list(DEVICES)
    assert experiment.settings.gpus["a6000"].studies == ["other_transfer", "blur_transfer"]
    assert {"a4000", "a6000"} <= {*experiment.gpus_of("other_transfer")}


def test_an_import_says_which_gpu_the_settings_hold_out(here, capsys):
    theirs = {"a4000": {"source": "recorded", "held_out": True}}
    (here / "config.yaml").write_text(yaml.safe_dump({"gpus": theirs}))
    assert main(["import", *ALL, "--as", "blur", *BYTES]) == 0
    out = capsys.readouterr().out
    notes = [
        line for line in out.splitlines() if line.startswith("note: ") and "config.yaml" in line
    ]
    assert [line.split(": ")[1] for line in notes] == ["a4000"]
    assert experiment_after(here, out).gpus_of("blur_transfer") == ["a6000", "w7800"]


def test_an_import_elsewhere_says_that_the_settings_name_another_folder(here, capsys):
    theirs = {"a4000": {"source": "recorded", "path": "shared/a4000"}}
    (here / "config.yaml").write_text(yaml.safe_dump({"gpus": theirs}))
    assert main(["import", *ALL, "--as", "blur", *BYTES, "--recorded", "mine"]) == 0
    out = capsys.readouterr().out
    assert "note: a4000: config.yaml names shared/a4000; with the settings of this import" in out
    assert experiment_after(here, out).gpus_of("blur_transfer") == list(DEVICES)


def test_an_import_does_not_replace_a_gpu_that_is_measured(here, capsys):
    (here / "config.yaml").write_text(yaml.safe_dump({"gpus": {"a4000": {"source": "live"}}}))
    said = line_of(capsys, "import", *ALL, "--as", "blur")
    assert "config.yaml: gpus.a4000: is measured live: give the imported one a name" in said
    assert not (here / "kernels").exists()
