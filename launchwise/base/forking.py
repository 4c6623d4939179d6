"""Runs a rule's script in a fork of a process that has loaded its libraries already.

Loading pandas, scikit-learn and the libraries of boosted trees takes seconds, most stages take
tenths of a second. So the workflow's process starts one server (:class:`Server`). The server loads
a group of modules when the first script asks for that group, and forks itself for every script. A
script asks with :func:`run`, hands its terminal and its arguments over, waits, and ends as its fork
ended. Scripts therefore import inside their functions: outside a fork they load nothing.

Without a server (another host, another Slurm job, a container, a script that runs alone)
:func:`run` calls the script's function in its own process. A fork ends when the script that asked
for it ends, a server when the process ends that started it.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import json
import os
import selectors
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import traceback
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from launchwise.base.scripting import running

VARIABLE = "LAUNCHWISE_SERVER"
"""Environment variable: number of the Slurm job that the server belongs to, ``:``, its folder."""
MESSAGE_LIMIT = 1 << 24
WAITING_FORKS = 512


def run(main: Callable[..., None], snakemake: Any, group: str, **arguments: Any) -> None:
    """Run a rule's script: call ``main(**arguments)`` in a fork of the server, or here.

    Parameters
    ----------
    main
        Function of the script's own file.
    snakemake
        What Snakemake gives the script.
    group
        Group of modules that the script needs.
    **arguments
        JSON-able.

    Raises
    ------
    SystemExit
        When the script fails; its message was logged.
    """
    message = {
        "script": main.__globals__["__file__"],
        "function": main.__name__,
        "arguments": arguments,
        "log": str(snakemake.log[0]) if snakemake.log else None,
        "folder": os.getcwd(),
        "environment": dict(os.environ),
    }
    connection = _connection(group)
    if connection is None:
        with running(snakemake):
            main(**arguments)
        return
    with connection:
        status = _asked(connection, message)
    if status:
        raise SystemExit(status)


def _connection(group: str) -> socket.socket | None:
    """Connection to the server of this machine and Slurm job, None if there is none."""
    job, _, folder = os.environ.get(VARIABLE, "").partition(":")
    if not folder or job != os.environ.get("SLURM_JOB_ID", ""):
        return None
    connection = socket.socket(socket.AF_UNIX)
    try:
        connection.connect(str(Path(folder, group)))
    except OSError:
        connection.close()
        return None
    return connection


def _asked(connection: socket.socket, message: Mapping[str, Any]) -> int:
    """Exit status of the fork that handled ``message``."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    socket.send_fds(connection, [b"f"], [1, 2])
    try:
        connection.sendall(json.dumps(message).encode() + b"\n")
        answer = connection.recv(16)
    except BaseException:
        # The fork ends when it sees this end closed; its output must not change after that.
        with contextlib.suppress(OSError):
            connection.shutdown(socket.SHUT_WR)
            connection.settimeout(10)
            connection.recv(16)
        raise
    if not answer:
        print("launchwise: the job was killed, perhaps for lack of memory", file=sys.stderr)
        return 1
    return int(answer)


class Server:
    """A process that forks itself for scripts.

    Parameters
    ----------
    groups
        Name of a group to the modules that it loads, libraries and our own.
    """

    def __init__(self, groups: Mapping[str, Sequence[str]]) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="launchwise-")
        listeners = []
        for name in groups:
            listener = socket.socket(socket.AF_UNIX)
            listener.bind(str(Path(self._folder.name, name)))
            listener.listen(WAITING_FORKS)
            listeners.append(listener)
        numbers = [listener.fileno() for listener in listeners]
        given = json.dumps(dict(zip(map(str, numbers), groups.values(), strict=True)))
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        # Its input stays open as long as this process lives: that is how it knows.
        self._process = subprocess.Popen(
            [sys.executable, "-m", "launchwise.base.forking", given],
            stdin=subprocess.PIPE,
            pass_fds=numbers,
            env=environment,
        )
        for listener in listeners:
            listener.close()
        os.environ[VARIABLE] = f"{os.environ.get('SLURM_JOB_ID', '')}:{self._folder.name}"

    def stop(self) -> None:
        """End the server."""
        os.environ.pop(VARIABLE, None)
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()
        self._folder.cleanup()


