"""Runs a rule's script in a fork of a process that has loaded its libraries already.

Loading pandas, scikit-learn and the libraries of boosted trees takes seconds, most stages take
tenths of a second. So the workflow's process starts one server (:class:`Server`). The server loads
a group of modules when the first script asks for that group (the first group before, if told to),
in a fork of the process that loaded the groups before it, and forks itself for every script. A
script asks with :func:`run`, hands its terminal and its job over, waits, and ends as its fork
ended. Scripts therefore import inside their functions: outside a fork they load nothing.

Without a server (another host, another Slurm job, a container, a script that runs alone)
:func:`run` calls the script's function in its own process. A fork ends when the script that asked
for it ends, a server when the process ends that started it.
"""

from __future__ import annotations

import contextlib
import gc
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
import traceback
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, NoReturn, cast

from launchwise.base.scripting import Job, run_job

VARIABLE = "LAUNCHWISE_SERVER"
"""Environment variable: number of the Slurm job that the server belongs to, ``:``, its folder."""
MESSAGE_LIMIT = 1 << 24
WAITING_FORKS = 512
SOCKET_PATH = 107
"""Most bytes of a socket's path (`man 7 unix`)."""
SENDING_S = 10.0
"""Time limit for a script to send its job."""


def run(main: Callable[..., None], group: str) -> None:
    """Run a rule's script as :func:`launchwise.base.scripting.run` does, in a fork of the server.

    Without a server, it runs in this process.

    Parameters
    ----------
    main
        Function of the script's own file, to which Snakemake gives ``snakemake`` as a global.
    group
        Group of modules that the script needs.

    Raises
    ------
    SystemExit
        When the script fails; its message was logged.
    """
    job = Job.of(main.__globals__["snakemake"])
    message = {
        "script": main.__globals__["__file__"],
        "function": main.__name__,
        "job": asdict(job),
        "folder": os.getcwd(),
        "environment": dict(os.environ),
    }
    connection = _connection(group)
    if connection is None:
        return run_job(main, job)
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
        Name of a group to the modules that it loads, libraries and our own, after those of the
        groups before it.
    at_once
        Whether it loads its first group before a script asks: for where most scripts need it.
    """

    def __init__(self, groups: Mapping[str, Sequence[str]], at_once: bool = False) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="launchwise-", dir=_short_folder(groups))
        listeners = []
        for name in groups:
            listener = socket.socket(socket.AF_UNIX)
            listener.bind(str(Path(self._folder.name, name)))
            listener.listen(WAITING_FORKS)
            listeners.append(listener)
        numbers = [listener.fileno() for listener in listeners]
        given = json.dumps(dict(zip(map(str, numbers), groups.values(), strict=True)))
        # OpenBLAS's threads look for work in a loop, and start anew after every fork. Models take
        # one core anyway.
        environment = {
            "OPENBLAS_NUM_THREADS": "1",
            **os.environ,
            "PYTHONPATH": os.pathsep.join(sys.path),
        }
        # Its input stays open as long as this process lives: that is how it knows.
        self._process = subprocess.Popen(
            [sys.executable, "-m", "launchwise.base.forking", given, *(["at_once"] * at_once)],
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


def _short_folder(groups: Iterable[str]) -> str | None:
    """Folder for sockets, whose paths are short: the usual one for temporary files if it fits."""
    longest = max(map(len, groups), default=0) + len("/launchwise-12345678/")
    fits = len(os.fsencode(tempfile.gettempdir())) + longest <= SOCKET_PATH
    return None if fits else "/tmp"


def serve(groups: Mapping[int, Sequence[str]], at_once: bool) -> None:
    """Serve until the input closes; a process per group, each a fork of the one before.

    Parameters
    ----------
    groups
        Number of a listening socket to the modules of its group; at least one.
    at_once
        See :class:`Server`.
    """
    # Ctrl-C reaches the whole foreground group: the scripts decide what becomes of their forks.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    waiting = [(socket.socket(fileno=number), modules) for number, modules in groups.items()]
    while at_once or _asked_for(waiting):
        (listener, modules), *waiting = waiting
        for name in modules:
            # The script that needs a library reports that it cannot be loaded.
            with contextlib.suppress(Exception):
                importlib.import_module(name)
        # What was loaded stays: no fork looks through it for garbage, which would copy its memory.
        gc.collect()
        gc.freeze()
        # A fork waits for scripts of the groups after this one: it has loaded this one's modules.
        if not waiting or os.fork():
            for other, _ in waiting:
                other.close()
            return _serve_group(listener)
        listener.close()
        at_once = False


def _asked_for(waiting: Sequence[tuple[socket.socket, Sequence[str]]]) -> bool:
    """Whether a script asks for any of the groups; otherwise the input has closed."""
    with selectors.DefaultSelector() as ready:
        for source in (sys.stdin, *(listener for listener, _ in waiting)):
            ready.register(source, selectors.EVENT_READ)
        return sys.stdin not in [key.fileobj for key, _ in ready.select()]


def _wait_for_forks() -> None:
    """Their core-seconds then count as this process's."""
    with contextlib.suppress(ChildProcessError):
        while True:
            os.wait()


