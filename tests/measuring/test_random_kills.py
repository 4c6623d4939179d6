"""Twenty kills at random moments of one sweep: nothing lost, nothing doubled, nobody left."""

import os
import random
import signal
import subprocess
import time

from measuring_forks import ForkedProcess
from supervising import (
    ending,
    finished,
    has_ended,
    names,
    row_lines,
    rows_of,
    supervise,
    until,
)

KILLS = 20
SEED = 20260101
ROW_BYTES = 600
"""A little less than a row of the journal takes."""


def start_cheaply():
    """Let the supervisor fork its measuring processes: a start takes 0.05 s, not half a second."""
    subprocess.Popen = ForkedProcess


def start_as_always():
    """Let the supervisor start the program."""


class Killer:
    """Kills a sweep's processes and looks at its journal each time."""

    def __init__(self, shard, path, row_s):
        self.random = random.Random(SEED)
        self.longest_life_s = 10 * row_s
        self.shard = shard
        self.path = path
        self.seen = set()
        self.shot = {"child": 0, "supervisor": 0, "both": 0}
        self.resigned = 0
        """Supervisors that gave up because too many processes in a row had died on them."""

    def start(self):
        """A supervisor; most of them start their measuring processes cheaply."""
        cheaply = self.random.random() < 0.85
        return supervise(self.shard, self.path, start_cheaply if cheaply else start_as_always)

    def lurk(self, supervisor):
        """Let a random time pass, or some rows and a little time, or the supervisor's life."""
        if self.random.random() < 0.5:
            wanted = self.size() + self.random.randint(1, 4) * ROW_BYTES
            until(lambda: self.size() >= wanted or has_ended(supervisor.pid, 0), "rows")
            has_ended(supervisor.pid, self.random.uniform(0, self.longest_life_s / 10))
        else:
            has_ended(supervisor.pid, self.random.uniform(0, self.longest_life_s))

    def size(self):
        """Bytes of the journal."""
        return self.path.stat().st_size if self.path.exists() else 0

    def shoot(self, supervisor):
        """Kill one of the two processes, or both."""
        whom = self.random.choice(list(self.shot))
        measuring = supervisor.child()
        if whom != "child":
            supervisor.send(signal.SIGKILL)
        if whom != "supervisor" and measuring is not None:
            try:
                os.kill(measuring, signal.SIGKILL)
            except ProcessLookupError:  # It was ready just then.
                return
        if whom != "child":
            supervisor.wait()
            assert measuring is None or has_ended(measuring, 10), "measures on alone"
        if whom == "supervisor" or measuring is not None:
            self.shot[whom] += 1

    def look(self):
        """What once was in the journal is in it still, and nothing is in it twice."""
        lines = row_lines(self.path)
        assert self.seen <= set(lines)
        self.seen.update(lines)
        named = [names(row, self.shard) for row in rows_of(self.path)]
        assert len(named) == len(set(named))


def test_twenty_random_kills(make_shard, tmp_path):
    shard = make_shard([{"n": n, "dtype": "float32", "order": 2} for n in range(20, 36)])
    calm, path = tmp_path / "calm", tmp_path / "j"
    began = time.monotonic()
    assert ending(shard, calm) == (0, "")
    killer = Killer(shard, path, (time.monotonic() - began) / len(row_lines(calm)))
    supervisor = killer.start()
    try:
        while sum(killer.shot.values()) < KILLS:
            killer.lurk(supervisor)
            killer.shoot(supervisor)
            killer.look()
            if has_ended(supervisor.pid, 0):
                code = supervisor.wait()
                assert code in (-signal.SIGKILL, 1), "the sweep was over before all the kills"
                if code == 1:
                    said = "sweep: cpu: cannot measure: the measuring process was killed by SIGKILL"
                    assert supervisor.said.read_text() == said
                    killer.resigned += 1
                supervisor = killer.start()
        done = len(killer.seen)
        assert supervisor.wait() in (0, 1)
    finally:
        supervisor.end()
    assert ending(shard, path) == (0, "")
    killer.look()
    rows = finished(shard, path)
    assert sorted(names(row, shard) for row in rows) == sorted(
        names(row, shard) for row in rows_of(calm)
    )
    # The row in hand is the one that a killed process is blamed for; all others are good.
    bad = [row for row in rows if row["status"] != "ok"]
    assert all(row["reason"] == "the measuring process was killed by SIGKILL" for row in bad)
    assert len(bad) <= killer.shot["child"]
    print(f"{killer.shot}: {done} of {len(rows)} rows before the last kill, {len(bad)} failed")
