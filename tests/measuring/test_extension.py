"""Extensions: recorded rows stay, what is missing is measured, and what does not fit is refused."""

from dataclasses import replace

import numpy as np
import pytest
from mistakes import planted

from launchwise.base.errors import UserError
from launchwise.experiment.method import Method
from launchwise.gpus.profile import GpuProfile
from launchwise.measuring.earlier_rows import extended, gather, read_extension
from launchwise.measuring.journal import Journal
from launchwise.measuring.repeats import rows_to_table
from launchwise.measuring.source_states import source_state
from launchwise.measuring.sweep import builds_of, measure_shard
from launchwise.tables.files import read_facts, read_table, write_table
from launchwise.tables.measurements import measurement_schema
from launchwise.workloads.declared.declared_workload import load_workload
from launchwise.workloads.space import Part, baseline
from tests.support.stencil import change_sessions

pytestmark = pytest.mark.usefixtures("forked_starts")

OLD = {"n": 20, "dtype": "float32", "order": 2}
NEW = {"n": 21, "dtype": "float32", "order": 2}
NARROW = Part({"variant": ["linear", "block3d"], "bx": [64], "row_padding": [0]})
WIDE = Part({"variant": ["linear", "block3d"], "bx": [8, 64], "row_padding": [0]})


def measured(shard, path):
    """Table of a shard that is measured with a journal."""
    with Journal(path, "print", shard.spec.key_columns) as journal:
        measure_shard(shard, journal)
        return rows_to_table(shard.own(journal.rows), list(journal.notes), shard.spec)


def keys(table, shard):
    """Keys of rows."""
    return set(table[shard.spec.key_columns].itertuples(index=False, name=None))


class Recording:
    """A recorded sweep of one problem, and shards that extend it."""

    def __init__(self, make, folder):
        self.make, self.folder = make, folder
        self.path = folder / "recorded.parquet"
        shard = self.shard([OLD], NARROW)
        self.spec, self.kernels = shard.spec, shard.folder
        self.rows = measured(shard, folder / "first.jsonl")
        self.write(self.rows)

    def write(self, rows):
        """Record rows as measured with the folder's present state."""
        state = source_state(self.kernels, self.spec).as_facts()
        write_table(self.path, rows, measurement_schema(self.spec), {"states": {"test": state}})

    def shard(self, problems, part, **more):
        """A shard that measures a part of the space."""
        made = self.make(problems, **more)
        parts = {tuple(problem.values()): [part] for problem in problems}
        return replace(made, parts_of=parts)

    def read(self, anew=()):
        """Rows that stay."""
        return read_extension(self.path, self.kernels, self.spec, anew)

    def joined(self, extension, new, facts=None):
        """The recorded rows with those of an extension, and what is said of them."""
        facts = facts or {"shards": [], "states": extension.facts["states"]}
        return extended(extension, new, facts, Method().model_dump())

    def extend(self, extension, name, part=WIDE):
        """Rows that an extension measures."""
        shard = replace(self.shard([OLD, NEW], part), extension=extension)
        return measured(shard.with_something_to_measure(), self.folder / name)


@pytest.fixture
def recording(make_shard, tmp_path):
    return Recording(make_shard, tmp_path)


@pytest.mark.parametrize("states", [[], {"test": {}}, {"test": 3}])
def test_states_that_nobody_wrote_are_one_line(recording, states):
    write_table(
        recording.path, recording.rows, measurement_schema(recording.spec), {"states": states}
    )
    with pytest.raises(UserError, match="states: were not written by launchwise"):
        recording.read()


def test_only_what_is_missing_is_measured_beside_baseline_and_best(recording):
    extension = recording.read()
    new = recording.extend(extension, "second.jsonl")
    shard = recording.shard([OLD, NEW], WIDE)
    wanted = {
        tuple({"gpu": "cpu", **problem, **each}[name] for name in shard.spec.key_columns)
        for problem in shard.problems
        for each in shard.configurations(problem)
    }
    again = keys(new, shard) & keys(recording.rows, shard)
    anchors = extension.anchors(OLD)
    assert anchors[0] == baseline(shard.spec)
    assert len(again) == len(anchors) <= 2
    best = recording.rows.loc[recording.rows["time_ms"].idxmin(), shard.spec.tunable_columns]
    assert anchors[-1] == best.to_dict()
    # Nor does a search take for known what is measured again.
    told = [each for each, _ in extension.told(OLD)]
    assert len(told) == len(recording.rows) - len(anchors)
    assert not [each for each in told if each in anchors]
    own = recording.shard([NEW], WIDE).own(new.to_dict("records"))
    assert {row["n"] for row in own} == {NEW["n"]}
    facts = {"shards": [{"seconds": {}}], "states": {"test": {}}}
    table, said = recording.joined(extension, new, facts)
    assert keys(table, shard) == wanted
    assert len(table) == len(wanted)
    write_table(recording.path, table, measurement_schema(shard.spec), said)
    assert read_table(recording.path, measurement_schema(shard.spec)).equals(table)
    (entry,) = said["joined"]
    fresh = len(new) - len(again)
    assert (entry["rows"], entry["rows_anew"], entry["problems"]) == (fresh, 0, 2)
    assert entry["cards"]["none"]["anchors"] == len(again)
    before = recording.rows.set_index(shard.spec.key_columns)["time_ms"]
    after = new.set_index(shard.spec.key_columns)["time_ms"]
    ratios = (after / before).dropna()
    assert entry["cards"]["none"]["median_ratio"] == pytest.approx(ratios.median())
    _, faster = recording.joined(extension, new.assign(time_ms=new["time_ms"] / 99), facts)
    assert faster["joined"][0]["cards"]["none"]["beyond_drift"] == len(again)
    # Recorded rows stay as they are, anchors too.
    joint = table.set_index(shard.spec.key_columns)["time_ms"]
    assert (joint[before.index] == before).all()
    others = after.index.difference(before.index)
    assert (joint[others] == after[others]).all()


