"""Problems shared among shards: each is measured by one of them, whoever is killed meanwhile."""

import itertools
import multiprocessing
import signal

import pytest
from supervising import Supervisor, expected_keys, names, row_lines, rows_of, until
from sweep_script import sweep_script

from launchwise.base.errors import UserError
from launchwise.measuring.journal import Journal
from launchwise.measuring.shard import Claims
from launchwise.measuring.sweep import measure_shard
from launchwise.tables.files import read_table
from launchwise.tables.measurements import measurement_schema

pytestmark = pytest.mark.usefixtures("forked_starts")

PROBLEMS = [{"n": n, "dtype": "float32", "order": 2} for n in range(20, 32)]


def take_all(folder, shard, shards, start, found):
    """Take problems as long as there are any."""
    claims = Claims(folder, shard, shards, PROBLEMS)
    start.wait()
    taken = list(iter(claims.take, None))
    found.put((shard, taken, claims.mine()))


def test_shards_that_take_at_once_never_take_the_same(tmp_path):
    context = multiprocessing.get_context("fork")
    for round_ in range(5):
        start, found = context.Barrier(4), context.Queue()
        workers = [
            context.Process(target=take_all, args=(tmp_path / str(round_), name, 4, start, found))
            for name in "1234"
        ]
        for worker in workers:
            worker.start()
        results = [found.get(timeout=30) for _ in workers]
        for worker in workers:
            worker.join()
        every = list(itertools.chain.from_iterable(taken for _, taken, _ in results))
        assert sorted(map(str, every)) == sorted(map(str, PROBLEMS))
        for _, taken, mine in results:
            assert taken == mine


def test_the_order_is_kept_and_a_claim_is_for_good(tmp_path):
    first, second = (Claims(tmp_path / "claims", name, 2, PROBLEMS) for name in "12")
    assert first.take() == PROBLEMS[0]
    assert second.take() == PROBLEMS[1]
    assert not second.claim(PROBLEMS[0])
    assert first.claim(PROBLEMS[7])
    again = Claims(tmp_path / "claims", "1", 2, PROBLEMS)
    assert again.mine() == [PROBLEMS[0], PROBLEMS[7]]
    assert again.free() == [each for n, each in enumerate(PROBLEMS) if n not in (0, 1, 7)]
    longer = Claims(tmp_path / "claims", "2", 2, [*PROBLEMS, {**PROBLEMS[0], "order": 8}])
    assert len(longer.free()) == len(again.free()) + 1


def test_a_place_without_claims_is_told(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="cannot be made"):
        Claims(tmp_path / "file" / "claims", "1", 2, PROBLEMS)
    claims = Claims(tmp_path / "claims", "1", 2, PROBLEMS)
    (tmp_path / "claims").rmdir()
    with pytest.raises(UserError, match="problems cannot be divided among shards"):
        claims.take()


def shared_sweep(shard, name, folder):
    """One of three shards of a sweep, in a process of its own."""

    def work():
        with Journal(folder / name, "print", shard.spec.key_columns) as journal:
            claims = Claims(folder / "claims", name, 3, list(shard.problems))
            measure_shard(shard.sharing(claims, journal.rows), journal)
        return 0

    return Supervisor(work, folder / f"said.{name}")


def test_a_killed_shard_goes_on_with_its_own(make_shard, tmp_path):
    shard, shards = make_shard(PROBLEMS), ["1", "2", "3"]
    running = {name: shared_sweep(shard, name, tmp_path) for name in shards}
    try:
        until(lambda: len(row_lines(tmp_path / "2")) > 5, "rows")
        running["2"].send(signal.SIGKILL)
        running["2"].wait()
        kept = row_lines(tmp_path / "2")
        assert [running[name].wait() for name in "13"] == [0, 0]
        missing = len(expected_keys(shard)) - sum(len(rows_of(tmp_path / name)) for name in shards)
        assert missing > 0
        running["2"] = shared_sweep(shard, "2", tmp_path)
        assert running["2"].wait() == 0
    finally:
        for supervisor in running.values():
            supervisor.end()
    assert row_lines(tmp_path / "2")[: len(kept)] == kept
    of_shards = [[names(row, shard) for row in rows_of(tmp_path / name)] for name in shards]
    assert all(of_shards)
    assert sorted(itertools.chain(*of_shards)) == expected_keys(shard)


def test_the_stage_shares_and_keeps_what_a_journal_has(make_shard, tmp_path):
    # The whole sweep by one shard first; then there are two, and the second one comes first.
    shard = make_shard(PROBLEMS[:3])
    (tmp_path / "journal").mkdir()

    def stage(name, shards):
        output = tmp_path / f"{name}.parquet"
        run = sweep_script(shard, tmp_path / "journal" / name, output, shards)
        supervisor = Supervisor(run, tmp_path / "said")
        try:
            assert supervisor.wait() == 0, (tmp_path / "journal" / name).with_suffix(".log")
        finally:
            supervisor.end()
        table = read_table(output, measurement_schema(shard.spec))
        return sorted(table[shard.spec.key_columns].itertuples(index=False, name=None))

    assert stage("2", 1) == expected_keys(shard)
    lines = row_lines(tmp_path / "journal" / "2")
    assert stage("2", 2) == expected_keys(shard)
    assert row_lines(tmp_path / "journal" / "2") == lines
    assert stage("1", 2) == []
    marks = list((tmp_path / "journal" / "claims").glob("*/*"))
    assert {str(mark.readlink()) for mark in marks} == {"2"}
    assert len(marks) == len(shard.problems)
