"""Sends a measuring process its job, kernels as they are compiled, and tasks."""

from __future__ import annotations

import contextlib
import json
import queue
import threading
from collections.abc import Mapping
from typing import IO, Any

from launchwise.base.errors import UserError
from launchwise.experiment.confirmation import peer_of
from launchwise.measuring.shard import Shard
from launchwise.workloads.loading import load_workload
from launchwise.workloads.workload import builds_in_order

GRACE_S = 1.0
"""Time for the thread to end after its process, s; a request to stop does not wait for nvcc."""


class Unfed(RuntimeError):
    """Kernels of a task are in no part: a fault of the program, which would wait for ever."""


class Feeder(threading.Thread):
    """Thread that sends a measuring process its job, then kernels and tasks as they are ready.

    Compiling and measuring overlap: a problem is sent as soon as its kernels are there.
    """

    def __init__(
        self,
        shard: Shard,
        tasks: list[dict[str, Any]],
        control: dict[str, Any] | None,
        pipe: IO[bytes],
    ) -> None:
        super().__init__(daemon=True)
        self._control = control
        self._shard = shard
        self._tasks = tasks
        self._pipe = pipe
        self._error: BaseException | None = None
        self._later: queue.SimpleQueue[list[dict[str, Any]]] = queue.SimpleQueue()
        self.given = len(tasks)
        """Tasks that this feeder was given."""
        self.sent = 0
        """Tasks that the process was given."""

    def run(self) -> None:
        """Send until all tasks are sent or the process has ended."""
        # A child that dies at once closes the pipe; its exit code says more than this would.
        try:
            with contextlib.suppress(BrokenPipeError), self._pipe:
                self._feed()
        except Exception as error:
            self._error = error

    def more(self, tasks: list[dict[str, Any]]) -> None:
        """Further tasks for the same kernels; none ends the process once it has done the others."""
        self.given += len(tasks)
        self._later.put(tasks)

    def end(self) -> None:
        """Raise what stopped the thread, such as kernels that cannot be compiled.

        A thread that still waits for nvcc is left running; it ends at its next write.
        """
        self.more([])
        self.join(GRACE_S)
        if isinstance(self._error, UserError | Unfed):
            raise self._error
        if self._error is not None:
            raise RuntimeError("cannot write to the measuring process") from self._error

    def _send(self, message: Mapping[str, Any]) -> None:
        self._pipe.write(json.dumps(message).encode() + b"\n")
        self._pipe.flush()

    def _feed(self) -> None:
        shard = self._shard
        how = {"folder": str(shard.folder), "method": shard.method.model_dump(mode="json")}
        self._send({**how, "seed": shard.seed, "control": self._control, **shard.job})
        waiting = list(self._tasks)
        needed: dict[int, set[str]] | None = None
        for part in shard.parts.ready():
            self._send({"bundle": str(part.path)})
            if part.keys is None:
                ready, waiting = waiting, []
            else:
                if needed is None:
                    needed = self._needed(waiting)
                for keys in needed.values():
                    keys -= part.keys
                ready = [task for task in waiting if not needed[id(task)]]
                waiting = [task for task in waiting if needed[id(task)]]
            self._send_tasks(ready)
        if waiting:
            problem = waiting[0]["problem"]
            raise Unfed(f"no kernels were compiled for {len(waiting)} tasks: {problem}, ...")
        while tasks := self._later.get():
            self._send_tasks(tasks)

    def _send_tasks(self, tasks: list[dict[str, Any]]) -> None:
        for task in tasks:
            self.sent += 1
            self._send({"task": task})

    def _needed(self, tasks: list[dict[str, Any]]) -> dict[int, set[str]]:
        """Builds that each task waits for, by the task's identity."""
        workload = load_workload(self._shard.folder, self._shard.spec)
        control = self._control
        always: set[str] = set()
        if control is not None and control["known"]:
            names = control["problem"], control["configuration"]
            always = {build.key for build in workload.check_builds(names[0])}
            always.add(workload.build(*names).key)
        every: set[str] = set()
        if any(task.get("explore") for task in tasks):
            every = {build.key for build in builds_in_order(workload, self._shard.problems)}
        return {
            # What an explorer will propose is not known: it waits for all.
            id(task): every
            if task.get("explore")
            else always
            | {build.key for build in workload.check_builds(task["problem"])}
            | {
                workload.build(task["problem"], configuration).key
                for configuration in {
                    workload.spec.build_choice(each): each
                    for each in task["configurations"]
                    if peer_of(each) is None
                }.values()
            }
            for task in tasks
        }
