"""Files of others after random edits: what is told is one line, never a traceback."""

import json
import random
import shutil

import foreign
import pytest
import yaml
from edits import edited
from samples import ROOT

from launchwise.base.errors import UserError
from launchwise.cli.words import read_experiment
from launchwise.importing.command import import_sweeps
from launchwise.workloads.checks import corners
from launchwise.workloads.spec import load_spec

EDITS = 120


def spec_doors(folder):
    """Files of workloads to what reads them."""
    doors = {}
    for name in ("threshold_mask", "every_type", "tiled_gemm"):
        copy = folder / name
        shutil.copytree(ROOT / "tests" / "strangers" / name, copy)
        doors[copy / "spec.yaml"] = lambda copy=copy: corners.complaint(load_spec(copy))
    copy = folder / "granger"
    shutil.copytree(ROOT / "kernels" / "granger", copy)
    for path in copy.glob("*.yaml"):
        doors[path] = lambda: load_spec(copy)
    return doors


def import_doors(folder):
    """Files of other tuners to what imports them."""
    results = {
        "cache.json": foreign.cache(),
        "t4.json": foreign.t4(),
        "ktt.json": foreign.ktt(),
        "list.json": foreign.results(),
        "with_device.json": [foreign.results(), {"device_name": "NVIDIA RTX A4000"}],
        "triton.json": foreign.triton([64, 2, "torch.float16"]),
    }
    for name, content in {**results, "t1.json": foreign.t1()}.items():
        (folder / name).write_text(json.dumps(content, indent=1))
    (folder / "rows.csv").write_text("x,y,ms,said\n16,1,2.5,ok\n32,1,3.5,ok\n16,2,1.5,bad\n")
    columns = {"tunables": ["x", "y"], "time": "ms", "unit": "ms", "status": "said"}
    (folder / "columns.yaml").write_text(yaml.safe_dump(columns))

    def door(name, **options):
        path = folder / name
        asked = {"devices": [f"{path}=NVIDIA RTX A4000"], "problem": ["n=64"], **options}
        return lambda: import_sweeps([path], "x", folder / "k", folder / "r", **asked)

    return {
        **{folder / name: door(name) for name in results},
        folder / "t1.json": door("cache.json", space=folder / "t1.json"),
        folder / "rows.csv": door("rows.csv", columns=folder / "columns.yaml"),
        folder / "columns.yaml": door("rows.csv", columns=folder / "columns.yaml"),
    }


def project_doors(folder):
    """Files of a project (settings, an overlay, a sweep, a study, elements) to what reads them."""
    shutil.copytree(ROOT / "kernels" / "granger", folder / "kernels" / "granger")
    (folder / "data").symlink_to(ROOT / "data")
    settings = yaml.safe_load((ROOT / "config.yaml").read_text())
    gpus = {name: {**settings["gpus"][name], "studies": None} for name in ("h200", "h100")}
    gpus["local"] = {"source": "live", "slurm": {"partition": "p", "gres": "gpu:h200:1"}}
    base, overlay = folder / "config.yaml", folder / "overlay.yaml"
    base.write_text(yaml.safe_dump({**settings, "workloads": ["kernels"], "gpus": gpus}))
    overlay.write_text("seed: 7\ngpus:\n  h100: {source: recorded, held_out: true}\n")

    def door():
        experiment = read_experiment([base, overlay], folder)
        for study in experiment.studies:
            experiment.kept_out(study)

    files = [base, overlay, *sorted((folder / "kernels" / "granger").rglob("*.yaml"))]
    return dict.fromkeys(files, door)


@pytest.mark.parametrize("doors_of", [spec_doors, import_doors, project_doors])
def test_random_edits_are_told_in_one_line(tmp_path, doors_of):
    dice, doors = random.Random(2026), doors_of(tmp_path)
    texts = {path: path.read_text() for path in doors}
    for door in doors.values():
        door()
    said = []
    for number in range(EDITS // 3):
        path = [*doors][number % len(doors)]
        path.write_bytes(content := edited(texts[path], dice))
        try:
            doors[path]()
        except UserError as error:
            said.append(str(error))
        except Exception as error:
            raise AssertionError(f"{path.name}, edit {number}: {content[:2_000]!r}") from error
        path.write_text(texts[path])
    assert all(each.isprintable() and len(each) < 5_000 for each in said)
    assert len(said) > EDITS // 12