def test_kernels_of_rows_that_are_measured_once_more_are_compiled(recording):
    """The best recorded row lies outside of what a later visit is narrowed to."""
    folder, spec, rows = recording.kernels, recording.spec, recording.rows.copy()
    rows.loc[rows["variant"] == "block3d", "time_ms"] /= 1000
    recording.write(rows)
    extension = recording.read()
    assert extension.anchors(OLD)[-1]["variant"] == "block3d"
    columns = Part({"variant": ["column"], "tz": [2]})
    shard = replace(recording.shard([OLD], columns), extension=extension)
    blocks = [{**{name: [value] for name, value in OLD.items()}, "only": dict(columns.only)}]
    workload = load_workload(folder, spec)
    wanted = {workload.build(OLD, each).key for each in shard.configurations(OLD)}
    assert len(wanted) == 3

    def compiled(*extended):
        builds = builds_of(folder, spec, [OLD], blocks, Method(), *extended)
        return {build.key for build in builds}

    assert wanted <= compiled(extension)
    assert not wanted <= compiled()
    recording.write(rows.assign(status=np.where(rows["variant"] == "block3d", "slow", "ok")))
    assert recording.read().anchors(OLD)[-1]["variant"] != "block3d"


def test_nothing_is_measured_where_every_row_is_there(recording):
    extension = recording.read()
    shard = recording.shard([OLD], NARROW, script=recording.folder / "missing.py")
    shard = replace(shard, extension=extension).with_something_to_measure()
    assert shard.problems == []
    # A measuring process would fail at once, if one were started.
    new = measured(shard, recording.folder / "second.jsonl")
    table, said = recording.joined(extension, new)
    assert table.equals(extension.recorded)
    assert "joined" not in said


def test_rows_are_measured_anew_by_what_names_them(recording):
    extension = recording.read(({"variant": ["block3d"], "n": [20], "by": [8]},))
    gone = keys(recording.rows, recording.shard([OLD], WIDE)) - keys(
        extension.kept, recording.shard([OLD], WIDE)
    )
    new = recording.extend(extension, "second.jsonl", NARROW)
    assert gone
    assert gone <= keys(new, recording.shard([OLD], WIDE))
    slow = recording.rows.assign(status=["slow", *["ok"] * (len(recording.rows) - 1)])
    recording.write(slow)
    assert len(recording.read(({"status": ["slow"]},)).kept) == len(slow) - 1


def test_rows_that_are_recorded_already_are_not_joined_twice(recording):
    anew = ({"variant": ["block3d"]},)
    extension = recording.read(anew)
    new = recording.extend(extension, "second.jsonl", NARROW)
    table, said = recording.joined(extension, new)
    write_table(recording.path, table, measurement_schema(recording.spec), said)
    again = recording.read(anew)
    assert recording.joined(again, new)[1] == said
    # Its journal is not that of a sweep that measures other rows anew.
    shard = recording.shard([OLD], NARROW)
    profile = GpuProfile.model_construct(name="cpu", device_name="CPU", sms=1)
    marks = {
        replace(shard, extension=each).fingerprint(profile, "kernels")
        for each in (None, extension, again, recording.read())
    }
    assert len(marks) == 3
    # Nor that of another driver or back-end; another card goes on with it.
    for name, is_new in (("driver", True), ("backend", True), ("card", False)):
        other = replace(shard, labels={**shard.labels, name: "another"})
        assert (other.fingerprint(profile, "kernels") not in marks) is is_new


