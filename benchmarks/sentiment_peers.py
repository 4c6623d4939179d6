"""The sentiment network by C++ with Eigen, NumPy and PyTorch on a GPU's host, and by PyTorch on it.

Times of 20 000 reviews and of one, float32, embeddings in memory as the paper's program has them:
Eigen on one core and on all, NumPy and PyTorch on all cores, and PyTorch on the GPU from
page-locked memory, all at once and one by one. Beside them: how every variant of launchwise
classifies the held-out reviews. ``--tables`` writes both for the report; rows of other GPUs stay.

    python benchmarks/sentiment_peers.py benchmarks/results/sentiment_peers_h100.json --gpu h100 \\
        --tables kernels/sentiment/studies/sentiment_inference/published
"""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from harness.command_line import arguments, card_facts, provenance
from harness.needs import eigen, gpu_and_packages
from harness.peers import numpy_answer, write_tables
from harness.projects import ROOT

from kernels.sentiment.host.eigen import Eigen
from kernels.sentiment.host.launches import PERSISTENT, Batch, Choice, Pipeline, Weights, build
from kernels.sentiment.host.network import SHAPES, Network, Trained, accuracy, logits, read_trained
from kernels.sentiment.host.pytorch import answer
from kernels.sentiment.host.reviews import drawn
from kernels.sentiment.host.streaming import HostBatch, QueuedRun
from kernels.sentiment.host.workload import lengths_of
from launchwise.base.storage import write_json
from launchwise.measuring.cards import cards
from launchwise.measuring.compile import compile_bundle
from launchwise.workloads.device import Allocations
from launchwise.workloads.spec import load_spec

with gpu_and_packages():
    import torch

    from launchwise.cuda.device import CudaDevice
eigen()

FOLDER = ROOT / "kernels" / "sentiment"
CASES, TOKENS = 20_000, 256
SMALLEST = 512  # reviews of ``--smallest``
CORES = len(os.sched_getaffinity(0))
PART = 1000  # cases that NumPy and PyTorch answer at a time on the CPU, and that warm a tool up
PASSES = 3  # repeats of all cases
ONE_CASE_REPEATS = 200  # repeats of one case
GIVEN = "nothing: embeddings in memory"

Run = Callable[[slice], Any]  # answers some of the cases, and waits for the end


def timed(whole: Callable[[], Any], run: Run) -> dict[str, Any]:
    """Seconds of each pass over all cases, and of one case; a part of them goes before."""
    run(slice(0, PART))
    passes = [_seconds(whole) for _ in range(PASSES)]
    ones = [_seconds(lambda: run(slice(0, 1))) for _ in range(ONE_CASE_REPEATS + 1)][1:]
    return {
        "total_s": statistics.median(passes),
        "each_s": passes,
        "one_case_ms": 1e3 * statistics.median(ones),
    }


def _seconds(run: Callable[[], Any]) -> float:
    begin = time.perf_counter()
    run()
    return time.perf_counter() - begin


def in_parts(run: Run, cases: int, part: int) -> Callable[[], None]:
    """A pass over all cases, so many at a time."""

    def whole() -> None:
        for first in range(0, cases, part):
            run(slice(first, first + part))

    return whole


def on_cpu(network: Network, x: np.ndarray, lengths: np.ndarray) -> dict[str, Any]:
    """Times of each tool on the host, :func:`timed`; Eigen goes review by review."""
    count = lengths.astype(np.float32)
    mask = (np.arange(x.shape[1])[None, :] < count[:, None])[..., None].astype(np.float32)
    weights = {name: getattr(network, name) for name in SHAPES}
    tensors = {name: torch.from_numpy(each) for name, each in weights.items()}
    given = [torch.from_numpy(array) for array in (x, count)]

    def by_numpy(many: slice) -> None:
        numpy_answer(weights, x[many], count[many], mask[many])

    def by_torch(many: slice) -> None:
        answer(torch, tensors, None, *(array[many] for array in given))

    def by_eigen(threads: int) -> Run:
        eigen = Eigen(network, threads)
        return lambda many: eigen.logits(x[many], lengths[many])

    ways = {
        "eigen_one_core": (by_eigen(1), len(x)),
        "eigen_all_cores": (by_eigen(CORES), len(x)),
        "numpy": (by_numpy, PART),
        "torch": (by_torch, PART),
    }
    found: dict[str, Any] = {"cores": CORES, "torch_threads": torch.get_num_threads()}
    found |= {"given": GIVEN, "passes": PASSES, "one_case_repeats": ONE_CASE_REPEATS}
    with torch.inference_mode():
        for name, (run, part) in ways.items():
            found[name] = timed(in_parts(run, len(x), part), run)
            print(name, found[name], flush=True)
    return found


