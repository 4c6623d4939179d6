"""Sentiment inference beside the modes of PyTorch, precision by precision, on one GPU.

PyTorch answers the same reviews with the same weights in float32, TF32, BF16 and FP16, each
eagerly, as a replayed CUDA graph, and compiled by ``torch.compile`` with ``max-autotune``, from
embeddings in device memory in its own precision and from word numbers. Of launchwise the variants
of the same precisions run in the same process, each answer held against float64 first.
``times_faster`` is PyTorch's fastest mode over launchwise's fastest build. A mode that PyTorch
refuses has its message instead of a time. The result is written after every step, and no step
begins after the budget is spent.

    python benchmarks/pytorch_modes.py benchmarks/results/pytorch_modes.json
"""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from harness.command_line import arguments, card_facts, write_result
from harness.needs import gpu_and_packages
from harness.projects import ROOT

from kernels.sentiment.host.network import SHAPES, Network, logits
from launchwise.gpus.profile import read_profile
from launchwise.measuring.cards import cards
from launchwise.measuring.compile import compile_bundle
from launchwise.workloads.declared.declared_workload import load_workload
from launchwise.workloads.space import Configuration, Part, Problem, configurations, gpu_facts
from launchwise.workloads.spec import load_spec

with gpu_and_packages():
    import torch

    from launchwise.cuda.device import CudaDevice

FOLDER = ROOT / "kernels" / "sentiment"
PROFILE = ROOT / "data" / "recorded" / "h200" / "profile.json"
CASES, SMALLEST, TOKENS = 20_000, 512, 256
REPEATS = 9
CHECKED = 200  # reviews whose logits are compared with float64

BUDGET_S = 420.0
MODES = ("eager", "graph", "compiled")
GIVEN = ("embeddings", "tokens")

PRECISIONS = {
    "float32": (torch.float32, "highest"),
    "tf32": (torch.float32, "high"),
    "bf16": (torch.bfloat16, "highest"),
    "fp16": (torch.float16, "highest"),
}
"""Type of weights and inputs, and what PyTorch may do to products of float32."""

SAME_PRECISION = {
    "float32": "fused_case",
    "tf32": "tensor_tf32",
    "bf16": "tensor_bf16",
    "fp16": "tensor_fp16",
}
"""launchwise's variant of each precision."""

TRIED = [Part({"variant": list(SAME_PRECISION.values()), "tile_depth": [8], "warps": [4, 8, 16]})]


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


class ByWords(torch.nn.Module):
    """The network on word numbers, (cases, tokens) of int32."""

    def __init__(self, peer: Peer, table: torch.Tensor) -> None:
        super().__init__()
        self.peer = peer
        self.register_buffer("table", table)

    def forward(self, words: torch.Tensor, lengths: torch.Tensor, mask: torch.Tensor) -> Any:
        """Logits, (cases, classes)."""
        return self.peer(torch.nn.functional.embedding(words, self.table), lengths, mask)


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


def captured(run: Callable[[], Any]) -> Callable[[], Any]:
    """The replay of a CUDA graph of a run."""
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        for _ in range(2):
            run()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        run()
    return graph.replay


def modes_of(
    model: Any, inputs: tuple[torch.Tensor, ...], modes: Sequence[str]
) -> Iterator[tuple[str, Any]]:
    """Name of a mode and its median time in ms, or what PyTorch says against it."""
    compiled = torch.compile(model, mode="max-autotune", fullgraph=True, dynamic=False)
    makes: dict[str, Callable[[], Callable[[], Any]]] = {
        "eager": lambda: lambda: model(*inputs),
        "graph": lambda: captured(lambda: model(*inputs)),
        "compiled": lambda: lambda: compiled(*inputs),
    }
    for name in modes:
        try:
            yield name, events_ms(makes[name]())
        except Exception as error:
            yield name, " ".join(str(error).split())[:300]
        torch.cuda.synchronize()


def error_of(model: Any, inputs: tuple[torch.Tensor, ...], expected: np.ndarray) -> float:
    """Largest error of some logits, relative to the largest logit."""
    found = model(*(each[:CHECKED] for each in inputs)).double().cpu().numpy()
    return float(np.abs(found - expected).max() / np.abs(expected).max())