def test_one_launch_does_not_replace_many(recording):
    anew = ({"variant": ["block3d"]},)
    extension = recording.read(anew)
    new = recording.extend(extension, "second.jsonl", NARROW)
    table, said = recording.joined(extension, new)
    count = int((recording.rows["variant"] == "block3d").sum())
    assert said["joined"][0]["rows_anew"] == count
    keys = recording.spec.key_columns
    times = table.set_index(keys)["time_ms"]
    after = new[new["variant"] == "block3d"].set_index(keys)["time_ms"]
    assert (times[after.index] == after).all()
    table, _ = recording.joined(extension, new.assign(status="slow"))
    before = recording.rows.set_index(keys)["time_ms"]
    assert (table.set_index(keys)["time_ms"][before.index] == before).all()
    # Many replace one.
    recording.write(recording.rows.assign(status="slow"))
    table, _ = recording.joined(recording.read(anew), new)
    assert (table.set_index(keys)["time_ms"][after.index] == after).all()


def test_rows_of_two_drivers_are_no_sweep(recording):
    other, facts = recording.folder / "other.parquet", read_facts(recording.path)
    write_table(other, recording.rows.assign(driver="2"), measurement_schema(recording.spec), facts)
    with pytest.raises(UserError, match="driver: differs"):
        gather(recording.kernels, [recording.path, other], None, {}, recording.folder / "both")


def test_rows_named_but_not_measured_stay_unless_their_kernel_has_changed(recording):
    anew = ({"variant": ["block3d"]},)
    extension = recording.read(anew)
    part = Part({"variant": ["linear"], "row_padding": [0]})
    shard = replace(recording.shard([NEW], part), extension=extension)
    new = measured(shard, recording.folder / "second.jsonl")
    table, _ = recording.joined(extension, new)
    assert len(table) == len(recording.rows) + len(new)
    with open(recording.kernels / "block3d.cu", "a") as file:
        file.write("// another kernel\n")
    table, said = recording.joined(recording.read(anew), new)
    assert set(table["variant"]) == {"linear"}
    gone = int((recording.rows["variant"] == "block3d").sum())
    assert said["joined"][0]["rows_left_out"] == gone


def test_rows_of_changed_kernels_are_refused_by_variant(recording):
    with open(recording.kernels / "block3d.cu", "a") as file:
        file.write("// another kernel\n")
    count = (recording.rows["variant"] == "block3d").sum()
    with pytest.raises(UserError, match=rf"variant: {count} rows of block3d .* would not fit"):
        recording.read()
    # Those that shall be measured anew need not fit, and somebody may vouch for the others.
    assert set(recording.read(({"variant": ["block3d"]},)).kept["variant"]) == {"linear"}
    predecessors = recording.kernels / "predecessors.yaml"
    vouch = "- {{commit: 7e57abc, variants: [{}], why: a comment}}\n"
    recording.write(recording.rows.assign(commit="7e57abcdef"))
    predecessors.write_text(vouch.format("linear"))
    with pytest.raises(UserError, match=r"rows of block3d .commits 7e57abc. would not fit"):
        recording.read()
    predecessors.write_text(vouch.format("linear, block3d"))
    assert len(recording.read().kept) == len(recording.rows)


def test_changed_host_code_is_refused_for_every_variant(recording):
    change_sessions(recording.kernels, "def change(session): pass")
    with pytest.raises(UserError, match="rows of block3d, linear"):
        recording.read()


def test_another_value_of_a_tunable_changes_no_kernel(recording):
    planted(recording.kernels, "spec.yaml", "values: [8, 64]", "values: [8, 16, 64]")
    assert len(recording.read().kept) == len(recording.rows)


def test_another_driver_or_gpu_is_refused_before_anything_is_measured(recording):
    labels = {"gpu": "cpu", "driver": "none", "toolkit": "none", "backend": "g++"}
    for name, other in (("driver", "580.1"), ("gpu", "h200")):
        said = f"{name}: recorded rows have {labels[name]}, this machine {other}"
        with pytest.raises(UserError, match=said):
            recording.read().check_labels({**labels, name: other}, recording.path)


def test_a_newer_tunable_is_neutral_in_older_rows(recording):
    spec = recording.spec
    tunables = {**spec.tunables, "later": spec.tunables["bx"].model_copy(update={"neutral": 0})}
    newer = spec.model_copy(update={"tunables": tunables})
    table = read_table(recording.path, measurement_schema(newer))
    assert set(table["later"]) == {0}
    assert [name for name in table if name in newer.tunable_columns] == newer.tunable_columns
    # A variant that has it now was measured without it.
    block3d = spec.variants["block3d"]
    having = block3d.model_copy(update={"tunables": [*block3d.tunables, "later"]})
    changed = newer.model_copy(update={"variants": {**spec.variants, "block3d": having}})
    with pytest.raises(UserError, match="later: is missing, but block3d has this tunable"):
        read_table(recording.path, measurement_schema(changed))