def _serve_group(listener: socket.socket) -> None:
    ended, child_ended = socket.socketpair()
    child_ended.setblocking(False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(child_ended.fileno())
    forks: dict[socket.socket, int] = {}
    with selectors.DefaultSelector() as ready:
        for source in (sys.stdin, listener, ended):
            ready.register(source, selectors.EVENT_READ)
        while True:
            for key, _ in ready.select():
                if key.fileobj is sys.stdin:
                    return _wait_for_forks()
                if key.fileobj is ended:
                    ended.recv(4096)
                elif key.fileobj is listener:
                    connection, _ = listener.accept()
                    if pid := _fork(connection):
                        forks[connection] = pid
                        ready.register(connection, selectors.EVENT_READ)
                    else:
                        connection.close()
                elif (source := cast(socket.socket, key.fileobj)) in forks:
                    # The script has ended, with its fork's answer or before it.
                    with contextlib.suppress(ProcessLookupError):
                        os.killpg(forks[source], signal.SIGKILL)
            for connection in [each for each, pid in forks.items() if _has_ended(pid)]:
                forks.pop(connection)
                ready.unregister(connection)
                connection.close()


def _has_ended(pid: int) -> bool:
    return os.waitpid(pid, os.WNOHANG)[0] != 0


def _fork(connection: socket.socket) -> int | None:
    """Number of a fork that handles the script at the other end of ``connection``."""
    try:
        connection.settimeout(SENDING_S)
        message, terminal = _received(connection)
        connection.settimeout(None)
    except OSError:
        return None  # The script has ended meanwhile.
    pid = os.fork()
    if pid == 0:
        _handle(connection, message, terminal)
    for number in terminal:
        os.close(number)
    # Fork and server both do this, so that neither goes on before it is done.
    with contextlib.suppress(OSError):
        os.setpgid(pid, pid)
    return pid


def _received(connection: socket.socket) -> tuple[dict[str, Any], list[int]]:
    """The script's message, and its standard output and error."""
    _, terminal, _, _ = socket.recv_fds(connection, 1, 2)
    text = b""
    while not text.endswith(b"\n"):
        part = connection.recv(1 << 16)
        text += part
        if not part or len(text) > MESSAGE_LIMIT:
            for number in terminal:
                os.close(number)
            raise ConnectionError("the script sent no whole message")
    message: dict[str, Any] = json.loads(text)
    return message, terminal


def _handle(connection: socket.socket, message: Mapping[str, Any], terminal: list[int]) -> NoReturn:
    """Run one script and answer with its exit status."""
    status = 1
    try:
        os.setpgid(0, 0)
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        for number, own in zip(terminal, (1, 2), strict=True):
            os.dup2(number, own)
            os.close(number)
        # The name that top and ps show: the stage. Only Linux has it.
        with contextlib.suppress(OSError):
            Path("/proc/self/comm").write_text(Path(message["script"]).stem[:15])
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


def _run_here(message: Mapping[str, Any]) -> int:
    os.environ.clear()
    os.environ.update(message["environment"])
    os.chdir(message["folder"])
    try:
        main = getattr(_loaded(Path(message["script"])), message["function"])
        run_job(main, Job(**message["job"]))
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
    # Python 3.12 on warns of threads in a process that forks. Those here belong to OpenBLAS and
    # jemalloc, which stop and restart them around a fork.
    warnings.filterwarnings("ignore", r".*use of fork\(\) may lead", DeprecationWarning)
    given = {int(number): modules for number, modules in json.loads(sys.argv[1]).items()}
    serve(given, at_once="at_once" in sys.argv[2:])
