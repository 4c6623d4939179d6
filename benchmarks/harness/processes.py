"""Runs a command and samples it, with every process below it, from Linux's ``/proc``.

The kernel's own account of a process tree is exact but says nothing of single processes once they
have ended. So :func:`run` takes the total from that account, and from samples what each process
took: its last sample lies up to :data:`INTERVAL_S` before its end, so their sum is a little less.
"""

from __future__ import annotations

import os
import select
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

INTERVAL_S = 0.02
MEMORY_INTERVAL_S = 0.5
"""Interval of the samples of memory: the kernel walks every page for one."""
TICKS_PER_S = os.sysconf("SC_CLK_TCK")
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


@dataclass
class Process:
    """A process of the tree, as its samples show it.

    Attributes
    ----------
    name
        Latest name: the program's, or one that the process gave itself (15 characters at most).
    command
        Latest command line, separated by spaces.
    started_s, ended_s
        Seconds since the machine's start; the end is between two samples.
    core_s
        User and system time at the last sample.
    resident_mb
        Largest resident memory of a sample with that command line, pages shared with other
        processes included.
    """

    pid: int
    parent: Process | None
    started_s: float
    name: str = ""
    command: str = ""
    core_s: float = 0.0
    resident_mb: float = 0.0
    ended_s: float = 0.0

    @property
    def wall_s(self) -> float:
        """Seconds from start to end."""
        return self.ended_s - self.started_s


@dataclass
class Usage:
    """Time and memory of a command.

    Attributes
    ----------
    status
        Exit status.
    core_s
        User and system time of the whole tree, by the kernel's account.
    peak_memory_mb
        Largest sum of proportional set sizes (PSS: a page shared by n processes counts 1/n in
        each), sampled every :data:`MEMORY_INTERVAL_S`.
    processes
        Every process that a sample met, in order of start; the first is the command itself.
    """

    status: int
    wall_s: float
    core_s: float
    peak_memory_mb: float
    processes: list[Process]


def run(
    command: Sequence[str], folder: Path, environment: Mapping[str, str], output: Path
) -> Usage:
    """Run a command to its end and sample it.

    Parameters
    ----------
    output
        File for what the command prints.
    """
    began = time.perf_counter()
    with open(output, "wb") as file:
        child = subprocess.Popen(
            command, cwd=folder, env=environment, stdout=file, stderr=subprocess.STDOUT
        )
    ended = os.pidfd_open(child.pid)
    tree = _Tree(child.pid)
    try:
        while not select.select([ended], [], [], INTERVAL_S)[0]:
            tree.sample()
        wall_s = time.perf_counter() - began
        # Not yet waited for, so its own times can still be read.
        tree.sample()
    finally:
        os.close(ended)
        _, status, account = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
    tree.end()
    return Usage(
        status=child.returncode,
        wall_s=wall_s,
        core_s=account.ru_utime + account.ru_stime,
        peak_memory_mb=tree.peak_memory_mb,
        processes=sorted(tree.seen, key=lambda process: process.started_s),
    )


@dataclass
class _Tree:
    """Processes below a process, alive and ended."""

    root: int
    peak_memory_mb: float = 0.0
    seen: list[Process] = field(default_factory=list)
    _alive: dict[int, Process] = field(default_factory=dict)
    _strangers: set[int] = field(default_factory=set)
    _sampled_s: float = 0.0
    _memory_sampled_s: float = 0.0

    def sample(self) -> None:
        """Take a sample of every process of the tree."""
        now = time.clock_gettime(time.CLOCK_BOOTTIME)
        present = {int(name) for name in os.listdir("/proc") if name.isdigit()}
        for pid in self._alive.keys() - present:
            self._end(pid, now)
        self._strangers &= present
        stats = {pid: _stat(pid) for pid in present - self._strangers}
        for pid, stat in stats.items():
            process = self._member(pid, stats)
            if process is None:
                self._strangers.add(pid)
            elif stat is not None:
                _update(process, stat)
                if stat.state == "Z":
                    process.ended_s = process.ended_s or (self._sampled_s + now) / 2
        self._sampled_s = now
        if now - self._memory_sampled_s >= MEMORY_INTERVAL_S:
            self._memory_sampled_s = now
            memory_mb = sum(map(_proportional_mb, self._alive))
            self.peak_memory_mb = max(self.peak_memory_mb, memory_mb)

    def end(self) -> None:
        """Note the end of whatever has not ended yet."""
        for pid in list(self._alive):
            self._end(pid, time.clock_gettime(time.CLOCK_BOOTTIME))

    def _end(self, pid: int, now: float) -> None:
        process = self._alive.pop(pid)
        process.ended_s = process.ended_s or (self._sampled_s + now) / 2

    def _member(self, pid: int, stats: Mapping[int, _Stat | None]) -> Process | None:
        """The process if it is of the tree, with its parents."""
        if pid in self._alive:
            return self._alive[pid]
        stat = stats.get(pid)
        if stat is None:
            return None
        parent = None if pid == self.root else self._member(stat.parent, stats)
        if parent is None and pid != self.root:
            return None
        process = Process(pid, parent, stat.started_s)
        self.seen.append(process)
        self._alive[pid] = process
        return process


@dataclass(frozen=True)
class _Stat:
    """Fields of ``/proc/PID/stat``."""

    name: str
    state: str
    parent: int
    core_s: float
    started_s: float
    resident_mb: float


def _stat(pid: int) -> _Stat | None:
    text = _read(pid, "stat")
    if not text:
        return None
    # The name stands in brackets and may hold any character.
    head, _, tail = text.rpartition(")")
    fields = tail.split()
    return _Stat(
        name=head.partition("(")[2],
        state=fields[0],
        parent=int(fields[1]),
        core_s=(int(fields[11]) + int(fields[12])) / TICKS_PER_S,
        started_s=int(fields[19]) / TICKS_PER_S,
        resident_mb=int(fields[21]) * PAGE_BYTES / 1e6,
    )


def _update(process: Process, stat: _Stat) -> None:
    command = _read(process.pid, "cmdline").replace("\0", " ").strip()
    # Empty once the process has ended.
    if command and command != process.command:
        # Until then the process had the memory of the one that started it.
        process.command, process.resident_mb = command, 0.0
    process.name = stat.name
    process.core_s = stat.core_s
    process.resident_mb = max(process.resident_mb, stat.resident_mb)


def _proportional_mb(pid: int) -> float:
    for line in _read(pid, "smaps_rollup").splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) * 1024 / 1e6
    return 0.0


def _read(pid: int, name: str) -> str:
    """A file of a process; empty if the process has ended or is another user's."""
    try:
        return Path(f"/proc/{pid}/{name}").read_text(errors="replace")
    except OSError:
        return ""
