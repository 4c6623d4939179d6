"""Sentiment inference beside the modes of PyTorch, precision by precision, on one GPU.

PyTorch answers the same reviews with the same weights in float32, TF32, BF16 and FP16, each
eagerly, as a replayed CUDA graph, and compiled by ``torch.compile`` with ``max-autotune``, from
embeddings in device memory in its own precision and from word numbers. Of launchwise the variants
of the same precisions run in the same process (:mod:`against_pytorch` has how). ``times_faster`` is
PyTorch's fastest mode over launchwise's fastest build. A mode that PyTorch refuses has its message
instead of a time. The result is written after every step, and no step begins after the budget is
spent.

    python benchmarks/pytorch_modes.py benchmarks/results/pytorch_modes.json
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from against_pytorch import (
    CORES,
    FOLDER,
    SMALLEST,
    TOKENS,
    CudaDevice,
    Peer,
    best_of_each,
    events_ms,
    ours,
    torch,
)
from harness.command_line import arguments, provenance
from harness.projects import ROOT

from kernels.sentiment.host.network import Network, logits
from launchwise.base.storage import write_json
from launchwise.gpus.profile import read_profile
from launchwise.measuring.cards import cards
from launchwise.measuring.compile import compile_bundle
from launchwise.workloads.loading import load_workload
from launchwise.workloads.space import Part, configurations, gpu_facts
from launchwise.workloads.spec import load_spec

CASES = 20_000
CHECKED = 200
"""Reviews whose logits are compared with float64."""

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


class ByWords(torch.nn.Module):
    """The network on word numbers, (cases, tokens) of int32."""

    def __init__(self, peer: Peer, table: torch.Tensor) -> None:
        super().__init__()
        self.peer = peer
        self.register_buffer("table", table)

    def forward(self, words: torch.Tensor, lengths: torch.Tensor, mask: torch.Tensor) -> Any:
        """Logits, (cases, classes)."""
        return self.peer(torch.nn.functional.embedding(words, self.table), lengths, mask)


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


def main() -> None:
    """Run both sides and write the result."""
    parser = arguments(__doc__)
    parser.add_argument("--profile", type=Path, default=ROOT / "data/recorded/h200/profile.json")
    parser.add_argument("--budget-s", type=float, default=BUDGET_S)
    given = parser.parse_args()
    cases = SMALLEST.cases if given.smallest else CASES
    begin = time.perf_counter()
    card = cards()[0]
    spec = load_spec(FOLDER)
    workload: Any = load_workload(FOLDER, spec)
    facts = gpu_facts(read_profile(given.profile, given.profile.parent.name).model_dump())
    problems: list[dict[str, Any]] = [
        {"batch": cases, "tokens": TOKENS, "given": kind, "memory": "device"} for kind in GIVEN
    ]
    result: dict[str, Any] = {
        **provenance(torch=torch.__version__),
        **{"cases": cases, "tokens": TOKENS},
        **{"device": card.device_name, "driver": card.driver},
        **{"launchwise": {}, "pytorch": {}, "times_faster": {}},
    }
    torch.zeros(1).cuda()
    device = CudaDevice()
    with tempfile.TemporaryDirectory() as scratch:
        bundle = Path(scratch, "bundle.cubins")
        listed = [configurations(spec, each, facts, TRIED) for each in problems]
        builds = [build for each in problems for build in workload.check_builds(each)]
        builds += [
            workload.build(problem, one)
            for problem, tried in zip(problems, listed, strict=True)
            for one in tried
        ]
        compile_bundle(FOLDER, spec, list(dict.fromkeys(builds)), card.arch, bundle, CORES)
        device.add_bundle(bundle)
        for problem, tried in zip(problems, listed, strict=True):
            best = best_of_each(ours(device, workload, problem, tried))
            result["launchwise"][problem["given"]] = best
            print(
                problem["given"], {name: row["time_ms"] for name, row in best.items()}, flush=True
            )
        session = workload.open(device, problems[0], (), 1)
        network, words, lengths = workload.trained.network, session.words, session.lengths
        session.close()
        for name, found in peers(network, words, lengths, MODES[:2] if given.smallest else MODES):
            result["pytorch"][name] = found
            precision, kind = name.split()
            if precision in SAME_PRECISION:
                own = result["launchwise"][kind][SAME_PRECISION[precision]]["time_ms"]
                result["times_faster"][name] = found["best_ms"] / own
            result["seconds"] = time.perf_counter() - begin
            write_json(given.output, result)
            print(name, found, flush=True)
            if time.perf_counter() - begin > given.budget_s:
                break
    device.close()
    if result["times_faster"]:
        print("geometric mean", statistics.geometric_mean(result["times_faster"].values()))


if __name__ == "__main__":
    main()
