"""Twenty kills at random moments of one sweep: nothing lost, nothing doubled, nobody left."""

from __future__ import annotations

import os
import random
import signal
import time

from supervising import ending, finished, has_ended, names, row_lines, rows_of, supervise

KILLS = 20


def kill(supervisor, whom):
    """Kill the supervisor, its measuring process, or both; whether there was one to kill."""
    measuring = supervisor.child()
    if whom != "child":
        supervisor.send(signal.SIGKILL)
    if whom != "supervisor" and measuring is not None:
        try:
            os.kill(measuring, signal.SIGKILL)
        except ProcessLookupError:  # It was ready just then.
            return False
    if whom != "child":
        supervisor.wait()
        assert measuring is None or has_ended(measuring, 10), "measures on alone"
    return whom == "supervisor" or measuring is not None


def test_twenty_random_kills(make_shard, tmp_path, forked_starts):
    shard = make_shard([{"n": n, "dtype": "float32", "order": 2} for n in range(20, 36)])
    calm, path = tmp_path / "calm", tmp_path / "j"
    began = time.monotonic()
    assert ending(shard, calm) == (0, "")
    longest_life_s = 10 * (time.monotonic() - began) / len(row_lines(calm))
    dice, killed, seen = random.Random(20260101), [], set()
    supervisor = supervise(shard, path)
    try:
        while len(killed) < KILLS:
            has_ended(supervisor.pid, dice.uniform(0, longest_life_s))
            whom = dice.choice(["child", "supervisor", "both"])
            if kill(supervisor, whom):
                killed.append(whom)
            # What once was in the journal is in it still, and nothing is in it twice.
            lines = row_lines(path)
            assert seen <= set(lines)
            seen.update(lines)
            named = [names(row, shard) for row in rows_of(path)]
            assert len(named) == len(set(named))
            if has_ended(supervisor.pid, 0):
                code = supervisor.wait()
                assert code in (-signal.SIGKILL, 1), "the sweep was over before all the kills"
                if code == 1:
                    # Too many processes in a row had died on it.
                    said = "sweep: cpu: cannot measure: the measuring process was killed by SIGKILL"
                    assert supervisor.said.read_text() == said
                supervisor = supervise(shard, path)
        assert supervisor.wait() in (0, 1)
    finally:
        supervisor.end()
    assert ending(shard, path) == (0, "")
    assert seen <= set(row_lines(path))
    rows = finished(shard, path)
    assert len(rows) == len(rows_of(calm))
    # The row in hand is the one that a killed process is blamed for; all others are good.
    bad = [row for row in rows if row["status"] != "ok"]
    assert all(row["reason"] == "the measuring process was killed by SIGKILL" for row in bad)
    assert len(bad) <= killed.count("child")
