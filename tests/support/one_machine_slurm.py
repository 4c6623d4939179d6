"""A real Slurm on one machine: munged, slurmctld and a slurmd for each node, with typed GPUs.

The GPUs are character devices that nobody reads. Needs root and Debian's packages munge,
slurm-client, slurmctld and slurmd; accounts need more (:mod:`slurm_accounting`). Only processes
that it started are ended, by their pids.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import signal
import socket
import stat
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from string import Template

from slurm_accounting import SlurmAccounting

CONFIGURATION = Path("/etc/slurm")
"""Not a folder of our own, named by SLURM_CONF: steps that Snakemake starts lose that variable."""

FILES = ("slurm.conf", "gres.conf", "slurmdbd.conf")
MARK = "# A test of launchwise made this file.\n"
PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "srun", "scontrol", "squeue", "sinfo")
HOST = "127.0.0.1"
NAME = socket.gethostname().partition(".")[0]


def unusable() -> str | None:
    """Why there can be no Slurm of our own on this machine; None when there can."""
    if os.geteuid() != 0:
        return "only root can start Slurm's daemons"
    if missing := [name for name in PROGRAMS if _program(name) is None]:
        return f"Slurm is not installed ({missing[0]} is missing)"
    for present in (CONFIGURATION / name for name in FILES):
        if present.exists() and not present.read_text().startswith(MARK):
            return f"this machine has a Slurm of its own ({present})"
    return None


def _program(name: str) -> str | None:
    return shutil.which(name, path=f"{os.environ['PATH']}:/usr/sbin:/sbin")


class OneMachineSlurm:
    """A cluster with one node per kind of GPU, and the node ``cpu`` without one.

    ``folder``: where its state, logs and sockets lie; short, because sockets have short names.
    ``gpus``: kinds of GPU, each a node and a type of Slurm's; how many the node has.
    ``features``: what a constraint may ask of each node.
    ``partitions``: partition to its nodes; ``cpu``, the default, is one more.
    ``accounts``: with accounts Slurm keeps them in a database, and refuses others; of a
        job that names none, the first one pays.
    """

    def __init__(
        self,
        folder: Path,
        gpus: dict[str, int],
        features: dict[str, str],
        partitions: dict[str, list[str]],
        accounts: Sequence[str] = (),
    ) -> None:
        self.folder = folder
        self.gpus = gpus
        self._features = features
        self._partitions = {"cpu": ["cpu"], **partitions}
        self._accounts = accounts
        # Of slurmctld, of each node, and of slurmdbd.
        self._ports = _free_ports(len(self.nodes) + 2)
        self._accounting = SlurmAccounting(folder)
        self._processes: dict[str, subprocess.Popen[bytes]] = {}

    def start(self) -> None:
        """Start everything and wait until all nodes take jobs."""
        for name in ("state", "devices", *(f"spool.{node}" for node in self.nodes)):
            (self.folder / name).mkdir(parents=True)
        key = self.folder / "munge.key"
        key.write_bytes(secrets.token_bytes(128))
        key.chmod(0o400)
        CONFIGURATION.mkdir(exist_ok=True)
        (CONFIGURATION / "slurm.conf").write_text(MARK + self._configuration())
        (CONFIGURATION / "gres.conf").write_text(MARK + self._gpus())
        self._run_munged(key)
        if self._accounts:
            self._start_accounting()
        self.start_controller()
        for node in self.nodes:
            self.start_node(node)
        _wait("nodes", lambda: self._idle() == len(self.nodes))

    def _start_accounting(self) -> None:
        self._accounting.make_database()
        path = CONFIGURATION / "slurmdbd.conf"
        path.touch(mode=0o600)
        path.write_text(MARK + self._filled("slurmdbd.conf"))
        self._run("mariadbd", *self._accounting.database())
        _wait("mariadbd", (self.folder / "sql").exists)
        self._run("slurmdbd", "slurmdbd", "-D", **self._accounting.environment)
        # Nothing else can be asked before the cluster is known.
        _wait("slurmdbd", lambda: "Cluster" in self.said("sacctmgr", "list", "cluster"))
        self._accounting.add(self.do, self._accounts)

    def _idle(self) -> int:
        # A node has a line for each of its partitions.
        lines = {*self.said("sinfo", "-h", "-N", "-o", "%N %T").splitlines()}
        return sum(line.endswith(" idle") for line in lines)

    def stop(self) -> None:
        """End what was started, jobs first."""
        try:
            self._cancel_all()
        finally:
            for name in reversed(list(self._processes)):
                self._end(name, signal.SIGTERM)
            for name in FILES:
                (CONFIGURATION / name).unlink(missing_ok=True)

    def _cancel_all(self) -> None:
        controller = self._processes.get("slurmctld")
        if controller is None or controller.poll() is not None:
            return
        for number in ("TERM", "KILL"):
            subprocess.run(
                ["scancel", f"--signal={number}", "--full", "--user=root"],
                capture_output=True,
                check=False,
            )
            subprocess.run(["scancel", "--user=root"], capture_output=True, check=False)
            with contextlib.suppress(TimeoutError):
                _wait("jobs to end", lambda: not self.said("squeue", "-h", "-o", "%A"), 20)
                return

    @property
    def nodes(self) -> list[str]:
        """Names of the nodes."""
        return ["cpu", *self.gpus]

    def start_controller(self) -> None:
        """Start slurmctld, again after :meth:`kill_controller`."""
        self._run("slurmctld", "slurmctld", "-D")
        _wait("slurmctld", lambda: "UP" in self.said("scontrol", "ping"))

    def kill_controller(self) -> None:
        """SIGKILL for slurmctld: for a while nobody answers."""
        self._end("slurmctld", signal.SIGKILL)

    def reserve(self, name: str, node: str) -> None:
        """Reserve a node: only jobs that name the reservation run there."""
        entry = (f"ReservationName={name}", f"Nodes={node}", "Users=root", "Flags=IGNORE_JOBS")
        self.do("scontrol", "create", "reservation", *entry, "StartTime=now", "Duration=120")

    def start_node(self, node: str) -> None:
        """Start a node's slurmd, again after :meth:`crash_node`."""
        self._run(f"slurmd.{node}", "slurmd", "-D", "-N", node)

    def crash_node(self, node: str) -> None:
        """SIGKILL for a node's slurmd and for all that runs on it, as when its power fails."""
        jobs = self.said("squeue", "-h", "-w", node, "-t", "RUNNING", "-o", "%A").split()
        self._end(f"slurmd.{node}", signal.SIGKILL)
        steps = [f"slurmstepd: [{job}." for job in jobs]
        for process in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                line = (process / "cmdline").read_text()
                on_it = f"SLURMD_NODENAME={node}\0" in (process / "environ").read_text()
                if on_it or line.startswith(tuple(steps)):
                    os.kill(int(process.name), signal.SIGKILL)

    def said(self, *command: str) -> str:
        """What one of Slurm's commands prints; empty when it fails."""
        self._insist_on_the_controller()
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
        return done.stdout.strip() if done.returncode == 0 else ""

    def _insist_on_the_controller(self) -> None:
        controller = self._processes.get("slurmctld")
        if controller is not None and controller.poll() is not None:
            raise AssertionError(f"slurmctld itself ended (code {controller.returncode})")

    def do(self, *command: str) -> None:
        """Run one of Slurm's commands, which must succeed."""
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
        assert done.returncode == 0, f"{' '.join(command)}: {done.stderr or done.stdout}"

    def _run_munged(self, key: Path) -> None:
        self._run(
            "munged",
            "munged",
            "--foreground",
            "--force",
            f"--key-file={key}",
            f"--socket={self._socket}",
            f"--pid-file={self.folder / 'munged.pid'}",
            f"--seed-file={self.folder / 'munged.seed'}",
            f"--log-file={self.folder / 'munged.log'}",
        )
        _wait("munged", self._socket.exists)

    @property
    def _socket(self) -> Path:
        return self.folder / "munge.socket"

    def _run(self, name: str, program: str, *arguments: str, **variables: str) -> None:
        path = _program(program)
        assert path is not None, program
        with (self.folder / f"{name}.out").open("ab") as output:
            self._processes[name] = subprocess.Popen(
                [path, *arguments],
                # Where a daemon that dies leaves its core.
                cwd=self.folder,
                env={**os.environ, **variables},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                # Signals to the tests' own group are none of its business.
                start_new_session=True,
            )

    def _end(self, name: str, number: int) -> None:
        process = self._processes.pop(name)
        process.send_signal(number)
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(10)

    def _configuration(self) -> str:
        text = self._filled("slurm.conf")
        if self._accounts:
            text += self._filled("accounting.conf")
        lines = [] if self._accounts else ["AccountingStorageType=accounting_storage/none"]
        for node, port in zip(self.nodes, self._ports[1:-1], strict=True):
            gpu = f" Gres=gpu:{node}:{self.gpus[node]}" if node in self.gpus else ""
            feature = f" Feature={self._features[node]}" if node in self._features else ""
            address = f"NodeHostname={NAME} NodeAddr={HOST} Port={port}"
            lines.append(f"NodeName={node} {address} CPUs=8 RealMemory=64000{gpu}{feature}")
        for name, nodes in self._partitions.items():
            default = " Default=YES" if name == "cpu" else ""
            listed = f"PartitionName={name} Nodes={','.join(nodes)}"
            lines.append(f"{listed} MaxTime=120 State=UP{default}")
        return text + "\n".join(lines) + "\n"

    def _filled(self, name: str) -> str:
        """A file of configuration with the places and ports of this cluster."""
        text = Path(__file__).with_name("slurm").joinpath(name).read_text(encoding="utf-8")
        return Template(text).substitute(
            name=NAME,
            host=HOST,
            port=self._ports[0],
            accounting_port=self._ports[-1],
            folder=self.folder,
            munge=self._socket,
        )

    def _gpus(self) -> str:
        lines = ["AutoDetect=off"]
        for node, count in self.gpus.items():
            for number in range(count):
                device = self.folder / "devices" / f"{node}-{number}"
                # As /dev/null: Slurm insists on a character device.
                os.mknod(device, 0o666 | stat.S_IFCHR, os.makedev(1, 3))
                kind = f"NodeName={node} Name=gpu Type={node} Flags=nvidia_gpu_env"
                lines.append(f"{kind} File={device}")
        return "\n".join(lines) + "\n"


def _free_ports(count: int) -> list[int]:
    sockets = [socket.socket() for _ in range(count)]
    for each in sockets:
        each.bind((HOST, 0))
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


def _wait(what: str, ready: Callable[[], bool], seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not ready():
        if time.monotonic() > deadline:
            raise TimeoutError(f"waited {seconds:g} s for {what}")
        time.sleep(0.1)
