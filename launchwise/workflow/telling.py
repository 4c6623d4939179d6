"""What a run says in the terminal: what to read meanwhile, why jobs failed, that it was stopped.

Also that results came without the records in ``.snakemake/metadata``, without which Snakemake
compares times alone, and what Slurm would refuse: Snakemake submits such a job again and again.
"""

from __future__ import annotations

import getpass
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import FrameType
from typing import Any

from launchwise.base.errors import UserError
from launchwise.base.storage import RESULTS
from launchwise.experiment.experiment import Experiment
from launchwise.workflow.plan import stop
from launchwise.workflow.sweeps import Cluster

FRONT, ARCHIVE = Path("results/report/index.html"), Path("results/report.zip")


def tell_beginning(workflow: Any) -> None:
    """Print two lines before a run on this machine that makes the report. ``workflow``: Snakemake's
    workflow, before its first job."""
    quiet = {str(each).rpartition(".")[2].lower() for each in workflow.output_settings.quiet or ()}
    rules = {job.rule.name for job in workflow.dag.needrun_jobs()}
    if workflow.local_exec and "all" not in quiet and "report" in rules:
        what = "the report as it was" if ARCHIVE.is_file() else "first answers soon"
        print(
            f"launchwise: to read meanwhile: {what}, in {FRONT}\n"
            "launchwise: Ctrl-C keeps all that is done: the same command goes on from there",
            file=sys.stderr,
        )


def tell_plan(experiment: Experiment, cluster: Cluster) -> None:
    """Print one line if live GPUs are to measure sweeps: how long that takes, in which jobs."""
    asked = [
        (gpu, workload)
        for gpu, entry in experiment.settings.gpus.items()
        for workload in (experiment.workloads_of(gpu) if entry.source == "live" else ())
        if not Path(RESULTS, "sweeps", gpu, f"{workload}.parquet").is_file()
    ]
    taken = dict.fromkeys((gpu for gpu, _ in asked), 0.0)
    for gpu, workload in asked:
        taken[gpu] += cluster.seconds(gpu, workload)
    if asked:
        unit, whole = ("hours", 3600) if (total := sum(taken.values())) >= 360 else ("seconds", 1)
        jobs = sum(cluster.shards(*each) for each in asked)
        memory = max(cluster.memory_mb(*each, 1) for each in asked)
        each = ", ".join(f"{gpu}: {share / whole:.2g}" for gpu, share in taken.items())
        said = f"about {total / whole:.2g} GPU-{unit} ({each}), jobs: {jobs}, {memory} MB each"
        print(f"launchwise: sweeps without a table yet: {said} at most", file=sys.stderr)


MARK = "E launchwise: "
"""How a mistake begins in the log of a stage (see :mod:`launchwise.base.scripting`)."""


def tell_failures(workflow: Any) -> None:
    """Print one line per mistake of failed jobs; of this machine's own jobs it stands there.
    ``workflow``: Snakemake's workflow, at its end."""
    if workflow.local_exec:
        return
    logs = {
        Path(str(path))
        for failed in workflow.scheduler.failed
        # A group holds jobs.
        for job in getattr(failed, "jobs", [failed])
        for path in job.log
    }
    said = dict.fromkeys(line for path in sorted(logs) for line in _mistakes(path))
    for line in said:
        print(line, file=sys.stderr)


def _mistakes(log: Path) -> list[str]:
    try:
        lines = log.read_text(errors="replace").splitlines()
    except OSError:
        return []
    return [line.removeprefix("E ") for line in lines if line.startswith(MARK)][-1:]


LINE = "launchwise: stopped; the same command goes on with what is not done yet"

_arrived: list[int] = []


def note_interrupts() -> None:
    """Remember that Ctrl-C was pressed; Python raises its exception as ever."""

    def note(number: int, frame: FrameType | None) -> None:
        _arrived.append(number)
        signal.default_int_handler(number, frame)

    _arrived.clear()
    if signal.getsignal(signal.SIGINT) == signal.default_int_handler:
        signal.signal(signal.SIGINT, note)


def tell_interruption() -> bool:
    """Print one line if Ctrl-C ended the run, and say whether it did."""
    if _arrived:
        print(LINE, file=sys.stderr)
    return bool(_arrived)


RECORDS = Path(".snakemake", "metadata")
UNRECORDED = {"journal", "launchwise.json", "logs"}
"""What a run writes in the folder of results that is no result of a rule."""
TUNED = Path(RESULTS, "logs", "tune")
"""Where ``launchwise tune`` writes its log: its results never have records."""


def tell_missing_records(workflow: Any) -> None:
    """Print one line if there are results and no record at all; jobs of a run print nothing."""
    if not workflow.is_main_process:
        return
    results = _names(Path(RESULTS))
    if results - UNRECORDED and not TUNED.is_dir() and not _names(RECORDS):
        print(
            f"launchwise: {RESULTS}/ came without {RECORDS}/, where Snakemake notes how files were "
            "made: results are taken as they are unless an input is newer. To make them anew: "
            "snakemake --forceall; to note them as made today: snakemake --forceall --touch",
            file=sys.stderr,
        )


def _names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()} if folder.is_dir() else set()


OPTIONS = {
    "slurm_partition": "--partition={}",
    "slurm_account": "--account={}",
    "qos": "--qos={}",
    "constraint": "--constraint={}",
}
"""Resources of jobs to options of sbatch, as Snakemake's plugin gives them."""

UNASKED = frozenset({"tmpdir", "runtime", "mem", "mem_mb", "disk", "disk_mb"})
"""Resources that need not be known, and cannot before the inputs are there."""

