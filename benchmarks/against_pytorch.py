"""Sentiment inference against PyTorch, on one GPU, in one run.

Both answer the same reviews with the same weights. Of launchwise most builds of every variant are
tried, and each of their answers is held against float64 first. Times are medians: of CUDA events
on the device, for one case of replayed graphs on both sides, and of the host's clock from host
memory. Beside them: what a program that answers one batch and ends spends on its own beginning (the
paper's total).
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any

from harness.command_line import arguments, provenance
from harness.needs import gpu_and_packages
from harness.projects import ROOT

from kernels.sentiment.host.network import SHAPES, Network
from launchwise.base.storage import write_json
from launchwise.gpus.profile import read_profile
from launchwise.measuring.cards import cards
from launchwise.measuring.compile import compile_bundle
from launchwise.workloads.launches import HostRun
from launchwise.workloads.loading import load_workload
from launchwise.workloads.space import (
    Configuration,
    Narrowing,
    Part,
    Problem,
    configurations,
    gpu_facts,
)
from launchwise.workloads.spec import load_spec

with gpu_and_packages():
    import torch

    from launchwise.cuda.device import CudaDevice

FOLDER = ROOT / "kernels" / "sentiment"
TOKENS = 256
REPEATS = 9
CORES = len(os.sched_getaffinity(0))
HOST_VARIANTS = ("fused_case", "tensor_3xtf32", "tensor_3xfp16", "tensor_bf16")
"""Variants that also answer from host memory."""


@dataclass(frozen=True)
class Size:
    """Amount of work.

    Attributes
    ----------
    cases
        Reviews of a batch.
    tried
        Parts of the space that are tried on the device.
    from_host
        Chunks, streams and graphs tried from host memory, with the fastest build on the device.
    """

    cases: int = 20_000
    tried: Narrowing = field(
        default_factory=lambda: [Part({"tile_depth": [8], "warps": [4, 8, 16]})]
    )
    from_host: dict[str, list[int]] = field(
        default_factory=lambda: {"chunk": [256, 1024, 4096], "streams": [2, 4], "graph": [0, 1]}
    )
    host_variants: tuple[str, ...] = HOST_VARIANTS


SMALLEST = Size(
    cases=512,
    tried=[Part({"variant": ["naive", "fused_case"], "threads": [256], "rows_a_warp": [32]})],
    from_host={"chunk": [256], "streams": [2], "graph": [0]},
    host_variants=("fused_case",),
)
BEGINNING = """
import json, sys, time
begin = time.perf_counter()
import pycuda.driver as cuda
cuda.init()
context = cuda.Device(0).retain_primary_context()
context.push()
print(1e3 * (time.perf_counter() - begin))
context.pop()
"""
"""Start-up of a program."""


class Peer(torch.nn.Module):
    """The same network in PyTorch."""

    def __init__(self, network: Network) -> None:
        super().__init__()
        for name in SHAPES:
            self.register_buffer(name, torch.from_numpy(getattr(network, name)).cuda())

    def forward(self, x: torch.Tensor, lengths: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """Logits of embeddings, (cases, tokens, 300)."""
        x = torch.relu(x @ self.w1 + self.b1)
        x = torch.relu(x @ self.w2 + self.b2)
        x = (x * mask).sum(1) / lengths[:, None]
        return torch.relu(x @ self.w3 + self.b3) @ self.w4 + self.b4


def events_ms(run: Callable[[], Any], repeats: int = REPEATS) -> float:
    """Median milliseconds by CUDA events, the first two runs left out."""
    times = []
    for _ in range(repeats + 2):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        run()
        end.record()
        end.synchronize()
        times.append(begin.elapsed_time(end))
    return statistics.median(times[2:])


def graph_ms(run: Callable[[], Any], launches: int = 200) -> float:
    """Milliseconds of one replay of a CUDA graph, from many in a row."""
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        for _ in range(3):
            run()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        run()
    return events_ms(lambda: [graph.replay() for _ in range(launches)]) / launches


def theirs(peer: Peer, words: Any, lengths: Any, table: torch.Tensor) -> dict[str, float]:
    """PyTorch's times, ms."""
    x = table[torch.from_numpy(words.astype("int64")).cuda()].float()
    count = torch.from_numpy(lengths).cuda().float()
    mask = (torch.arange(x.shape[1], device="cuda")[None, :] < count[:, None])[..., None].float()
    found: dict[str, float] = {}
    one = x[:1].contiguous(), count[:1].contiguous(), mask[:1].contiguous()
    with torch.inference_mode():
        for name, allowed in (("float32", False), ("tf32", True)):
            torch.backends.cuda.matmul.allow_tf32 = allowed
            found[f"{name}_ms"] = events_ms(lambda: peer(x, count, mask))
            found[f"one_case_{name}_ms"] = events_ms(lambda: peer(*one), 200)
            found[f"one_case_{name}_graph_ms"] = graph_ms(lambda: peer(*one))
        torch.backends.cuda.matmul.allow_tf32 = False
        host = x.cpu().pin_memory()

        def from_host() -> None:
            peer(host.cuda(non_blocking=True), count, mask).cpu()

        found["from_host_float32_ms"] = 1e3 * wall_s(from_host)
    return found


