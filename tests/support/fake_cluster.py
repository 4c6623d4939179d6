"""A project whose GPUs are made-up cards on the nodes of a cluster, and how it is run."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
from forks import Fork, load_libraries, run_snakemake
from samples import ROOT, Project, copy_project

from launchwise.measuring.journal import read_journal

FAKES = ROOT / "tests" / "support" / "fake_cards"
RUNTIME = ROOT / "tests" / "support" / "container_runtime"  # Folder of a stand-in for Apptainer
NODES = {"a100": 4, "h200": 2, "t4": 1}  # Cards of each node

FEATURES = {"a100": "ampere", "h200": "hopper", "t4": "turing"}
PARTITIONS = {"short": ["a100", "t4"], "long": ["a100", "h200"], "all": ["t4", "a100", "h200"]}
"""Each mixes kinds of card: a job whose request says too little gets another kind."""

ARCHS = {"a100": "sm_80", "h200": "sm_90", "t4": "sm_75"}
PAUSES_S = {"a100": 0.3, "h200": 0.3, "t4": 0.35}
"""What a timing takes in truth: sweeps must last until somebody kills them."""

SPACE = {
    "variant": ["linear", "block3d"],
    "row_padding": [0],
    "bx": [8, 16, 32, 64, 128],
    "by": [1, 2, 4],
    "bz": [1, 2],
}
ROWS_PER_SWEEP = 88  # Four sizes; block3d in 21 shapes and the untiled variant for each

# Nothing that depends on the order of rows or on the time of day: all tables must be equal.
METHOD: dict[str, Any] = {
    "repeats": {"near": 1e6},
    "slow_factor": 1e9,
    "graph_below_us": 0,
    "control_s": 0,
    "energy_ms": 0,
    "rest": False,
}
VOLATILE = ("measured_at", "card")
"""What two runs need not agree in: the time, and which of several equal cards was free."""


CARD: dict[str, Any] = {
    **{"index": 0, "uuid": "GPU-h200-0", "name": "Made-up h200", "arch": "sm_90", "sms": 8},
    **{"rate": 2.5, "pause_s": 0.0},
}
"""A card of a machine that has one."""


def of_cards(cards: Path, cache: Path) -> dict[str, str]:
    """Variables of a machine with made-up cards, listed in a file, and a cache of its kernels."""
    return {
        **os.environ,
        "PYTHONPATH": f"{FAKES}:{ROOT}",
        "PATH": f"{FAKES / 'bin'}:{os.environ['PATH']}",
        "FAKE_CARDS": str(cards),
        "FAKE_CACHE": str(cache),
    }


RESERVATION = "lab"  # Of the node of the H200

ACCOUNTS = ("biology", "physics")
"""Those that the user of the tests has, where Slurm keeps accounts."""

MODULE = "cuda/13.0"  # It brings nvcc: see `fake_cards/modules`

ON_A100 = {
    "partition": "short,long",
    "gres": "gpu:a100",
    "account": "physics",
    "qos": "high",
    "extra": ["--exclude=t4", "--nice=1"],
}
ON_H200 = {"partition": "long", "constraint": "hopper", "reservation": RESERVATION}
SLICE = {"partition": "all", "gres": "gpu:h200", "reservation": RESERVATION}
ON_T4 = {"partition": "short", "gres": "gpu:t4"}


def _gpu(node: str, slurm: dict[str, Any], **more: Any) -> dict[str, Any]:
    slurm = {**slurm, "modules": [MODULE]}
    return {"source": "live", "arch": ARCHS[node], "slurm": slurm, **more}


def run_watchful_snakemake(arguments: list[str]) -> None:
    """Snakemake's command line, whose plugin asks Slurm every second. The plugin would wait ten
    seconds longer after each time that no job had ended."""
    from snakemake_interface_executor_plugins.executors.remote import RemoteExecutor

    RemoteExecutor.next_seconds_between_status_checks = property(lambda _: 1, lambda *_: None)
    run_snakemake(arguments)


@dataclass(frozen=True)
class ClusterProject:
    """A copy of the project with one block of GPUs, two of them of one card."""

    project: Project
    cards: Path
    cache: Path

    @classmethod
    def make(cls, folder: Path, cache: Path, haste: bool = False) -> ClusterProject:
        """Copy the project into ``folder``; compiled kernels are kept in ``cache``. In haste,
        timings take no longer than a CPU needs for them."""
        project = copy_project(folder / "project")
        config = project.config()
        config["gpus"] = {
            "a100": _gpu("a100", ON_A100, shards=2),
            "h200": _gpu("h200", ON_H200),
            "h200.sm4": _gpu("h200", SLICE, slice_sms=4),
            "t4": _gpu("t4", ON_T4),
        }
        block = {"n": [20, 21, 24, 28], "dtype": ["float32"], "order": [2], "only": SPACE}
        config["sweeps"] = {"stencil": {**METHOD, "problems": [block]}}
        config["models"] = {"knn": config["models"]["knn"]}
        config["search"] = {"trials": 1, "folds": 2}
        sizes = {"train": {"n": [20, 24]}, "test": {"n": [21, 28]}}
        splits = {
            "sizes": {"kind": "problems", "title": "sizes", **sizes},
            "transfer": {"kind": "leave_one_gpu_out", "title": "GPUs"},
        }
        project.ask({**project.study(), "models": ["knn"], "splits": splits})
        project.configure(config)
        cards = folder / "cards.json"
        cards.write_text(json.dumps({"cpu": [], **{node: _cards(node, haste) for node in NODES}}))
        return cls(project, cards, cache)

    def hasten(self, node: str) -> None:
        """Let the next measuring processes of a node take no longer than a CPU needs."""
        cards = {**json.loads(self.cards.read_text()), node: _cards(node, haste=True)}
        written = self.cards.with_suffix(".new")
        written.write_text(json.dumps(cards))
        # In one step: a process may be reading it.
        written.replace(self.cards)

    def keep_gpu(self, name: str) -> None:
        """One GPU alone: its study holds sizes out, and no GPU."""
        config, study = self.project.config(), self.project.study()
        self.project.configure({**config, "gpus": {name: config["gpus"][name]}})
        self.project.ask({**study, "splits": {"sizes": study["splits"]["sizes"]}})

    @property
    def results(self) -> Path:
        """Folder of what was made."""
        return self.project.folder / "results"

    @property
    def environment(self) -> dict[str, str]:
        """Variables of a process that has made-up cards."""
        return {
            **os.environ,
            "PYTHONPATH": f"{FAKES}:{self.project.folder}",
            # Without nvcc, as many login nodes: the module brings it.
            "MODULESHOME": str(FAKES / "modules"),
            "FAKE_CARDS": str(self.cards),
            "FAKE_CACHE": str(self.cache),
        }

    @contextmanager
    def start(self, *arguments: str, **variables: str) -> Iterator[Run]:
        """Snakemake in the background; it ends with the block at the latest."""
        load_libraries()
        output = self.project.folder / "said.txt"
        with output.open("wb") as stream:
            process = Fork(
                run_watchful_snakemake,
                [*arguments],
                self.project.folder,
                {**self.environment, **variables},
                stream,
                stream,
                session=True,
            )
        try:
            yield Run(process, output)
        finally:
            if process.poll() is None:
                # As Ctrl-C: it cancels its jobs.
                process.send_signal(signal.SIGINT)
                try:
                    process.wait(30)
                except subprocess.TimeoutExpired:
                    process.kill()

    def run(self, *words: str, fails: bool = False, seconds: float = 300) -> str:
        """What Snakemake says, on two cores, until it ends well, or badly where it shall."""
        with self.start("--cores", "2", *words) as run:
            assert (run.wait(seconds) != 0) == fails, run.said()[-3000:]
            return run.said()

    def end_orphans(self) -> None:
        """SIGKILL for every process that still works in the project: jobs that Slurm lost."""
        for process in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                if (process / "cwd").resolve().is_relative_to(self.project.folder):
                    os.kill(int(process.name), signal.SIGKILL)

    def rows(self, gpu: str) -> int:
        """Rows that the journals of a sweep hold by now."""
        journals = (self.results / "journal" / gpu / "stencil").glob("*.jsonl")
        return sum(len(read_journal(path)[1]) for path in journals)

    def measured(self) -> dict[str, list[dict[str, str]]]:
        """Rows of sweeps, and profiles of GPUs, without time stamps."""
        found = {
            f"{path.parent.name}/{path.stem}": pd.read_parquet(path).to_dict("records")
            for path in self.results.glob("sweeps/*/*.parquet")
        }
        profiles = self.results.glob("gpus/*.json")
        found |= {path.stem: [json.loads(path.read_text())] for path in profiles}
        return {
            name: [
                {str(key): str(value) for key, value in row.items() if key not in VOLATILE}
                for row in rows
            ]
            for name, rows in found.items()
        }


def _cards(node: str, haste: bool) -> list[dict[str, Any]]:
    return [
        {
            "index": index,
            "uuid": f"GPU-{node}-{index}",
            "name": f"Made-up {node}",
            "arch": ARCHS[node],
            "sms": 8,
            "rate": {"a100": 1.0, "h200": 2.5, "t4": 0.3}[node],
            "pause_s": 0.0 if haste else PAUSES_S[node],
        }
        for index in range(NODES[node])
    ]


@dataclass
class Run:
    """A Snakemake that runs, and what it says."""

    process: Fork
    output: Path

    def said(self) -> str:
        """All that it has said."""
        return self.output.read_text(errors="replace")

    def wait(self, seconds: float) -> int:
        """Its exit code; an error when it takes longer."""
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"not done after {seconds:g} s:\n{self.said()[-3000:]}") from None
