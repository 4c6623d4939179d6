"""A metric is declared once: another entry is a column of tables, imports, report and reference."""

import json
import shutil
import subprocess
import sys

from samples import ROOT, STENCIL, measurements

from launchwise.tables.files import write_table
from launchwise.tables.measurements import measurement_schema

ENTRIES = '''
    stall_share = Metric(unit="1", least=0, most=1, since=9,
                         shown=Shown("stalled", "%", 100, row=50))
    """stalled cycles"""
    phase = Metric(kind="text", neutral="none", since=9)
    """phase of the moon"""
    bytes_per_joule = Metric(unit="B/J", above=0, since=9, made="table",
                             formula=lambda row: row["bytes"] / row["energy_j"])
    """thrift"""
'''

SCRIPT = """
import json, sys
from pathlib import Path
import launchwise
from docs.generator.column_page import column_page
from launchwise.importing.sweep import ForeignSweep, Row
from launchwise.importing.members import table_of
from launchwise.measuring.rows import make_row, rows_to_table
from launchwise.report.answer.landscape import KNOWN
from launchwise.tables.files import read_table, write_table
from launchwise.tables.measurements import measurement_schema
from launchwise.workloads import space
from launchwise.workloads.spec import load_spec

spec = load_spec(Path(sys.argv[1]))
schema = measurement_schema(spec)
problem = {"n": 102, "dtype": "float32", "order": 2}
first, second = space.configurations(spec, problem)[:2]
labels = {"gpu": "g", "workload": "stencil", **dict.fromkeys(
    ("card", "driver", "toolkit", "backend", "commit"), "x")}
timed = {"status": "ok", "time_ms": 0.1, "times_ms": [0.1, 0.1], "stall_share": 0.25}
rows = [make_row(labels, {**problem, **first}, timed | {"phase": "full"}),
        make_row(labels, {**problem, **second}, {"status": "failed", "reason": "no"})]
key = {name: rows[0][name] for name in spec.key_columns}
notes = [{"note": "energy", "names": key, "energy_j": 2.0}]
write_table("new.parquet", rows_to_table(rows, notes, spec), schema)
new = read_table("new.parquet", schema)
old = read_table("old.parquet", schema)
names = {name: first[name] for name in spec.tunables}
row = Row(names, "ok", "", (0.1,), 0.1, {"stall_share": 0.5})
sweep = ForeignSweep("f", "t", "d", "k", problem, {}, [row])
imported = table_of([sweep], "g", spec, [problem])
shown = ["stall_share", "phase", "bytes_per_joule"]
values = {name: table.iloc[:2][shown].astype(object).fillna("").to_numpy().tolist()
          for name, table in (("new", new), ("old", old), ("imported", imported))}
print(json.dumps({**values, "page": column_page(), "panel": KNOWN["stall_share"].title,
                  "from": launchwise.__file__}))
"""


def test_another_metric_is_one_entry(tmp_path, stencil_spec):
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "launchwise", tmp_path / "launchwise", ignore=ignored)
    path = tmp_path / "launchwise" / "workloads" / "metrics.py"
    text = path.read_text()
    place = '    """Columns of a sweep after them."""\n'
    assert text.count(place) == 1
    path.write_text(text.replace(place, place + ENTRIES))
    sweep = measurements(stencil_spec)
    write_table(tmp_path / "old.parquet", sweep, measurement_schema(stencil_spec))
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(STENCIL)],
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