def peers(
    network: Network, words: np.ndarray, lengths: np.ndarray, modes: Sequence[str]
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Precision with input, and PyTorch's modes; nothing is kept from one to the next."""
    expected = logits(network, words[:CHECKED], lengths[:CHECKED])
    for (precision, (kind, products)), given in (
        (each, given) for each in PRECISIONS.items() for given in GIVEN
    ):
        torch.set_float32_matmul_precision(products)
        torch._dynamo.reset()
        torch.cuda.empty_cache()
        peer = Peer(network).to(kind)
        table = torch.from_numpy(network.embeddings).cuda().to(kind)
        numbers = torch.from_numpy(words.astype(np.int32)).cuda()
        count = torch.from_numpy(lengths).cuda().to(kind)
        mask = torch.arange(words.shape[1], device="cuda")[None, :] < count[:, None].float()
        model = peer if given == "embeddings" else ByWords(peer, table)
        first = table[numbers] if given == "embeddings" else numbers
        inputs = (first, count, mask[..., None].to(kind))
        with torch.inference_mode():
            facts: dict[str, Any] = {"logit_error": error_of(model, inputs, expected)}
            facts["modes"] = dict(modes_of(model, inputs, modes))
        times = {mode: each for mode, each in facts["modes"].items() if isinstance(each, float)}
        facts["best"] = min(times, key=times.__getitem__)
        facts["best_ms"] = times[facts["best"]]
        yield f"{precision} {given}", facts
        del model, inputs, first, table


def ours(
    device: CudaDevice, workload: Any, problem: Problem, tried: list[Configuration]
) -> dict[str, dict[str, Any]]:
    """The fastest configuration of every variant, with the error of its answers and its time."""
    session = workload.open(device, problem, (), 1)
    found: dict[str, dict[str, Any]] = {}
    for configuration in tried:
        work = session.launch(configuration)
        session.poison()
        for launch in work.launches:
            device.launch(launch)
        finding = session.check()
        if finding.wrong:
            print(f"wrong: {finding.wrong}", flush=True)
            continue
        time_ms = statistics.median(device.timed(work, REPEATS + 2, False)[2:])
        best = found.get(str(configuration["variant"]))
        if best is None or time_ms < best["time_ms"]:
            known = {"configuration": configuration, "max_error": finding.max_error}
            found[str(configuration["variant"])] = {**known, "time_ms": time_ms}
    session.close()
    return found


def main() -> None:
    """Run both sides and write the result."""
    given = arguments(__doc__).parse_args()
    cases = SMALLEST if given.smallest else CASES
    begin = time.perf_counter()
    spec = load_spec(FOLDER)
    workload: Any = load_workload(FOLDER, spec)
    facts = gpu_facts(read_profile(PROFILE, "h200").model_dump())
    problems: list[dict[str, Any]] = [
        {"batch": cases, "tokens": TOKENS, "given": kind, "memory": "device"} for kind in GIVEN
    ]
    result: dict[str, Any] = {
        **{"cases": cases, "tokens": TOKENS, **card_facts()},
        **{"launchwise": {}, "pytorch": {}, "times_faster": {}},
    }
    # The driver's context is PyTorch's own from here on: both sides live in one.
    torch.zeros(1).cuda()
    card = CudaDevice()
    with tempfile.TemporaryDirectory() as scratch:
        bundle = Path(scratch, "bundle.cubins")
        listed = [(each, configurations(spec, each, facts, TRIED)) for each in problems]
        builds = [build for each in problems for build in workload.check_builds(each)]
        builds += [workload.build(each, one) for each, tried in listed for one in tried]
        arch, cores = cards()[0].arch, len(os.sched_getaffinity(0))
        compile_bundle(FOLDER, spec, list(dict.fromkeys(builds)), arch, bundle, cores)
        card.add_bundle(bundle)
        for problem, tried in listed:
            result["launchwise"][problem["given"]] = best = ours(card, workload, problem, tried)
            print(
                problem["given"], {name: row["time_ms"] for name, row in best.items()}, flush=True
            )
        session = workload.open(card, problems[0], (), 1)
        network, words, lengths = workload.trained.network, session.words, session.lengths
        session.close()
        for name, found in peers(network, words, lengths, MODES[:2] if given.smallest else MODES):
            result["pytorch"][name] = found
            precision, kind = name.split()
            own = result["launchwise"][kind][SAME_PRECISION[precision]]["time_ms"]
            result["times_faster"][name] = found["best_ms"] / own
            result["seconds"] = time.perf_counter() - begin
            write_result(given.output, result, torch=torch.__version__)
            print(name, found, flush=True)
            if time.perf_counter() - begin > BUDGET_S:
                break
    card.close()
    print("geometric mean", statistics.geometric_mean(result["times_faster"].values()))


if __name__ == "__main__":
    main()