def on_gpu(network: Network, x: np.ndarray, lengths: np.ndarray) -> dict[str, Any]:
    """Times of PyTorch on the GPU from page-locked memory: all at once, one by one, and one."""
    torch.backends.cuda.matmul.allow_tf32 = False
    weights = {name: torch.from_numpy(getattr(network, name)).cuda() for name in SHAPES}
    host = torch.from_numpy(x).pin_memory()
    count = torch.from_numpy(lengths.astype(np.float32)).cuda()

    def run(many: slice) -> None:
        given = host[many].cuda(non_blocking=True)
        answer(torch, weights, None, given, count[many]).cpu()

    with torch.inference_mode():
        at_once = timed(in_parts(run, len(x), len(x)), run)
        one_by_one = [_seconds(in_parts(run, len(x), 1)) for _ in range(PASSES)]
    return {
        **{"passes": PASSES, "one_case_repeats": ONE_CASE_REPEATS, "at_once": at_once},
        "one_by_one": {"total_s": statistics.median(one_by_one), "each_s": one_by_one},
    }


def held_out(device: CudaDevice, trained: Trained, variants: list[str]) -> dict[str, Any]:
    """How float64, every variant, NumPy's float32 and Eigen classify the held-out reviews."""
    cases = trained.held_out
    expected = logits(trained.network, cases.tokens, cases.lengths)
    found: dict[str, Any] = {"float64": {"accuracy": accuracy(expected, cases.labels)}}
    for name, answers in _answers(device, trained, variants):
        found[name] = {
            "accuracy": accuracy(answers, cases.labels),
            "class_flips": int((answers.argmax(axis=1) != expected.argmax(axis=1)).sum()),
            "logit_error": float(np.abs(answers - expected).max() / np.abs(expected).max()),
        }
    return {"reviews": len(cases.labels), "variants": found}


def _answers(
    device: CudaDevice, trained: Trained, variants: list[str]
) -> Iterator[tuple[str, np.ndarray]]:
    """Name and logits of each."""
    cases, network = trained.held_out, trained.network
    x = np.ascontiguousarray(network.embeddings.astype(np.float32)[cases.tokens])
    yield "eigen", Eigen(network, CORES).logits(x, cases.lengths)
    yield "numpy", logits(network, cases.tokens, cases.lengths, np.float32)
    shape = len(cases.lengths), 2
    with Allocations(device) as memory:
        weights = Weights(device, network, memory)
        words, lengths = (memory.upload(each) for each in (cases.tokens, cases.lengths))
        batch = Batch(words, lengths, memory.take(8 * shape[0]), *cases.tokens.shape)
        for name in variants:
            answers = np.full(shape, np.nan, np.float32)
            if name == PERSISTENT:
                _queued(device, weights, cases, answers)
            else:
                device.fill_bytes(batch.logits, 0xFF)
                pipeline = Pipeline(device, weights, Choice(name), "tokens", *cases.tokens.shape)
                for launch in pipeline.launches(batch):
                    device.launch(launch)
                device.download(batch.logits, answers)
                pipeline.close()
            yield name, answers


def _queued(device: CudaDevice, weights: Weights, cases: Any, answers: np.ndarray) -> None:
    """The answers of the variant that reads the host's page-locked memory."""
    arrays = [cases.tokens, cases.lengths, answers]
    locked = [device.page_locked(each.nbytes).view(each.dtype) for each in arrays]
    own = [each.reshape(array.shape) for each, array in zip(locked, arrays, strict=True)]
    for each, array in zip(own, arrays, strict=True):
        each[:] = array
    run = QueuedRun(device, weights, Choice(PERSISTENT), "tokens", HostBatch(*own))
    run.run()
    run.close()
    answers[:] = own[-1]


def main() -> None:
    """Measure and write the result."""
    parser = arguments(__doc__)
    parser.add_argument("--gpu", default="h200", help="name of the GPU in the report")
    parser.add_argument("--tables", type=Path, help="folder of peers.csv and held_out.csv")
    given = parser.parse_args()
    spec = load_spec(FOLDER)
    trained = read_trained(FOLDER / "network.npz")
    # The driver's context is PyTorch's own from here on: both sides live in one.
    torch.zeros(1).cuda()
    device = CudaDevice()
    variants = list(spec.variants)
    with tempfile.TemporaryDirectory() as scratch:
        bundle = Path(scratch, "bundle.cubins")
        builds = [build(Choice(name), "tokens") for name in variants]
        compile_bundle(FOLDER, spec, builds, cards()[0].arch, bundle, CORES)
        device.add_bundle(bundle)
        reviews = held_out(device, trained, variants)
    print(reviews, flush=True)
    cases = SMALLEST if given.smallest else CASES
    words, lengths = drawn(trained.counts, cases, TOKENS, 1), lengths_of(cases, TOKENS, 1)
    x = trained.network.embeddings.astype(np.float32)[words]
    cpu = on_cpu(trained.network, x, lengths)
    peer = on_gpu(trained.network, x, lengths)
    device.close()
    result = {
        **provenance(torch=torch.__version__, eigen=Eigen(trained.network, 1).version),
        **{"cases": cases, "tokens": TOKENS, **card_facts()},
        **{"gpu": given.gpu, "cpu_name": _cpu_name(), "held_out": reviews, "cpu": cpu},
        "pytorch": peer,
    }
    write_json(given.output, result)
    if given.tables:
        write_tables(given.tables, result, given.output.name)


def _cpu_name() -> str:
    """The processor, as Linux names it; empty elsewhere."""
    path = Path("/proc/cpuinfo")
    lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
    return next((line.partition(":")[2].strip() for line in lines if "model name" in line), "")


if __name__ == "__main__":
    main()