def serve(groups: Mapping[int, Sequence[str]]) -> None:
    """Serve until the input closes; a process per group, started with the group's first script.

    Parameters
    ----------
    groups
        Number of a listening socket to the modules of its group.
    """
    # Ctrl-C reaches the whole foreground group: the scripts decide what becomes of their forks.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGCHLD, _reap)
    waiting = {number: socket.socket(fileno=number) for number in groups}
    with selectors.DefaultSelector() as ready:
        ready.register(sys.stdin, selectors.EVENT_READ)
        for listener in waiting.values():
            ready.register(listener, selectors.EVENT_READ)
        while waiting:
            found = [key.fileobj for key, _ in ready.select()]
            if sys.stdin in found:
                break
            for number in [each for each, listener in waiting.items() if listener in found]:
                if os.fork() == 0:
                    ready.close()
                    _serve_group(waiting[number], groups[number])
                    os._exit(0)
                ready.unregister(waiting[number])
                waiting.pop(number).close()
    sys.stdin.read()
    _wait_for_forks()


def _reap(*_: object) -> None:
    """Take note of forks that have ended: their core-seconds then count as this process's."""
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def _wait_for_forks() -> None:
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    with contextlib.suppress(ChildProcessError):
        while True:
            os.wait()


def _serve_group(listener: socket.socket, modules: Sequence[str]) -> None:
    for name in modules:
        importlib.import_module(name)
    listener.settimeout(None)
    with selectors.DefaultSelector() as ready:
        ready.register(sys.stdin, selectors.EVENT_READ)
        ready.register(listener, selectors.EVENT_READ)
        while True:
            found = [key.fileobj for key, _ in ready.select()]
            if sys.stdin in found:
                return _wait_for_forks()
            connection, _ = listener.accept()
            if os.fork() == 0:
                ready.close()
                listener.close()
                _handle(connection)
            connection.close()


def _handle(connection: socket.socket) -> None:
    """Run one script and answer with its exit status; never returns."""
    status = 1
    try:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.setpgid(0, 0)
        message = _received(connection)
        # The name that top and ps show: the stage.
        Path("/proc/self/comm").write_text(Path(message["script"]).stem[:15])
        threading.Thread(target=_end_with, args=(connection,), daemon=True).start()
        status = _run_here(message)
    except BaseException:
        traceback.print_exc()
    finally:
        with contextlib.suppress(OSError):
            sys.stdout.flush()
            sys.stderr.flush()
        with contextlib.suppress(OSError):
            connection.sendall(str(status).encode())
        os._exit(status)


def _received(connection: socket.socket) -> dict[str, Any]:
    _, numbers, _, _ = socket.recv_fds(connection, 1, 2)
    for number, own in zip(numbers, (1, 2), strict=True):
        os.dup2(number, own)
        os.close(number)
    text = b""
    while not text.endswith(b"\n"):
        part = connection.recv(1 << 16)
        text += part
        if not part or len(text) > MESSAGE_LIMIT:
            raise ConnectionError("the script that asked for this fork has ended")
    message: dict[str, Any] = json.loads(text)
    return message


def _end_with(connection: socket.socket) -> None:
    """End this fork, and processes that it started, when the script that asked for it ends."""
    with contextlib.suppress(OSError):
        connection.recv(1)
    os.killpg(0, signal.SIGKILL)


def _run_here(message: Mapping[str, Any]) -> int:
    os.environ.clear()
    os.environ.update(message["environment"])
    os.chdir(message["folder"])
    try:
        main = getattr(_loaded(Path(message["script"])), message["function"])
        with running(SimpleNamespace(log=[message["log"]] if message["log"] else [])):
            main(**message["arguments"])
    except SystemExit as error:
        return error.code if isinstance(error.code, int) else 1
    except Exception:  # Its traceback was logged.
        return 1
    return 0


def _loaded(path: Path) -> Any:
    """The script as a module, without what it does when it runs alone."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


if __name__ == "__main__":
    serve({int(number): modules for number, modules in json.loads(sys.argv[1]).items()})