REFUSALS = (
    *("invalid partition", "partition not available", "invalid account", "invalid qos"),
    *("reservation is invalid", "invalid feature", "invalid generic resource", "invalid license"),
    *("invalid node name", "unrecognized option", "not permitted", "access denied"),
)
"""Parts of messages after which waiting does not help."""

NO_SUCH_NODE = "node configuration is not available"
"""Also what Slurm says of nodes that are drained, for which jobs may wait."""

NO_CLUSTER = "sbatch: fatal: "
"""What a client says that knows of no cluster, or whose configuration is broken."""

ELSEWHERE = "start Snakemake on a login node, or without the profile"
THERE = "sinfo -o '%P %G %f' lists what there is"
OWN = "sacctmgr show assoc user=$USER format=account,partition,qos lists yours"

PATIENCE_S = 20.0


def check_submission(workflow: Any, experiment: Experiment) -> None:
    """Stop with one line unless Slurm would take each kind of job that is about to run; nothing is
    submitted. ``workflow``: Snakemake's; of any other executor nothing is asked."""
    if workflow.executor_plugin.name == "slurm":
        try:
            _check_requests(workflow, experiment)
        except UserError as error:
            stop(error)


def _check_requests(workflow: Any, experiment: Experiment) -> None:
    asked: set[tuple[str, ...]] = set()
    for rule, gpu, resources in _kinds(workflow):
        request = _request(resources)
        if request not in asked:
            asked.add(request)
            if said := _refusal(request, resources) or _foreign_account(resources):
                words = shlex.join(request) or "a job without options"
                about_user = any(each in said.lower() for each in ("account", "qos"))
                message = f"Slurm refuses {words}: {said}; {OWN if about_user else THERE}"
                if gpu is not None and experiment.settings.gpus[gpu].slurm is not None:
                    raise experiment.error(f"gpus.{gpu}.slurm", message)
                raise UserError("the profile", f"resources of {rule}", message)


def _kinds(workflow: Any) -> Iterator[tuple[str, str | None, Mapping[str, Any]]]:
    """Rule, GPU and resources of one job of each rule and GPU that Slurm is to run."""
    seen: set[tuple[str, str | None]] = set()
    for job in workflow.dag.needrun_jobs():
        gpu = job.wildcards_dict.get("gpu")
        kind = (str(job.rule.name), gpu)
        if kind not in seen and not job.is_local:
            seen.add(kind)
            # Not the job's own, which are kept for when its inputs are there.
            resources = job.rule.expand_resources(
                job.wildcards_dict, job.input, 1, skip_evaluation=UNASKED
            )
            yield (*kind, dict(resources.items()))


def _request(resources: Mapping[str, Any]) -> tuple[str, ...]:
    options = [
        text.format(resources[name]) for name, text in OPTIONS.items() if resources.get(name)
    ]
    if resources.get("gpu"):
        kind = resources.get("gpu_model")
        options.append(f"--gpus={kind}:1" if kind else "--gpus=1")
    if resources["_cores"] > 1:
        options.append(f"--cpus-per-task={resources['_cores']}")
    return (*options, *shlex.split(str(resources.get("slurm_extra") or "")))


def _refusal(request: tuple[str, ...], resources: Mapping[str, Any]) -> str | None:
    """Why Slurm would refuse a job for good; None if it would not, or cannot be asked."""
    try:
        done = _said("sbatch", "--test-only", *request, "--wrap", "true")
    except FileNotFoundError:
        return f"sbatch is not on the PATH: {ELSEWHERE}"
    except subprocess.TimeoutExpired:
        return None
    lines = done.stderr.strip().splitlines()
    if done.returncode == 0 or not lines:
        return None
    said = " ".join(lines).lower()
    if NO_CLUSTER in said:
        return f"{lines[-1].removeprefix('sbatch: ')}: {ELSEWHERE}"
    if NO_SUCH_NODE in said:
        return _missing(resources)
    first = next((line for line in lines if any(each in line.lower() for each in REFUSALS)), None)
    return first and first.removeprefix("sbatch: ").removeprefix("allocation failure: ")


def _missing(resources: Mapping[str, Any]) -> str | None:
    """What no node of the job's partition has; None where one has all, and may be drained."""
    partition, kind = resources.get("slurm_partition"), resources.get("gpu_model")
    listed = _said("sinfo", "--noheader", "--Node", "--format=%P %c %G")
    # As in: gpu* 8 gpu:a100:4(S:0-1),gpu:t4:1
    nodes = [line.split(maxsplit=2) for line in listed.stdout.splitlines()]
    named = str(partition or "").split(",")
    own = [one for one in nodes if (one[0].strip("*") in named if partition else "*" in one[0])]
    there = ",".join(node[2] for node in own).split(",")
    gpus = sorted({each.partition("(")[0] for each in there if each.startswith("gpu:")})
    kinds = {each.split(":")[1] for each in gpus}
    if own and resources.get("gpu") and not (kinds if kind is None else kind in kinds):
        return f"partition {partition} has no such GPU, but {', '.join(gpus) or 'none'}"
    most = max((int(node[1]) for node in own), default=0)
    if own and resources["_cores"] > most:
        return f"no node has more than {most} cores: set-threads of the profile asks for fewer"
    return None


def _foreign_account(resources: Mapping[str, Any]) -> str | None:
    """Message if an account is none of the user's, where Slurm has accounts and takes any."""
    account = resources.get("slurm_account")
    if not account:
        return None
    command = ("sacctmgr", "--noheader", "--parsable2", "show", "associations", "format=account")
    try:
        listed = _said(*command, f"user={getpass.getuser()}")
    except (OSError, subprocess.TimeoutExpired):
        return None
    own = sorted({*listed.stdout.split()})
    if listed.returncode != 0 or not own or str(account).lower() in own:
        return None
    return f"{account} is no account of yours, but {', '.join(own)}"


def _said(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_S,
    )
