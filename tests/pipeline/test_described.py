"""A GPU that nobody measured, through the command line: described and predicted, nothing else."""

from launchwise.gpus.profile import read_profile
from launchwise.tables.files import read_table
from launchwise.tables.learning import published_times_schema, unmeasured_schema
from launchwise.workloads.spec import load_spec


def test_times_are_predicted_for_it_from_what_others_measured(project):
    config = project.config()
    config["gpus"]["old"] = {"source": "described", "card": "titan_black"}
    sizes = {"kind": "problems", "title": "x", "train": {"n": [64]}, "test": {"n": [100]}}
    project.ask({**project.study(), "splits": {"sizes": sizes}})
    project.configure(config)
    done = project.snakemake("--cores", "2", "--quiet", "all", "--", "predict_stencil_block")
    assert done.returncode == 0, done.stdout + done.stderr
    path = project.folder / "results" / "predictions" / "stencil_block.parquet"
    spec = load_spec(project.folder / "kernels" / "stencil")
    table = read_table(path, unmeasured_schema(spec))
    assert set(table["gpu"]) == {"old"}
    assert set(table["n"]) == {100}
    assert set(table["predictor"]) == {"analytical", "learnt"}
    assert (table["predicted_ms"] > table["bytes_ms"] / 2).all()
    # The study's paper has times of other cards only.
    published = path.with_name("stencil_block.published.parquet")
    assert read_table(published, published_times_schema(spec)).empty
    # It has a profile and no other target.
    found = read_profile(project.folder / "results" / "gpus" / "old.json", "old")
    assert (found.source, found.card_model, found.cores) == ("described", "titan_black", 2880)
    listed = project.snakemake("--list")
    names = {line.split()[0] for line in listed.stdout.splitlines() if line.strip()}
    assert {name for name in names if name.endswith("_old")} == {"describe_old"}
    assert {"describe_test", "sweep_test"} <= names
    planned = project.snakemake("-n", "all")
    assert planned.returncode == 0, planned.stdout + planned.stderr
    for part in ("sweeps/old", "build/", "journal/", "recorded/old"):
        assert part not in planned.stdout