def wall_s(run: Callable[[], Any]) -> float:
    """Median seconds by the host's clock, the first run left out."""
    times = []
    for _ in range(REPEATS + 1):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        run()
        torch.cuda.synchronize()
        times.append(time.perf_counter() - begin)
    return statistics.median(times[1:])


def checked(session: Any, work: Any, device: CudaDevice) -> dict[str, Any] | None:
    """Error of an answer; None where it is wrong."""
    session.poison()
    if isinstance(work, HostRun):
        work.run()
    else:
        for launch in work.launches:
            device.launch(launch)
    finding = session.check()
    if finding.wrong:
        print(f"wrong: {finding.wrong}", flush=True)
        return None
    return {"max_error": finding.max_error}


def ours(
    device: CudaDevice, workload: Any, problem: Problem, tried: list[Configuration]
) -> list[dict[str, Any]]:
    """Every configuration that is right, fastest first; replayed graphs where a run is short."""
    session = workload.open(device, problem, (), 1)
    found = []
    for configuration in tried:
        work = session.launch(configuration)
        if (facts := checked(session, work, device)) is None:
            continue
        if isinstance(work, HostRun):
            facts["time_ms"] = 1e3 * wall_s(work.run)
        elif problem["batch"] == 1:
            facts["time_ms"] = statistics.median(device.replayed(work, REPEATS, 200).times_ms)
        else:
            facts["time_ms"] = statistics.median(device.timed(work, REPEATS + 2, False)[2:])
        found.append({"configuration": configuration, **facts})
    session.close()
    return sorted(found, key=lambda row: row["time_ms"])


def best_of_each(rows: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """The fastest of every variant."""
    found: dict[str, dict[str, Any]] = {}
    for row in rows:
        found.setdefault(str(row["configuration"]["variant"]), row)
    return found


def main() -> None:
    """Run both and write the result."""
    parser = arguments(__doc__)
    parser.add_argument("--profile", type=Path, default=ROOT / "data/recorded/h200/profile.json")
    given = parser.parse_args()
    size = SMALLEST if given.smallest else Size()
    card = cards()[0]
    spec = load_spec(FOLDER)
    workload: Any = load_workload(FOLDER, spec)
    profile = read_profile(given.profile, given.profile.parent.name)
    facts = gpu_facts(profile.model_dump())
    many: Problem = {
        "batch": size.cases,
        "tokens": TOKENS,
        "given": "embeddings",
        "memory": "device",
    }
    problems = [{**many, "given": kind} for kind in ("embeddings", "tokens")]
    results: dict[str, Any] = {}
    # The driver's context is PyTorch's own from here on: both sides live in one.
    torch.zeros(1).cuda()
    device = CudaDevice()
    with tempfile.TemporaryDirectory() as scratch:
        bundle = Path(scratch, "bundle.cubins")
        listed = [(each, configurations(spec, each, facts, size.tried)) for each in problems]
        builds = [build for each in problems for build in workload.check_builds(each)]
        builds += [workload.build(each, one) for each, tried in listed for one in tried]
        compile_bundle(FOLDER, spec, list(dict.fromkeys(builds)), card.arch, bundle, CORES)
        device.add_bundle(bundle)
        for problem in problems:
            for batch in (size.cases, 1):
                asked = {**problem, "batch": batch}
                rows = ours(device, workload, asked, configurations(spec, asked, facts, size.tried))
                name = f"{batch} {problem['given']}"
                results[name] = best_of_each(rows)
                print(name, results[name], flush=True)
        fastest = results[f"{size.cases} tokens"]
        asked = {**many, "given": "tokens", "memory": "pinned"}
        for name in size.host_variants:
            each_value = product(*size.from_host.values())
            keys = [dict(zip(size.from_host, values, strict=True)) for values in each_value]
            tried = [{**fastest[name]["configuration"], **key} for key in keys]
            results[f"from host, {name}"] = ours(device, workload, asked, tried)[0]
            print("from host", results[f"from host, {name}"], flush=True)
        session = workload.open(device, many, (), 1)
        network = workload.trained.network
        table = torch.from_numpy(network.embeddings).cuda()
        peer = theirs(Peer(network), session.words, session.lengths, table)
        session.close()
    print(peer, flush=True)
    device.close()
    beginning = [sys.executable, "-c", BEGINNING]
    beginnings = [subprocess.run(beginning, capture_output=True, check=True) for _ in range(3)]
    result = {
        **{"cases": size.cases, "tokens": TOKENS, "repeats": REPEATS},
        **{"device": card.device_name, "driver": card.driver},
        **{"pytorch": peer, "launchwise": results},
        "beginning_ms": [float(each.stdout) for each in beginnings],
    }
    result = {**provenance(torch=torch.__version__), **result}
    write_json(given.output, result)


if __name__ == "__main__":
    main()
