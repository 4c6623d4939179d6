"""A metric is declared once: another entry is a column of tables, imports, report and reference."""

import json
import shutil
import subprocess
import sys
from textwrap import indent

from samples import ROOT, STENCIL, measurements

from launchwise.base.typed import read_yaml
from launchwise.tables.files import write_table
from launchwise.tables.measurements import measurement_schema

PLANTED = read_yaml(ROOT / "tests/tables/data/metric.yaml")


def test_another_metric_is_one_entry(tmp_path, stencil_spec):
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "launchwise", tmp_path / "launchwise", ignore=ignored)
    path = tmp_path / "launchwise" / "workloads" / "metrics.py"
    text = path.read_text()
    place = '    """Columns of a sweep after them."""\n'
    assert text.count(place) == 1
    path.write_text(text.replace(place, place + indent(PLANTED["entries"], "    ")))
    sweep = measurements(stencil_spec)
    write_table(tmp_path / "old.parquet", sweep, measurement_schema(stencil_spec))
    done = subprocess.run(
        [sys.executable, "-c", PLANTED["script"], str(STENCIL)],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={"PYTHONPATH": str(tmp_path)},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["from"].startswith(str(tmp_path))
    moved = stencil_spec.value(stencil_spec.work.bytes, {"n": 102, "dtype": "float32", "order": 2})
    assert [0.25, "full", moved / 2] in found["new"]
    assert ["", "none", ""] in found["new"]
    assert found["imported"] == [[0.5, "none", ""]]
    assert found["old"] == [["", "none", ""]] * 2
    assert found["panel"] == "stalled"
    assert "| `bytes_per_joule` | real | B/J | thrift | 9 |" in found["page"]
    assert "The schema version is 9." in found["page"]
