"""Locks on problems: each is measured by the shard that takes it first.

How long a problem takes is known once it was measured. Shares dealt out beforehand, by bytes and
FLOP, would have kept four cards busy for 73 to 95 % of the time and eight for 57 to 82 % (reckoned
from the journals of four sweeps); taken one by one, the heaviest first, none waits longer than one
problem takes (Graham 1969).
"""

from __future__ import annotations

import os
from pathlib import Path

from launchwise.base.errors import UserError
from launchwise.base.storage import digest
from launchwise.workloads.space import Problem


class Claims:
    """A folder with a mark for each problem that a shard has taken, for good.

    A mark is a symbolic link to the shard's name. A file system makes one at once or not at all,
    over NFS too, so no two shards take the same problem, and none is half taken by a shard that was
    killed.

    Parameters
    ----------
    folder
        Belongs to one sweep: the same kernels, method and number of shards.
    shard, shards
        Whose claims these are, and how many take part.
    problems
        All of the sweep, in the order in which they are taken.

    Raises
    ------
    UserError
        When marks cannot be made there.
    """

    def __init__(self, folder: Path, shard: str, shards: int, problems: list[Problem]) -> None:
        self.shards = shards
        self._folder = folder
        self._shard = shard
        self._problems = problems
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UserError(folder, "", f"cannot be made: {error.strerror}") from error

    def _mark(self, problem: Problem) -> Path:
        return self._folder / digest(problem)

    def mine(self) -> list[Problem]:
        """Problems that this shard has taken, now or in an earlier visit."""
        return [problem for problem in self._problems if self._owner(problem) == self._shard]

    def free(self) -> list[Problem]:
        """Problems that no shard has taken yet."""
        return [problem for problem in self._problems if self._owner(problem) is None]

    def _owner(self, problem: Problem) -> str | None:
        try:
            return os.readlink(self._mark(problem))
        except FileNotFoundError:
            return None

    def claim(self, problem: Problem) -> bool:
        """Take a problem; False when a shard, this one or another, has it already."""
        try:
            os.symlink(self._shard, self._mark(problem))
        except FileExistsError:
            return False
        except OSError as error:
            message = f"problems cannot be divided among shards: {error.strerror}"
            raise UserError(self._folder, "", message) from error
        return True

    def take(self) -> Problem | None:
        """The first problem that is free, from now on this shard's; None when there is none."""
        return next((problem for problem in self._problems if self.claim(problem)), None)
